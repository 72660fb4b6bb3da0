"""A coroutine: returns the items it was given, after some seconds if asked."""

import asyncio

import runpod


async def handler(job):
    await asyncio.sleep(job["input"].get("seconds", 0))
    return {"items": job["input"]["items"]}


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
