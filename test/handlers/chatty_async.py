import asyncio
import logging
import os

import runpod

log = runpod.RunPodLogger()
logging.basicConfig(level=logging.INFO, format="%(message)s")
here = set()


async def handler(job):
    here.add(job["id"])
    while len(here) < job["input"]["jobs"]:  # all of them at once
        await asyncio.sleep(0.01)
    for i in range(job["input"]["prints"]):
        print(job["id"], end=" ")
        await asyncio.sleep(0)
        print("says", i)
        log.info("%s says %d" % (job["id"], i))
        logging.info("%s says %d", job["id"], i)
    raise ValueError("as told")


runpod.serverless.start(
    {"handler": handler, "concurrency_modifier": lambda now: int(os.environ["CONCURRENCY_MODIFIER"])}
)
