"""A plain function: returns the items it was given, after some seconds if asked."""

import time

import runpod


def handler(job):
    time.sleep(job["input"].get("seconds", 0))
    return {"items": job["input"]["items"]}


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
