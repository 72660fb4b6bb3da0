"""What a job prints: lines that name it, in the log and, where that was asked for, in its error."""

import sys
from _collections import deque
from _thread import RLock
from time import monotonic

from ..serverless.modules import rp_logger

_LONGEST_LINE = 64 * 1024  # characters that wait for the end of their line
_MOST_KEPT = 16 * 1024  # characters of all lines that an error carries
_EVERY = 5.0  # seconds between two looks at a progress bar


class Taken:
    """stdout and stderr of this process, as long as it serves."""

    def __init__(self, keep, named):
        """keep is how many lines of a job its error carries; named is as in rp_logger."""
        rp_logger.named = named
        self.pairs = []  # (the original, what stands in for it)
        if keep or rp_logger.as_json():
            self.pairs = [(out, Stream(out, keep)) for out in (sys.stdout, sys.stderr) if out is not None]
        _replace(self.pairs)

    def give_back(self):
        rp_logger.named = False
        _replace([(new, old) for old, new in self.pairs])


def _replace(pairs):
    logging = sys.modules.get("logging")
    handlers = [ref() for ref in logging._handlerList] if logging else []
    for old, new in pairs:
        if sys.stdout is old:
            sys.stdout = new
        if sys.stderr is old:
            sys.stderr = new
        for handler in handlers:  # these took hold of a stream when they were made
            try:
                if handler.stream is old:
                    handler.stream = new
            except Exception:
                pass  # it has none, or is of a kind that nobody here knows


class Stream:
    """Stands in for a stream. What is written outside of any job goes through as it is."""

    def __init__(self, stream, keep):
        self._stream, self._keep = stream, keep

    def write(self, text):
        job = rp_logger._job.get()
        if job is None or not isinstance(text, str):
            return self._stream.write(text)
        (job.printed or _begin(job, self._keep)).write(self._stream, text)
        return len(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def __getattr__(self, name):
        if name == "_stream":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self._stream, name)


def _begin(job, keep):
    """Most jobs print nothing, so what it takes is made with the first text. One step, since threads print side by side."""
    return vars(job).setdefault("printed", Printed(job, keep))


class Printed:
    """The output of one job. A line is passed on when it is whole, so that lines of jobs do not mix."""

    def __init__(self, job, keep):
        self.job_id = job.id
        self.kept = deque(maxlen=keep)
        self.begun = {}  # id of a stream → the stream, and a line without its end
        self.shown = monotonic()
        self.lock = RLock()  # a stream of the program's own may print in turn

    def write(self, stream, text):
        with self.lock:
            _, begun = self.begun.pop(id(stream), (stream, ""))
            *lines, rest = (begun + text).split("\n")
            for line in lines:
                self._line(stream, _visible(line))
            if "\r" in rest:
                if monotonic() - self.shown >= _EVERY:
                    self._line(stream, _visible(rest))
                rest = rest[rest.rstrip("\r").rfind("\r") + 1 :]
            if len(rest) > _LONGEST_LINE:
                self._line(stream, rest)
                rest = ""
            if rest:
                self.begun[id(stream)] = stream, rest

    def finish(self):
        """Pass on what has no end, since nothing more comes."""
        with self.lock:
            begun, self.begun = self.begun, {}
            for stream, rest in begun.values():
                try:
                    self._line(stream, _visible(rest))
                except Exception:
                    pass  # the program has closed it, which must not cost the job its result

    def logs(self):
        """The last lines, for the job's error."""
        with self.lock:
            self.finish()
            lines, size = [], 0
            for line in reversed(self.kept):
                size += len(line) + 1
                if size > _MOST_KEPT:
                    break
                lines.append(line)
            return "\n".join(reversed(lines))

    def _line(self, stream, line):
        if not line.strip():
            return
        self.shown = monotonic()
        record = _record(line)
        if self.kept.maxlen:
            message = record.get("message") if record else None
            self.kept.append(rp_logger.shorten(message if isinstance(message, str) else line))
        if rp_logger.named:
            if record is None or record.keys() != rp_logger.FIELDS:
                line = rp_logger.format_line(line, None, self.job_id)  # no level: it was printed, not logged
        elif record is None and rp_logger.as_json():
            line = rp_logger.format_line(line, "INFO", self.job_id)
        stream.write(line + "\n")


def _visible(line):
    """What a terminal would show of a line that was overwritten."""
    return line.rstrip("\r").rpartition("\r")[2]


def _record(line):
    """A line of a structured log as a dict."""
    if not line.lstrip().startswith("{"):
        return None
    from json import loads

    try:
        record = loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
