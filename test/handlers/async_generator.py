"""An async generator: yields the items it was given, after some seconds if asked."""

import asyncio

import runpod


async def handler(job):
    await asyncio.sleep(job["input"].get("seconds", 0))
    for item in job["input"]["items"]:
        yield item


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
