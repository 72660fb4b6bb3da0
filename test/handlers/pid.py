"""Returns its process id and asks for a fresh worker after each job."""

import os

import runpod


def handler(_job):
    return {"pid": os.getpid(), "refresh_worker": True}


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
