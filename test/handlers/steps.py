"""Prints a step, and goes on when somebody has seen it."""

import os
import time

import runpod


def handler(job):
    for i in range(job["input"]["steps"]):
        print("step", i)
        while not os.path.exists("%s%d" % (job["input"]["gate"], i)):
            time.sleep(0.01)
    print("the last", end="")
    return "done"


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
