"""Leaves a line per job in a file as soon as it starts."""

import asyncio
import os

import runpod


async def handler(job):
    line = f"{job['input']['tag']}\n".encode()
    log = os.open(job["input"]["file"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(log, line)
    os.close(log)
    await asyncio.sleep(job["input"].get("seconds", 0))
    return job["input"]["tag"]


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
