"""A handler with one fitness check, of the kind that CHECK names, and a child of its own whose id it leaves in the file CHILD.
While it loads it sets the variable in LATE, which is NAME=VALUE."""

import os
import subprocess

import runpod


def failing():
    raise RuntimeError(os.environ.get("REASON", "no model here"))


async def failing_later():
    failing()


def leaving():
    os._exit(0)


def loud():
    print("x" * (1 << 20))


async def good():
    print("looking around")


if __name__ == "__main__":
    if "LATE" in os.environ:
        os.environ.update([os.environ["LATE"].split("=")])
    runpod.serverless.register_fitness_check(globals()[os.environ["CHECK"]])
    if "CHILD" in os.environ:
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        with open(os.environ["CHILD"], "w") as file:
            file.write(f"{child.pid}\n")
    runpod.serverless.start({"handler": lambda job: job["input"]})
