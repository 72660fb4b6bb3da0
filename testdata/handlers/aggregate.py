"""A generator whose items are in the result too."""

import runpod


def handler(job):
    for i in range(job["input"].get("count", 3)):
        yield i


runpod.serverless.start({"handler": handler, "return_aggregate_stream": True})
