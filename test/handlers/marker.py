"""Says when it is loaded, and returns what it and a child of its own see of the early checks. Some of its variables may change
while it loads: those in LATE, a list of NAME=VALUE."""

import multiprocessing
import os
import sys

print("handler loads", file=sys.stderr, flush=True)

import runpod

MARKER = "RUNPOD_EARLY_FITNESS_CHECKS_DONE"

for pair in os.environ.get("LATE", "").split():
    name, _, value = pair.partition("=")
    os.environ[name] = value


def look(seen):
    seen.put(os.environ.get(MARKER))


def handler(_job):
    context = multiprocessing.get_context("spawn")
    seen = context.Queue()
    child = context.Process(target=look, args=(seen,))
    child.start()
    by_child = seen.get()
    child.join()
    return {"own": os.environ.get(MARKER), "child": by_child}


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
