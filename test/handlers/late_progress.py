"""Reports 20 steps and returns at once; a thread that outlives the job reports one more."""

import pathlib
import threading
import time

import runpod


def report_late(job):
    time.sleep(0.5)
    runpod.serverless.progress_update(job, "late")
    pathlib.Path(job["input"]["late"]).touch()


def handler(job):
    threading.Thread(target=report_late, args=(job,), daemon=True).start()
    for step in range(20):
        runpod.serverless.progress_update(job, step)
    return "done"


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
