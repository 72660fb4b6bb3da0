"""Ends its process with every job. Its check passes once."""

import os

import runpod


@runpod.serverless.register_fitness_check
def passes_once():
    if os.path.exists("passed"):
        raise RuntimeError("worn out")
    with open("passed", "w", encoding="utf-8"):
        pass


def handler(_job):
    os._exit(3)


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
