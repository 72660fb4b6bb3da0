"""Returns its input, in a coroutine."""

import runpod


async def handler(job):
    return job["input"]


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
