"""Yields the numbers below the one that it was given. NOOP_CONCURRENCY is as in noop_async.py."""

import os

import runpod


async def handler(job):
    for item in range(job["input"]["items"]):
        yield item


if __name__ == "__main__":
    config = {"handler": handler}
    if "NOOP_CONCURRENCY" in os.environ:
        wanted = int(os.environ["NOOP_CONCURRENCY"])
        config["concurrency_modifier"] = lambda _current: wanted
    runpod.serverless.start(config)
