"""Returns when it was called and when it was done, by the clock that all processes of a machine share."""

import time

import runpod


def handler(job):
    called = time.monotonic_ns()
    time.sleep(job["input"].get("seconds", 0))
    return {"called": called, "done": time.monotonic_ns()}


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
