"""Ends well only if as many jobs as asked run at the same time. CONCURRENCY_MODIFIER is for workers that are told how many
jobs to run by the handler alone."""

import asyncio
import os
import pathlib

import runpod


async def all_here(folder, jobs):
    while len(list(folder.iterdir())) < jobs:
        await asyncio.sleep(0.01)


async def handler(job):
    folder = pathlib.Path(job["input"]["dir"])
    (folder / job["id"]).touch()
    await asyncio.wait_for(all_here(folder, job["input"]["jobs"]), timeout=30)
    return "met"


if __name__ == "__main__":
    config = {"handler": handler}
    if "CONCURRENCY_MODIFIER" in os.environ:
        wanted = int(os.environ["CONCURRENCY_MODIFIER"])
        config["concurrency_modifier"] = lambda _current: wanted
    runpod.serverless.start(config)
