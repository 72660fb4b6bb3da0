"""Says that its GPU has failed where its input is true, and gives its process id else."""

import os

import runpod


def handler(job):
    if job["input"].get("sick"):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    return os.getpid()


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
