"""Runs one job: calls the handler and goes by what comes back, not by how it was written.

A value ends the job, an awaitable is awaited, an iterator or an async iterator is a stream.
What needs an event loop is handed back to the caller; loop.py goes on with it.
"""

import sys
import types
from _queue import SimpleQueue  # queue itself imports threading and heapq for its other classes
from json import loads

from ..serverless.modules import rp_logger
from . import outcome

_GENERATOR_COROUTINE = 0x100  # inspect.CO_ITERABLE_COROUTINE

AGAIN = object()  # in place of a value: the call failed since it was not made inside an event loop


class Job:
    """A job between its JOB frame and its DONE frame."""

    printed = None  # what it has printed, where that is taken

    def __init__(self, number, raw, window):
        self.number = number
        self.raw = raw
        self.id = None
        self.input = None
        self.closed = False  # its DONE is on the wire: nothing may follow
        self.cancelled = False
        self.cancel_task = None  # set while the job is in the hands of the event loop
        self.on_credit = None
        self.waiting = None  # a future of the event loop, while the stream waits for credit
        self.credits = SimpleQueue()
        for _ in range(window):
            self.credits.put(None)

    def parse(self):
        # Broken UTF-8 in an input is the client's; it must not cost the worker.
        self.input = loads(str(self.raw, "utf-8", "replace"))
        self.id = self.input.get("id")

    def enter(self):
        """Let the log lines of this thread or task name the job, and its batch if it has one."""
        return rp_logger._set_batch_id(self.input.get("batchId")), rp_logger._job.set(self)

    @staticmethod
    def leave(tokens):
        batch, job = tokens
        rp_logger._job.reset(job)
        rp_logger._reset_batch_id(batch)

    def logs(self):
        return self.printed.logs() if self.printed else ""

    def credit(self, items=1):
        for _ in range(items):
            self.credits.put(None)
        if self.on_credit:
            self.on_credit()

    def cancel(self):
        self.cancelled = True
        self.credit()  # a stream that waits for one must look up
        if self.cancel_task:
            self.cancel_task()


class Runner:
    """The handler and the settings of start()."""

    def __init__(self, handler, aggregate=False, refresh=False, debug=None):
        self.handler, self.aggregate, self.debug = handler, aggregate, debug
        self.flags = outcome.REFRESH if refresh else 0
        self.known = False  # a call has come back, so what its first one needed has been found out

    def call(self, job, link, streams=True):
        """Run a job as far as it goes without an event loop.

        Returns None when the job has ended, else what is still to be awaited or iterated, or AGAIN.
        streams is false inside an event loop: a plain iterator is then returned too.
        """
        tokens = None
        try:
            if job.cancelled:
                self.end(job, link, outcome.Outcome(flags=outcome.CANCELLED))
                return None
            job.parse()
            if self.known or not streams:
                job.raw = None  # it may be large, and this is the only call
            link.opened(job)
            tokens = job.enter()
            value = self.handler(job.input)
            self.known = True
            if needs_loop(value):
                return value
            if not is_stream(value):
                self.end(job, link, outcome.of_value(value, self.debug))
            elif streams:
                self.stream(job, link, value)
            else:
                return value
        except (SystemExit, KeyboardInterrupt):
            raise  # as ever, they end the program
        except BaseException as error:
            if streams and not self.known and _asks_for_loop(error):
                return AGAIN
            self.end(job, link, outcome.of_exception(error, job))
        finally:
            if tokens:
                job.leave(tokens)
        return None

    def stream(self, job, link, items):
        """Send the items of a plain iterator, each when there is room for it."""
        stream = outcome.Stream(self.aggregate)
        try:
            for item in items:
                data = stream.take(item)
                job.credits.get()
                if job.cancelled:
                    break
                link.chunk(job, data)
                if stream.error:
                    break
            close(items)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            close(items)
            self.end(job, link, outcome.of_exception(error, job, stream.flags))
        else:
            self.end(job, link, self.streamed(job, stream))

    def streamed(self, job, stream):
        if job.cancelled:
            return outcome.Outcome(flags=outcome.STREAM | outcome.CANCELLED)
        return stream.outcome()

    def end(self, job, link, result):
        result.flags |= self.flags
        if job.printed:
            job.printed.finish()
        debugger = sys.modules.get("runpod.serverless.utils.rp_debugger")
        if debugger:  # the program uses it, and its timings are those of one job
            debugger.clear_debugger_output()
        link.done(job, result)


def needs_loop(value):
    kind = type(value)
    return (
        hasattr(kind, "__await__")
        or hasattr(kind, "__aiter__")
        or (kind is types.GeneratorType and value.gi_code.co_flags & _GENERATOR_COROUTINE)
    )


def _asks_for_loop(error):
    """Is it what asyncio raises where something needs a running event loop, and there is none?"""
    text = error.args[0] if type(error) is RuntimeError and error.args else None
    return isinstance(text, str) and (
        text == "no running event loop" or text.startswith("There is no current event loop")
    )


def is_stream(value):
    return hasattr(type(value), "__next__")


def close(items):
    """Let a generator run its finally blocks; what they raise comes too late to matter."""
    try:
        getattr(items, "close", bool)()
    except Exception as error:
        rp_logger.RunPodLogger().warn("The generator failed while it was closed. " + outcome.line(error))
