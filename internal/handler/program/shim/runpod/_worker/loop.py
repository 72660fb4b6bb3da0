"""The event loop of a program with an async handler. Imported only for one."""

import asyncio
from types import GeneratorType, coroutine

from . import forks, outcome
from .runner import AGAIN, close, is_stream, needs_loop


class Loop:
    """Serves jobs on one event loop, on the thread that runs it.

    With threads, the calls of a handler that is still believed to be sync run on them.
    """

    def __init__(self, worker, threads=0):
        self.worker, self.runner = worker, worker.runner
        self.threads = threads
        self.pool = None
        self.tasks = set()

    def run(self, first=None):
        """Serve until the data connection ends. first is a job that turned out to be async."""
        try:
            _run(self._serve(first), first and first[1])
        except Leave as leave:
            raise leave.error

    def run_one(self, job, value):
        """Finish a single job, without a data connection."""

        async def finish():
            self._begin()
            await self._run(job, value)
            if self.ended.done():
                await self.ended

        try:
            _run(finish(), value)
        except Leave as leave:
            raise leave.error

    def _begin(self):
        self.loop = asyncio.get_running_loop()
        self.ended = self.loop.create_future()
        self.worker.loop = self

    async def _serve(self, first):
        self._begin()
        if self.threads > 1:
            from concurrent.futures import ThreadPoolExecutor

            self.pool = ThreadPoolExecutor(self.threads, "runpod-handler")
        if first:
            self._spawn(*first)
        fd = self.worker.data.sock.fileno()
        self.loop.add_reader(fd, self._readable)
        if self.worker.data.buffer:
            self._readable()
        try:
            await self.ended
        finally:
            self.loop.remove_reader(fd)
            for task in self.tasks:
                task.cancel()
            if self.pool:
                self.pool.shutdown(wait=False)

    def _readable(self):
        while True:
            frame = self.worker.data.receive()
            if frame is None:
                if not self.ended.done():
                    self.ended.set_result(None)
                return
            try:
                self.worker.dispatch(frame, self._spawn, self._check)
            except (SystemExit, KeyboardInterrupt) as end:
                self._leave(end)
            if not self.worker.data.buffer:
                return

    def _spawn(self, job, value=None):
        task = self.loop.create_task(self._run(job, value))
        self.tasks.add(task)
        task.add_done_callback(lambda done: self._finished(job, done))

    def _finished(self, job, task):
        self.tasks.discard(task)
        job.cancel_task = None
        if not job.closed:  # cancelled before its first step
            self.runner.end(job, self.worker, outcome.Outcome(flags=outcome.CANCELLED))
        if not task.cancelled() and task.exception():
            self._leave(task.exception())

    def _leave(self, error):
        """Let what ends a program come out of run()."""
        if self.worker.foreign:
            forks.leave()  # to close the loop would unhook the parent's: they share an epoll
        if not self.ended.done():
            self.ended.set_exception(Leave(error))

    async def _run(self, job, value):
        task = asyncio.current_task()
        job.on_credit = lambda: job.waiting and self.call_soon(self._wake, job)
        try:
            if value is None:
                value = await self._call(job)
            if value is AGAIN:
                self.pool = None
                value = self.runner.call(job, self.worker, streams=False)
            if value is None:
                return
            job.enter()
            job.cancel_task = lambda: self.call_soon(task.cancel)
            if job.cancelled:
                task.cancel()
            while needs_loop(value) and not hasattr(type(value), "__aiter__"):
                self.worker.found_async()
                value = await _awaitable(value)
            if hasattr(type(value), "__aiter__"):
                self.worker.found_async()
                await self._stream(job, value)
            elif is_stream(value):
                await self._stream(job, _each(value))
            else:
                self.runner.end(job, self.worker, outcome.of_value(value, self.runner.debug))
        except asyncio.CancelledError as error:
            if job.cancelled or self.ended.done():
                result = outcome.Outcome(flags=outcome.CANCELLED)
            else:  # the handler raised it by itself
                result = outcome.of_exception(error, job)
            self.runner.end(job, self.worker, result)
        except (SystemExit, KeyboardInterrupt) as end:
            job.closed = True
            self._leave(end)
        except BaseException as error:
            self.runner.end(job, self.worker, outcome.of_exception(error, job))

    async def _call(self, job):
        if self.pool and not self.worker.is_async:
            # A thread cannot be stopped: the job is back when the thread is.
            return await self.loop.run_in_executor(self.pool, self.runner.call, job, self.worker)
        return self.runner.call(job, self.worker, streams=False)

    async def _stream(self, job, items):
        stream = outcome.Stream(self.runner.aggregate)
        try:
            async for item in items:
                data = stream.take(item)
                while job.credits.empty():
                    await self._credit(job)
                job.credits.get()
                if job.cancelled:
                    break
                self.worker.chunk(job, data)
                if stream.error:
                    break
            result = self.runner.streamed(job, stream)
        except (asyncio.CancelledError, SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            result = outcome.of_exception(error, job, stream.flags)
        finally:
            await _aclose(items)
        self.runner.end(job, self.worker, result)

    async def _credit(self, job):
        job.waiting = self.loop.create_future()
        if job.credits.empty():  # it may have come between the two lines
            await job.waiting
        job.waiting = None

    def _wake(self, job):
        if job.waiting and not job.waiting.done():
            job.waiting.set_result(None)

    def call_soon(self, function, *args):
        try:
            self.loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            pass  # the loop has been closed: the program is about to end

    def _check(self, check, reply):
        async def run():
            try:
                value = check()
                if hasattr(type(value), "__await__"):
                    await value
            except Exception as error:
                reply(outcome.failure(error))
            else:
                reply({})

        task = self.loop.create_task(run())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


class Leave(BaseException):
    """Carries a SystemExit out of the loop, which would print it if a task raised it."""

    def __init__(self, error):
        super().__init__(error)
        self.error = error


def _run(main, value):
    """asyncio.run(), but on the loop of a future that the handler made while there was none."""
    loop = value.get_loop() if isinstance(value, asyncio.Future) else None
    if loop is None or loop.is_running() or loop.is_closed():
        asyncio.run(main)
        return
    try:
        loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _each(items):
    try:
        for item in items:
            yield item
    finally:
        close(items)


async def _aclose(items):
    try:
        if hasattr(items, "aclose"):
            await items.aclose()
    except Exception as error:
        from ..serverless.modules.rp_logger import RunPodLogger

        RunPodLogger().warn("The generator failed while it was closed. " + outcome.line(error))


@coroutine
def _generator_coroutine(value):
    return (yield from value)


def _awaitable(value):
    return _generator_coroutine(value) if isinstance(value, GeneratorType) else value
