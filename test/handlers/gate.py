"""Leaves a line per start in DIR/started, then waits until DIR/<gate> is there. A job that is cancelled meanwhile
leaves DIR/<gate>.cancelled. The input may ask for a fresh worker, and for a failure. CONCURRENCY_MODIFIER is for workers that
are told how many jobs to run by the handler alone."""

import asyncio
import os
import pathlib

import runpod


async def handler(job):
    folder, gate = pathlib.Path(job["input"]["dir"]), job["input"]["gate"]
    with open(folder / "started", "a", encoding="utf-8") as log:
        log.write(f"{gate}\n")
    try:
        while not (folder / gate).exists():
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        (folder / f"{gate}.cancelled").touch()
        raise
    if not job["input"].get("refresh"):
        return gate
    result = {"gate": gate, "refresh_worker": True}
    if "error" in job["input"]:
        result["error"] = job["input"]["error"]
    return result


if __name__ == "__main__":
    config = {"handler": handler}
    if "CONCURRENCY_MODIFIER" in os.environ:
        wanted = int(os.environ["CONCURRENCY_MODIFIER"])
        config["concurrency_modifier"] = lambda _current: wanted
    runpod.serverless.start(config)
