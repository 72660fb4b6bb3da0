"""Fails in the way that its input names."""

import sys

import runpod


class Custom(BaseException):
    pass


def handler(job):
    way = job["input"]["way"]
    if way == "raise":
        raise ValueError("boom")
    if way == "base":
        raise Custom("not an Exception")
    if way == "error":
        return {"error": "bad input"}
    if way == "exit":
        sys.exit(3)
    return way


runpod.serverless.start({"handler": handler})
