"""A coroutine function: many jobs at a time, on one event loop."""

import asyncio

import runpod


async def handler(job):
    await asyncio.sleep(job["input"].get("seconds", 0))
    return {"hello": job["input"].get("name", "nobody")}


runpod.serverless.start({"handler": handler})
