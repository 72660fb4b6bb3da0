"""Asks for a fresh worker when its input says so."""

import runpod


def handler(job):
    return {"refresh_worker": bool(job["input"].get("refresh")), "done": True}


runpod.serverless.start({"handler": handler})
