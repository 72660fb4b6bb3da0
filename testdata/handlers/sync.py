"""A plain function: one job at a time, on the main thread."""

import runpod


def handler(job):
    return {"hello": job["input"].get("name", "nobody")}


runpod.serverless.start({"handler": handler})
