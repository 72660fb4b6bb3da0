"""Reports a first step and waits for the gate, then reports 19 more and returns at once. A thread that
outlives the job reports one more."""

import pathlib
import threading
import time

import runpod


def report_late(job):
    time.sleep(0.5)
    runpod.serverless.progress_update(job, "late")
    pathlib.Path(job["input"]["late"]).touch()


def handler(job):
    runpod.serverless.progress_update(job, 0)
    while not pathlib.Path(job["input"]["gate"]).exists():
        time.sleep(0.01)
    threading.Thread(target=report_late, args=(job,), daemon=True).start()
    for step in range(1, 20):
        runpod.serverless.progress_update(job, step)
    return "done"


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
