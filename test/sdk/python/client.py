"""Does with the official client all that it can do and prints what it saw as one JSON object.

Usage: client.py, with RUNPOD_ENDPOINT_BASE_URL naming the server. The endpoint is "local"; it runs
one job at a time and gives back the items of its input.
"""

import json
import time

import runpod

ITEMS = ["a", "b", "c"]


def wait_for(job, status):
    """Polls until the job has the status, or is past it."""
    deadline = time.monotonic() + 30
    while (seen := job.status()) in ("IN_QUEUE", "IN_PROGRESS") and seen != status:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{seen} for 30 s, wanted {status}")
        time.sleep(0.05)
    return seen


def main():
    runpod.api_key = "any"
    endpoint = runpod.Endpoint("local")
    seen = {}

    job = endpoint.run({"input": {"items": ITEMS}})
    seen["first_status"] = job.status()
    seen["output"] = job.output(timeout=30)
    seen["status"] = job.status()
    seen["run_sync"] = endpoint.run_sync({"input": {"items": ITEMS}}, timeout=30)
    seen["stream"] = list(endpoint.run({"input": {"items": ITEMS}}).stream())

    running = endpoint.run({"input": {"items": ITEMS, "seconds": 5}})
    seen["running"] = wait_for(running, "IN_PROGRESS")
    endpoint.run({"input": {"items": ITEMS}})
    seen["health"] = endpoint.health()
    seen["purge_queue"] = endpoint.purge_queue()
    seen["cancel"] = running.cancel()
    seen["cancelled"] = running.status()

    print(json.dumps(seen))


if __name__ == "__main__":
    main()
