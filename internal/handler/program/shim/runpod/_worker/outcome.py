"""What becomes of the value, the stream or the exception that a handler gave."""

import os

from . import strict
from .frames import LENGTH

REFRESH, STREAM, OUTPUT, CANCELLED = 1, 2, 4, 8  # the flags of a DONE frame

_SHIM = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Outcome:
    """The end of a job, as the DONE frame carries it."""

    def __init__(self, output=None, error="", flags=0):
        self.output, self.error, self.flags = output, error, flags

    def parts(self):
        # The text of an error may hold anything, and it must arrive.
        error = self.error.encode("utf-8", "backslashreplace")
        if self.output is None:
            return LENGTH.pack(self.flags, len(error)), error
        return LENGTH.pack(self.flags | OUTPUT, len(error)), error, self.output


def split(value):
    """Take the two keys with a meaning out of a dict: (rest, error text, refresh)."""
    if not isinstance(value, dict) or not ("error" in value or "refresh_worker" in value):
        return value, "", False
    rest = dict(value)  # the handler may keep its dict and return it again
    error = rest.pop("error", None)
    refresh = rest.pop("refresh_worker", None)
    return rest, (strict.text(error) if error else ""), bool(refresh)


def of_value(value, debug=None):
    """The outcome of a plain return value."""
    rest, error, refresh = split(value)
    flags = REFRESH if refresh else 0
    if debug is not None and not error:
        rest = debug(rest)
    if error and rest == {}:
        return Outcome(None, error, flags)
    try:
        return Outcome(strict.encode(rest, "output"), error, flags)
    except strict.NotJSON as fault:
        return Outcome(None, error or str(fault), flags)


class Stream:
    """The items of a generator on their way out."""

    def __init__(self, aggregate):
        self.kept = [] if aggregate else None
        self.count = 0
        self.error = ""
        self.flags = STREAM

    def take(self, item):
        """The item as it goes out. A true self.error afterwards says that it is the last one."""
        rest, self.error, refresh = split(item)
        if refresh:
            self.flags |= REFRESH
        if self.error:
            rest["error"] = item["error"]
        data = strict.encode(rest, "stream[%d]" % self.count)
        self.count += 1
        if self.kept is not None:
            self.kept.append(data)
        return data

    def outcome(self):
        if self.error:
            return Outcome(None, self.error, self.flags)
        return Outcome(b"[" + b",".join(self.kept or ()) + b"]", "", self.flags)


def of_exception(error, job_id, flags=0):
    """The outcome of an exception: logged, and made the error object that clients know."""
    if isinstance(error, strict.NotJSON):
        return Outcome(None, str(error), flags)
    import json
    import traceback

    from ..serverless.modules.rp_logger import RunPodLogger
    from ..version import __version__

    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_SHIM):
        trace = trace.tb_next
    try:
        message = str(error)
    except Exception:
        message = "(its text could not be made)"
    info = {
        "error_type": str(type(error)),
        "error_message": message,
        "error_traceback": "".join(
            traceback.format_exception(type(error), error, trace or error.__traceback__)
        ),
        "hostname": os.environ.get("RUNPOD_POD_HOSTNAME", "unknown"),
        "worker_id": os.environ.get("RUNPOD_POD_ID", "unknown"),
        "runpod_version": __version__,
    }
    log = RunPodLogger()
    log.error("Captured Handler Exception", job_id)
    log.error(json.dumps(info, indent=4))
    return Outcome(None, json.dumps(info), flags)
