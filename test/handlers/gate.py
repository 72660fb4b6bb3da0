"""Leaves a line per start in DIR/started, then waits until DIR/<gate> is there."""

import asyncio
import pathlib

import runpod


async def handler(job):
    folder, gate = pathlib.Path(job["input"]["dir"]), job["input"]["gate"]
    with open(folder / "started", "a", encoding="utf-8") as log:
        log.write(f"{gate}\n")
    while not (folder / gate).exists():
        await asyncio.sleep(0.01)
    return gate


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
