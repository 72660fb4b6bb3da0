"""Serves jobs from the worker that started this program, until it says that there are no more.

The thread that called start() reads jobs and runs the handler. A second thread reads the control
connection, so that a cancel arrives while the handler is busy.
"""

import json
import os
import threading
import time

from ..serverless.modules.rp_logger import shorten
from . import forks, frames, outcome, output, signals, strict
from .runner import Job

current = None  # the Worker of this process, once it serves

_ORPHAN_SECONDS = 5


class Worker:
    """The two connections and the jobs between them."""

    def __init__(self, control, path, settings, runner, config):
        self.control, self.path = control, path
        self.window, self.threads = settings["window"], settings["sync_threads"]
        self.error_logs, self.name_jobs = settings["error_logs"], settings["name_jobs"]
        self.runner, self.config = runner, config
        self.output = None
        self.is_async = False
        self.loop = None
        self.jobs = {}  # number → Job
        self.by_id = {}
        self.last = 0
        self.cancelled_early = set()  # cancelled before their JOB frame was read
        self.stopping = False
        self.foreign = False  # this process is a fork of the one that serves
        self.data = frames.Connection(path)
        self.data.send(frames.DATA)

    def serve(self, guess_async):
        """Run until the worker ends it. Returns normally then, as start() does."""
        global current
        current, self.is_async = self, guess_async
        self.signals = signals.Taken()
        self.output = output.Taken(self.error_logs, self.name_jobs)
        os.register_at_fork(after_in_child=self._forked)
        listener = threading.Thread(target=self._listen, name="runpod-control", daemon=True)
        listener.start()
        try:
            if guess_async or self.threads > 1:
                self._serve_on_loop(None)
            else:
                first = self._serve_here()
                if first:
                    self._serve_on_loop(first)
        finally:
            # A thread that is left blocked can crash an interpreter that is going down.
            self.stopping = True
            self.control.end()
            listener.join(1)
            self.signals.give_back()
            self.output.give_back()
            self.data.close()
            self.control.close()

    def _serve_on_loop(self, first):
        from .loop import Loop  # asyncio costs more to import than all the rest together

        Loop(self, self.threads).run(first)

    def _serve_here(self):
        """Serve on this thread without a loop, until a job proves to need one: that is returned."""
        pending = []

        def run(job):
            value = self.runner.call(job, self)
            if value is not None:
                pending.append((job, value))

        while not pending:
            frame = self.data.receive()
            if frame is None:
                return None
            self.dispatch(frame, run, self._check_here)
        return pending[0]

    def dispatch(self, frame, run, check):
        """Act on a frame of the data connection."""
        kind, number, payload = frame
        if kind == frames.JOB:
            job = Job(number, payload, self.window)
            self.jobs[number] = job
            self.last = number
            if number in self.cancelled_early:
                self.cancelled_early.discard(number)
                job.cancelled = True
            run(job)
        elif kind == frames.CHECK:
            check(self.config.checks[int(payload)], lambda answer: self._reply(number, answer))

    # What the runner reports.

    def opened(self, job):
        self.by_id[job.id] = job

    def found_async(self):
        if not self.is_async:
            self.is_async = True
            self._send(self.data, frames.ASYNC)

    def chunk(self, job, data):
        self._send(self.data, frames.CHUNK, job.number, data)

    def done(self, job, result):
        parts = result.parts()
        self.jobs.pop(job.number, None)
        if self.by_id.get(job.id) is job:
            del self.by_id[job.id]
        self._send(self.data, frames.DONE, job.number, *parts, closes=job)

    def progress(self, job_id, data):
        """False says that the job has ended, so that nothing may be said of it any more."""
        job = self.by_id.get(job_id)
        return job is not None and self._send(self.data, frames.PROGRESS, job.number, data, of=job)

    def _send(self, connection, kind, number=0, *parts, closes=None, of=None):
        if self.foreign:
            forks.leave()
        with connection.lock:
            if of and of.closed:
                return False
            if closes:
                closes.closed = True
            try:
                connection.write(kind, number, *parts)
            except OSError:
                pass  # the worker is gone; the control thread sees it too, and acts
        return True

    # What the control connection says.

    def _listen(self):
        while not self.stopping:
            frame = self.control.receive()
            if self.stopping or self.foreign:
                return
            if frame is None:
                self._orphaned()
                return
            kind, number, payload = frame
            if kind == frames.CREDIT:
                job = self.jobs.get(number)
                if job:
                    job.credit(int(payload))
            elif kind == frames.CANCEL:
                self._cancel(number)
            elif kind == frames.MODIFIER:
                self._ask_modifier(number, int(payload))
            elif kind == frames.SHUTDOWN:
                self._stop()

    def _cancel(self, number):
        job = self.jobs.get(number)
        if job:
            job.cancel()
        elif number > self.last:
            self.cancelled_early.add(number)

    def _ask_modifier(self, number, current_value):
        def ask():
            try:
                answer = {"value": shorten(strict.text(self.config.modifier(current_value)))}
            except BaseException as error:
                answer = {"error": outcome.line(error)}
            self._reply(number, answer)

        # Where there is a loop the function runs beside no handler code, as ever. Else it gets a
        # thread of its own: one that hangs must not take the cancels with it.
        if self.loop:
            self.loop.call_soon(ask)
        else:
            threading.Thread(target=ask, name="runpod-modifier", daemon=True).start()

    def _reply(self, number, answer):
        self._send(self.control, frames.REPLY, number, json.dumps(answer).encode())

    def _stop(self):
        self.stopping = True
        for job in list(self.jobs.values()):
            job.cancel()
        self.data.end()

    def _orphaned(self):
        """The worker has died: nobody will hear of a result. Leave, at leisure if possible."""
        self._stop()
        time.sleep(_ORPHAN_SECONDS)
        os._exit(1)

    # Fitness checks.

    def _check_here(self, check, reply):
        try:
            value = check()
            if hasattr(type(value), "__await__"):
                import asyncio

                asyncio.run(_wait_for(value))
        except Exception as error:
            reply(outcome.failure(error))
        else:
            reply({})

    # Forks of this process.

    def _forked(self):
        """In a fork of this process: it must not speak on its parent's connections."""
        self.foreign = True
        self.control.close()
        self.data.close()


async def _wait_for(value):
    await value
