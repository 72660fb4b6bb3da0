"""What becomes of the value, the stream or the exception that a handler gave."""

import os
from json import dumps

from ..serverless.modules.rp_logger import RunPodLogger, shorten
from . import strict
from .frames import LENGTH

REFRESH, STREAM, OUTPUT, CANCELLED = 1, 2, 4, 8  # the flags of a DONE frame

_LONGEST = 64 * 1024  # bytes of an error: more helps nobody
_NO_TRACE = "(its traceback could not be made)"
_SHIM = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Outcome:
    """The end of a job, as the DONE frame carries it. The output is in parts, as encode_output() makes them."""

    def __init__(self, output=None, error="", flags=0):
        self.output, self.error, self.flags = output, error, flags

    def parts(self):
        # The text of an error may hold anything, and it must arrive.
        error = self.error.encode("utf-8", "backslashreplace")
        if len(error) > strict.LIMIT:
            error = strict.too_large("the error", len(error)).encode()
        if self.output is None:
            return LENGTH.pack(self.flags, len(error)), error
        return LENGTH.pack(self.flags | OUTPUT, len(error)), error, *self.output


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
        return Outcome(strict.encode_output(rest), error, flags)
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
        whole = b"[" + b",".join(self.kept or ()) + b"]"
        try:
            strict.check_size(len(whole), "output")
            return Outcome([whole], "", self.flags)
        except strict.NotJSON as fault:
            return Outcome(None, str(fault), self.flags)


def of_exception(error, job, flags=0):
    """The outcome of an exception: logged, and made the error object that clients know."""
    if type(error) is strict.NotJSON:
        return Outcome(None, str(error), flags)
    from ..version import __version__

    info = {
        "error_type": _attempt(lambda: str(type(error)), type.__repr__(type(error))),
        "error_message": _words(error),
        "error_traceback": _attempt(lambda: _traceback(error), _NO_TRACE),
        "hostname": os.environ.get("RUNPOD_POD_HOSTNAME", "unknown"),
        "worker_id": os.environ.get("RUNPOD_POD_ID", "unknown"),
        "runpod_version": __version__,
    }
    logs = job.logs()  # without the exception itself
    if logs:
        info["logs"] = logs
    info = _small(info)
    _attempt(lambda: _log(info, job.id))
    return Outcome(None, dumps(info), flags)


def _small(info):
    """The same, its texts cut until they fit into an error."""
    limit = _LONGEST
    while True:
        small = {key: shorten(text, limit) for key, text in info.items()}
        if len(dumps(small)) <= _LONGEST:
            return small
        limit //= 2


# An exception is the program's own code, down to the text of its class. Whatever that raises
# must not take the place of the exception, nor cost the jobs beside it.


def name(error):
    return _attempt(lambda: str(type(error).__name__), "an exception")


def message(error):
    return shorten(_words(error), _LONGEST)


def _words(error):
    return _attempt(lambda: str(error), "(its text could not be made)")


def line(error):
    return "%s: %s" % (name(error), message(error))


def failure(error):
    """What went wrong with a fitness check, for the worker."""
    return {"type": name(error), "message": message(error)}


def _traceback(error):
    import traceback

    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_SHIM):
        trace = trace.tb_next
    lines = traceback.format_exception(type(error), error, trace or error.__traceback__)
    return "".join(lines)


def _log(info, job_id):
    log = RunPodLogger()
    log.error("Captured Handler Exception", job_id)
    log.error(dumps({key: text for key, text in info.items() if key != "logs"}, indent=4))


def _attempt(make, otherwise=None):
    try:
        return make()
    except BaseException:
        return otherwise
