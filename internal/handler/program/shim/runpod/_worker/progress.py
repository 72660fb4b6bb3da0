"""Progress updates: on the job's connection, or on a short one from another process."""

import os
import sys

from ..serverless.modules.rp_logger import RunPodLogger

log = RunPodLogger()

local = False  # the job is run by hand, so there is no one to tell

_ACK_SECONDS = 2


def update(job, value):
    from . import strict

    job_id = job["id"]
    try:
        data = strict.encode(value, "progress")
    except strict.NotJSON as error:
        log.warn("progress_update was dropped. %s" % error, job_id)
        return
    module = sys.modules.get("runpod._worker.worker")
    worker = module.current if module else None
    if worker and not worker.foreign:
        if not worker.progress(job_id, data):
            log.warn("progress_update was dropped: the job has ended", job_id)
        return
    path = os.environ.get("RUNPODCTL_WORKER_SOCKET")
    if path and not local:
        _from_another_process(path, job_id, data)
    else:
        log.info("Progress: %s" % data.decode(), job_id)


def _from_another_process(path, job_id, data):
    """A fork or a spawned child speaks for itself, and waits until it was heard: the job's
    own process may end the job at any moment after this one told it so."""
    from . import frames

    name = str(job_id).encode("utf-8", "replace")
    try:
        connection = frames.Connection(path, _ACK_SECONDS)
        connection.send(frames.PROGRESS_OF, len(name), name, data)
        connection.receive()
        connection.close()
    except OSError as error:
        log.warn("progress_update was dropped: %s" % error, job_id)
