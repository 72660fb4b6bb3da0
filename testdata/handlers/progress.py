"""Reports progress while it works."""

import runpod


def handler(job):
    steps = job["input"].get("steps", 3)
    for step in range(steps):
        runpod.serverless.progress_update(job, f"step {step + 1}/{steps}")
    return {"steps": steps}


runpod.serverless.start({"handler": handler})
