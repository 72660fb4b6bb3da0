"""RunPodLogger: one line per message on stdout, JSON on the platform."""

import os
import sys
from contextvars import ContextVar

MAX_MESSAGE_LENGTH = 4096
_LONGEST_LINE = 16 * 1024  # bytes at which log collectors cut a line in two
LOG_LEVELS = ["NOTSET", "TRACE", "DEBUG", "INFO", "WARN", "ERROR"]
_ALIASES = {"WARNING": "WARN", "FATAL": "ERROR", "CRITICAL": "ERROR"}
_DEFAULT = "DEBUG"
FIELDS = {"requestId", "message", "level"}  # of a line in JSON

_batch_id = ContextVar("runpod_batch_id", default=None)
_job = ContextVar("runpod_job", default=None)  # the present one; its id is that of lines which name none
named = False  # the worker reads each line, which tells it of which job it is, and shows it as if it had come by itself


# The names are those of the package, whose other modules import them.


def _set_batch_id(batch_id):
    """Name the batch of the present job, which its lines then carry. Returns what undoes it."""
    return _batch_id.set(batch_id)


def _reset_batch_id(token):
    _batch_id.reset(token)


def _validate_log_level(level):
    if isinstance(level, str):
        level = level.strip().upper()
        if level.isdigit():
            level = int(level)
        elif _ALIASES.get(level, level) in LOG_LEVELS:
            return _ALIASES.get(level, level)
    if isinstance(level, int) and 0 <= level < len(LOG_LEVELS):
        return LOG_LEVELS[level]
    raise ValueError("Invalid debug level: %s" % level)


class RunPodLogger:
    """The one logger of the process."""

    _instance = None
    level = _DEFAULT

    def __new__(cls):
        if RunPodLogger._instance is None:
            RunPodLogger._instance = object.__new__(cls)
        return RunPodLogger._instance

    def set_level(self, new_level):
        """Set the level by its name or its number."""
        self.level = _validate_log_level(new_level)
        self.info("Log level set to %s" % self.level)

    def log(self, message, message_level="INFO", job_id=None):
        if self.level == "NOTSET":
            return
        if message_level != "TIP" and LOG_LEVELS.index(message_level) < LOG_LEVELS.index(self.level):
            return
        write(format_line(str(message), message_level, job_id or getattr(_job.get(), "id", None)))

    def secret(self, secret_name, secret):
        """Note that there is a secret. Nothing of it is shown, not even its length."""
        del secret
        self.info("%s: [REDACTED]" % secret_name)

    def debug(self, message, request_id=None):
        self.log(message, "DEBUG", request_id)

    def info(self, message, request_id=None):
        self.log(message, "INFO", request_id)

    def warn(self, message, request_id=None):
        self.log(message, "WARN", request_id)

    def error(self, message, request_id=None):
        self.log(message, "ERROR", request_id)

    def tip(self, message):
        self.log(message, "TIP")

    def trace(self, message, request_id=None):
        self.log(message, "TRACE", request_id)


def shorten(message, limit=MAX_MESSAGE_LENGTH):
    """Cut the middle out of a long message, and words that it would leave torn: nobody would find a part of a secret."""
    if len(message) <= limit:
        return message
    half = limit // 2
    head = half - _torn(message[:half][::-1])
    tail = half - _torn(message[-half:])
    note = "\n...TRUNCATED %d CHARACTERS...\n" % (len(message) - head - tail)
    return message[:head] + note + message[len(message) - tail :]


def _torn(text):
    """The length of the word that a text begins with, as far as a secret may be as long; 0 if there is no other."""
    ends = [i for i in map(text.find, " \t\n\"'<>") if i >= 0]
    return min(min(ends), 1024) if ends else 0


def as_json():
    """Are lines for the platform, not for people?"""
    wanted = os.environ.get("RUNPODCTL_WORKER_LOG_FORMAT")
    return named or wanted == "json" or bool(wanted != "text" and os.environ.get("RUNPOD_ENDPOINT_ID"))


def format_line(message, level, job_id):
    """A message as it stands in the log, with its batch if it has one, and without what is too much."""
    batch_id = _batch_id.get()
    if batch_id and level:
        message = "[batchId=%s] %s" % (batch_id, message)
    limit = MAX_MESSAGE_LENGTH
    line = _format(shorten(message, limit), level, job_id)
    while len(line) >= _LONGEST_LINE and limit > 1 and as_json():  # a character may take twelve
        limit //= 2
        line = _format(shorten(message, limit), level, job_id)
    return line


def _format(message, level, job_id):
    if as_json():
        from json import dumps

        return dumps({"requestId": job_id, "message": message, "level": level}, default=str)
    if job_id:
        message = "%s | %s" % (job_id, message)
    return level.ljust(7) + "| " + message


def write(line):
    """One write per line, so that threads do not mix. A log line must never cost a job."""
    try:
        out = sys.stdout
        try:
            out.write(line + "\n")
        except UnicodeEncodeError:
            out.write(line.encode("ascii", "backslashreplace").decode() + "\n")
        out.flush()
    except Exception:
        pass  # the program closed its stdout, or put something in its place that takes no text


def _level_of_environment():
    level = os.environ.get("RUNPOD_LOG_LEVEL") or os.environ.get("RUNPOD_DEBUG_LEVEL") or _DEFAULT
    try:
        RunPodLogger.level = _validate_log_level(level)
    except ValueError:
        RunPodLogger().warn(
            "RUNPOD_LOG_LEVEL=%s is none of %s; using %s" % (level, ", ".join(LOG_LEVELS), _DEFAULT)
        )


_level_of_environment()
