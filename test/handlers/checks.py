"""A handler with checks of every kind: good, asynchronous, failing, hanging, loud, and one that ends the process."""

import asyncio
import os
import time

import runpod


@runpod.serverless.register_fitness_check
def good():
    print("looking around")


@runpod.serverless.register_fitness_check
async def good_async():
    await asyncio.sleep(0)


@runpod.serverless.register_fitness_check
def failing():
    raise RuntimeError("the model is missing\nlooked in /models")


@runpod.serverless.register_fitness_check
def hanging():
    time.sleep(3600)


@runpod.serverless.register_fitness_check
def leaving():
    print("x" * (1 << 20))
    print("last words")
    os._exit(3)


def good():  # a second check of the same name
    pass


runpod.serverless.register_fitness_check(good)
runpod.serverless.start({"handler": lambda job: job["input"]})
