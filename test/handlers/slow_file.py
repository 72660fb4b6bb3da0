"""Writes a file at its end, which comes after some seconds."""

import asyncio

import runpod


async def handler(job):
    await asyncio.sleep(job["input"]["seconds"])
    with open(job["input"]["file"], "w"):
        pass
    return "late"


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
