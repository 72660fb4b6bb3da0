"""A plain function around an async one, as decorators leave it: async is what it returns."""

import asyncio
import functools

import runpod


def timed(function):
    @functools.wraps(function)
    def wrapper(job):
        return function(job)

    return wrapper


@timed
async def handler(job):
    await asyncio.sleep(job["input"].get("seconds", 0))
    return {"hello": job["input"].get("name", "nobody")}


runpod.serverless.start({"handler": handler})
