"""A generator: its items are streamed."""

import runpod


def handler(job):
    for i in range(job["input"].get("count", 3)):
        if i == job["input"].get("fail_at"):
            raise ValueError("boom")
        yield {"item": i}


runpod.serverless.start({"handler": handler})
