"""Registers fitness checks of its own."""

import asyncio

import runpod


@runpod.serverless.register_fitness_check
def check_model():
    pass


@runpod.serverless.register_fitness_check
async def check_service():
    await asyncio.sleep(0)
    raise RuntimeError("the service is down")


runpod.serverless.start({"handler": lambda job: "served"})
