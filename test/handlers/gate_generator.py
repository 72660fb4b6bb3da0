"""Yields a first item, waits until the gate is there, then yields the others."""

import pathlib
import time

import runpod


def handler(job):
    first, *others = job["input"]["items"]
    yield first
    while not pathlib.Path(job["input"]["gate"]).exists():
        time.sleep(0.01)
    yield from others


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
