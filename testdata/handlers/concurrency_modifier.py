"""Says how many jobs it wants at a time; the values come from the environment."""

import os

import runpod

wanted = iter(os.environ.get("WANTED", "2 None 0 -1 'x' 1e9").split())


async def handler(job):
    return job["input"]


def concurrency_modifier(current):
    return eval(next(wanted))


runpod.serverless.start({"handler": handler, "concurrency_modifier": concurrency_modifier})
