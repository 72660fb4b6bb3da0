"""Says that it was started, leaves a child behind, and registers a check that fails where UNFIT says how."""

import os
import subprocess

import runpod

with open("started", "a", encoding="utf-8") as f:
    f.write(os.environ.get("RUNPOD_EARLY_FITNESS_CHECKS_DONE", "no") + "\n")

if "UNFIT" in os.environ:
    child = subprocess.Popen(["sleep", "600"])
    with open("child", "w", encoding="utf-8") as f:
        f.write(str(child.pid))

    @runpod.serverless.register_fitness_check
    def model_is_there():
        raise RuntimeError(os.environ["UNFIT"])


runpod.serverless.start({"handler": lambda job: 1})
