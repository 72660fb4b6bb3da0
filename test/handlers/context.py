"""Returns all that a handler can know of its job and its worker."""

import os

import runpod


def handler(job):
    return {
        "job": job,
        "worker": os.environ.get("RUNPOD_POD_ID"),
        "endpoint": os.environ.get("RUNPOD_ENDPOINT_ID"),
    }


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
