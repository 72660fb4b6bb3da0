"""As client.py, with the official client for asyncio."""

import asyncio
import json

import aiohttp
import runpod
from runpod import AsyncioEndpoint, AsyncioJob

ITEMS = ["a", "b", "c"]


async def running_status(job):
    """Polls until the job is out of the queue."""
    while (seen := await job.status()) == "IN_QUEUE":
        await asyncio.sleep(0.05)
    return seen


async def main():
    runpod.api_key = "any"
    seen = {}
    async with aiohttp.ClientSession() as session:
        endpoint = AsyncioEndpoint("local", session)

        job = await endpoint.run({"items": ITEMS})
        assert isinstance(job, AsyncioJob)
        seen["first_status"] = await job.status()
        seen["output"] = await job.output(timeout=30)
        seen["status"] = await job.status()
        streamed = await endpoint.run({"items": ITEMS})
        seen["stream"] = [item async for item in streamed.stream()]

        running = await endpoint.run({"items": ITEMS, "seconds": 5})
        seen["running"] = await asyncio.wait_for(running_status(running), timeout=30)
        await endpoint.run({"items": ITEMS})
        seen["health"] = await endpoint.health()
        seen["purge_queue"] = await endpoint.purge_queue()
        seen["cancel"] = await running.cancel()
        seen["cancelled"] = await running.status()

    print(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main())
