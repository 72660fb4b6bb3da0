"""Does as its input says. What kind of handler it is, its own flags say."""

import argparse
import asyncio
import os
import time

import runpod

flags = argparse.ArgumentParser()
flags.add_argument("--generator", action="store_true")
flags.add_argument("--async_generator", action="store_true")
flags.add_argument("--return_aggregate_stream", action="store_true")
options, _ = flags.parse_known_args()


def report_progress(job):
    wanted = job["input"].get("mock_progress", {})
    for update in wanted.get("updates", []):
        runpod.serverless.progress_update(job, update)
        time.sleep(wanted.get("wait_time", 0))


def end(job):
    """How the job ends once it has waited: with a value, an exception, or with the process."""
    wanted = job["input"]
    if wanted.get("mock_crash"):
        os._exit(1)
    if "mock_error" in wanted:
        raise RuntimeError(wanted["mock_error"])
    if "error_job_return" in wanted.get("mock_external", {}):
        return {"error": wanted["mock_external"]["error_job_return"]}
    if wanted.get("mock_refresh"):
        return {"refresh_worker": True, "result": wanted.get("mock_return")}
    return wanted.get("mock_return")


async def handler(job):
    await asyncio.to_thread(report_progress, job)
    await asyncio.sleep(job["input"].get("mock_delay", 0))
    return end(job)


def generator(job):
    report_progress(job)
    for item in end(job):
        time.sleep(job["input"].get("mock_delay", 0))
        yield item


async def async_generator(job):
    for item in end(job):
        await asyncio.sleep(job["input"].get("mock_delay", 0))
        yield item


if __name__ == "__main__":
    kind = generator if options.generator else async_generator if options.async_generator else handler
    runpod.serverless.start({"handler": kind, "return_aggregate_stream": options.return_aggregate_stream})
