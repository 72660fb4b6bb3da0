"""Yields the values it was given and leaves a file if it gets past the last one."""

import pathlib

import runpod


def handler(job):
    yield from job["input"]["values"]
    if "after" in job["input"]:
        pathlib.Path(job["input"]["after"]).touch()


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
