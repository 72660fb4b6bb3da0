"""Kills the worker that runs it, where the input says so; other jobs take the seconds that theirs says. Each leaves its name in
DIR/started."""

import asyncio
import os
import pathlib
import signal

import runpod


async def handler(job):
    with open(pathlib.Path(job["input"]["dir"]) / "started", "a", encoding="utf-8") as log:
        log.write(f"{job['id']}\n")
    await asyncio.sleep(job["input"]["seconds"])
    if job["input"].get("kill"):
        os.kill(os.getppid(), signal.SIGKILL)
        await asyncio.sleep(3600)
    return "alive"


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
