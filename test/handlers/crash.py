"""Ends its process in the middle of a job, in the way that the input names, once the gate is there. Other jobs just wait
for theirs. CONCURRENCY_MODIFIER is for workers that are told how many jobs to run by the handler alone."""

import asyncio
import ctypes
import os
import pathlib
import signal
import threading

import runpod


def fall_in_a_thread():
    """An exception that nobody catches ends a thread; this program wants it to end the process."""

    def hook(failure):
        print(f"unhandled: {failure.exc_value}", flush=True)
        os._exit(70)

    threading.excepthook = hook
    threading.Thread(target=lambda: 1 / 0).start()


ways = {
    "thread": fall_in_a_thread,
    "exit": lambda: exit(3),
    "leave": lambda: os._exit(0),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segfault": lambda: ctypes.string_at(0),
}


async def handler(job):
    folder, gate = pathlib.Path(job["input"]["dir"]), job["input"]["gate"]
    with open(folder / "started", "a", encoding="utf-8") as log:
        log.write(f"{gate}\n")
    while not (folder / gate).exists():
        await asyncio.sleep(0.01)
    if "way" in job["input"]:
        print("last words of " + job["id"], flush=True)
        ways[job["input"]["way"]]()
        await asyncio.sleep(3600)
    return gate


if __name__ == "__main__":
    config = {"handler": handler}
    if "CONCURRENCY_MODIFIER" in os.environ:
        wanted = int(os.environ["CONCURRENCY_MODIFIER"])
        config["concurrency_modifier"] = lambda _current: wanted
    runpod.serverless.start(config)
