"""Progress of a running job."""

from ..._worker import progress


def progress_update(job, progress_value=None, **named):
    """Show a value as the output of the running job. Returns at once."""
    progress.update(job, named.get("progress", progress_value))
