"""Stand-in: results go to the worker that runs the program, never around it to the platform."""

from .rp_logger import RunPodLogger
from .rp_progress import progress_update

log = RunPodLogger()


async def send_result(session, job_data, job, is_stream=False):
    """Progress is passed on. A final result is what the handler returns, so it is not sent here."""
    del session, is_stream
    if isinstance(job_data, dict) and job_data.get("status") == "IN_PROGRESS":
        progress_update(job, job_data.get("output"))
        return
    log.warn("send_result does nothing here: return the result from the handler", job.get("id"))


async def stream_result(session, job_data, job):
    """Chunks are what a generator handler yields."""
    del session, job_data
    log.warn("stream_result does nothing here: yield the item from the handler", job.get("id"))
