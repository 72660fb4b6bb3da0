"""Prints more than a pipe holds, on both streams, and answers."""

import sys

import runpod


def handler(_job):
    for stream in (sys.stdout, sys.stderr):
        print("x" * 200_000, file=stream, flush=True)
    return "said"


runpod.serverless.start({"handler": handler})
