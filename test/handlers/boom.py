"""A generator that fails after the items it was given."""

import runpod


def handler(job):
    yield from job["input"].get("items", [])
    raise ValueError("boom")


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
