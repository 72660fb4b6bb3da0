"""runpod.serverless.start(): from a config to a served or a locally run handler."""

import json
import os
import sys
import time

from ..serverless.modules.rp_fitness import checks
from ..serverless.modules.rp_logger import RunPodLogger, write
from ..version import __version__
from . import arguments, frames
from .runner import Runner

SOCKET = "RUNPODCTL_WORKER_SOCKET"

# What the worker's fitness checks go by; a program may have changed it since it was started.
LATE = (
    "RUNPOD_MIN_MEMORY_GB",
    "RUNPOD_MIN_DISK_PERCENT",
    "RUNPOD_MIN_CUDA_VERSION",
    "RUNPOD_NETWORK_CHECK_TIMEOUT",
    "RUNPOD_GPU_TEST_TIMEOUT",
    "RUNPOD_GPU_BENCHMARK_TIMEOUT",
    "RUNPOD_BINARY_GPU_TEST_PATH",
    "RUNPOD_GPU_MAX_ERROR_MESSAGES",
    "RUNPOD_GPU_COUNT",
    "RUNPOD_SKIP_AUTO_SYSTEM_CHECKS",
    "RUNPOD_SKIP_GPU_CHECK",
    "RUNPOD_SKIP_FITNESS_CHECKS",
)

log = RunPodLogger()
started = False  # a start() of this process has been served
before = None  # is told the config of a start() that the program calls


class Config:
    """What start() was given, checked."""

    def __init__(self, config):
        handler = config.get("handler")
        if not callable(handler):
            raise TypeError(
                'runpod.serverless.start() needs a function under "handler", got %r' % (handler,)
            )
        for key in ("jobs_fetcher", "jobs_handler"):
            if config.get(key):
                raise ValueError(
                    "start(): %r is not supported here: the worker fetches the jobs itself. "
                    "Remove it from the config." % key
                )
        self.handler = handler
        self.modifier = config.get("concurrency_modifier")
        if self.modifier is not None and not callable(self.modifier):
            log.warn("start(): concurrency_modifier is not a function: %r; ignored" % (self.modifier,))
            self.modifier = None
        self.aggregate = bool(config.get("return_aggregate_stream"))
        self.refresh = bool(config.get("refresh_worker"))
        self.debug = bool(config["rp_args"].get("rp_debugger"))
        self.ready_ms = config["reference_counter_start"]
        self.checks = list(checks)

    def runner(self):
        debug = None
        if self.debug:
            from ..serverless.utils import rp_debugger

            debug = rp_debugger.added_to(self.ready_ms)
        return Runner(self.handler, self.aggregate, self.refresh, debug)


def start(config):
    path = os.environ.get(SOCKET)
    if _is_reimport(sys._getframe(1).f_back):
        _say_second()
        return
    if not isinstance(config, dict):
        raise TypeError(
            'runpod.serverless.start() takes a dict, as in start({"handler": handler}), not a %s'
            % type(config).__name__
        )
    if before:
        before(config)
    config["reference_counter_start"] = time.perf_counter()
    config["rp_args"] = arguments.parse(log)
    if config["rp_args"]["rp_serve_api"]:
        sys.stderr.write(
            "--rp_serve_api: this program's API is served by the tool itself.\n"
            "Use: runpodctl-worker serve -- python %s\n" % arguments.program()
        )
        sys.exit(2)
    if config["rp_args"]["test_input"] is not None:
        _run_local(Config(config), config["rp_args"]["test_input"], path)
    if not path:
        sys.exit(
            "runpod.serverless.start(): %s is not set, so there is no worker to take jobs from.\n"
            "Start the program with: runpodctl-worker serve -- python %s" % (SOCKET, arguments.program())
        )
    _serve(Config(config), path)


def _serve(config, path):
    global started
    control = frames.Connection(path)
    guess = kind(config.handler)
    hello = {
        "name": os.path.basename(arguments.program()) or "python",
        "python": "%d.%d" % sys.version_info[:2],
        "kind": guess,
        "modifier": config.modifier is not None,
        "aggregate": config.aggregate,
        "checks": [getattr(check, "__name__", repr(check)) for check in config.checks],
        "environ": {name: os.environ[name] for name in LATE if name in os.environ},
    }
    control.send(frames.HELLO, os.getpid(), json.dumps(hello).encode())
    answer = control.receive()
    if answer is None or answer[0] != frames.WELCOME:
        control.close()
        _say_second()
        return
    started = True
    settings = json.loads(bytes(answer[2]))
    config.aggregate = config.aggregate or settings["aggregate"]
    config.debug = config.debug or settings["debug"]
    if settings["log_level"]:
        arguments.set_level(log, settings["log_level"])
    banner()

    from .worker import Worker

    worker = Worker(control, path, settings, config.runner(), config)
    worker.serve("async" in guess)


def _run_local(config, test_input, path):
    if path:  # the worker should not take the end of this program for a failure to start
        connection = frames.Connection(path)
        connection.send(frames.LOCAL)
        connection.receive()
        connection.close()
    banner()
    from . import progress
    from .local import run

    progress.local = True

    sys.exit(run(config, test_input))


def banner():
    write("--- Starting Serverless Worker |  Version %s ---" % __version__)


def kind(handler):
    """A guess, by how the function was written, at what its call will give."""
    while hasattr(handler, "func") and hasattr(handler, "keywords"):  # functools.partial
        handler = handler.func
    if not hasattr(handler, "__code__"):
        handler = getattr(handler, "__func__", None) or getattr(type(handler), "__call__", handler)
    flags = getattr(getattr(handler, "__code__", None), "co_flags", 0)
    if flags & 0x200:  # inspect.CO_ASYNC_GENERATOR
        return "async generator"
    if flags & 0x80:  # inspect.CO_COROUTINE
        return "async"
    return "generator" if flags & 0x20 else "sync"  # inspect.CO_GENERATOR


def _is_reimport(caller):
    """Is start() called by a file that multiprocessing imports again for a spawned child?"""
    if caller is None:  # by no Python code: it is the whole of a thread, or of an atexit call
        return False
    return caller.f_globals.get("__name__") == "__mp_main__" and caller.f_code.co_name == "<module>"


def _say_second():
    log.warn(
        "runpod.serverless.start() was called again below the same program, and returns at once. "
        'Guard it with if __name__ == "__main__": where child processes import the file.'
    )
