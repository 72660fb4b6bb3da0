"""Leaves a line per start in DIR/started, then waits until DIR/<gate> is there. A job that is cancelled meanwhile
leaves DIR/<gate>.cancelled. The input may ask for a fresh worker, and for a failure."""

import asyncio
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
    runpod.serverless.start({"handler": handler})
