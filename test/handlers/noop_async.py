"""Does nothing, in a coroutine. NOOP_CONCURRENCY is for workers that are told how many jobs to run by
the handler alone."""

import os

import runpod


async def handler(_job):
    return 1


if __name__ == "__main__":
    config = {"handler": handler}
    if "NOOP_CONCURRENCY" in os.environ:
        wanted = int(os.environ["NOOP_CONCURRENCY"])
        config["concurrency_modifier"] = lambda _current: wanted
    runpod.serverless.start(config)
