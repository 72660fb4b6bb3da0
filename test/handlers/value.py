"""Returns the value it was given, whatever it is."""

import runpod


def handler(job):
    return job["input"]["value"]


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
