"""Ends well only if as many jobs as asked run at the same time."""

import pathlib
import time

import runpod


def handler(job):
    folder = pathlib.Path(job["input"]["dir"])
    (folder / job["id"]).touch()
    deadline = time.monotonic() + 30
    while len(list(folder.iterdir())) < job["input"]["jobs"]:
        if time.monotonic() > deadline:
            raise TimeoutError("the others never came")
        time.sleep(0.01)
    return "met"


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
