"""A generator: yields the items it was given, after some seconds if asked."""

import time

import runpod


def handler(job):
    time.sleep(job["input"].get("seconds", 0))
    yield from job["input"]["items"]


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
