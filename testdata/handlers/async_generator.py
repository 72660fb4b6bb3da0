"""An async generator: many streams at a time, on one event loop."""

import asyncio

import runpod


async def handler(job):
    for i in range(job["input"].get("count", 3)):
        if i == job["input"].get("fail_at"):
            raise ValueError("boom")
        await asyncio.sleep(job["input"].get("seconds", 0))
        yield {"item": i}


runpod.serverless.start({"handler": handler})
