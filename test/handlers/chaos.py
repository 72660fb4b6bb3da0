"""Does what the input says, in a coroutine or an async generator: takes some seconds, streams items, returns much, fails.
Each run of a job leaves its number as a line in the file RUNS."""

import asyncio
import os

import runpod


async def handler(job):
    work = job["input"]
    with open(os.environ["RUNS"], "a", encoding="utf-8") as runs:
        runs.write(f"{work['n']}\n")
    await asyncio.sleep(work["seconds"])
    if work["fails"]:
        raise ValueError(f"meant to fail: {work['n']}")
    if work["items"]:
        return stream(work)
    return {"n": work["n"], "pad": "x" * work["pad"]}


async def stream(work):
    for item in range(work["items"]):
        yield {"n": work["n"], "item": item}
        await asyncio.sleep(0.01)


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
