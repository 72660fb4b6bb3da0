"""Returns, or streams, whatever Python value its input spells."""

import asyncio  # noqa: F401  these are here for the expressions
import collections  # noqa: F401
import datetime  # noqa: F401

import runpod

loop = []
loop.append(loop)

deep = []
for _ in range(100_000):
    deep = [deep]


def items(values):
    yield from values


def handler(job):
    if "yield" in job["input"]:
        return items(eval(job["input"]["yield"]))
    return eval(job["input"]["return"])


runpod.serverless.start({"handler": handler})
