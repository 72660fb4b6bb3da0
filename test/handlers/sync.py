"""A plain function: returns the items it was given, after some seconds if asked. Before that it makes the file STARTED."""

import pathlib
import time

import runpod


def handler(job):
    if "started" in job["input"]:
        pathlib.Path(job["input"]["started"]).touch()
    time.sleep(job["input"].get("seconds", 0))
    return {"items": job["input"]["items"]}


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
