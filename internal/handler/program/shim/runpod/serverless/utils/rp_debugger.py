"""Timings inside a handler, added to its output with --rp_debugger."""

import datetime
import platform
import time

from ...version import __version__


class Checkpoints:
    """The named timings of the present job. There is one for the process."""

    _instance = None

    def __new__(cls):
        if Checkpoints._instance is None:
            Checkpoints._instance = object.__new__(cls)
            Checkpoints._instance.clear()
        return Checkpoints._instance

    def add(self, name):
        if name in self.name_lookup:
            raise KeyError('Checkpoint name "%s" already exists.' % name)
        self.name_lookup[name] = len(self.checkpoints)
        self.checkpoints.append({"name": name})

    def start(self, name):
        if name not in self.name_lookup:
            raise KeyError("Checkpoint name '%s' does not exist." % name)
        self._mark(name, "start")

    def stop(self, name):
        if name not in self.name_lookup:
            raise KeyError("Checkpoint name '%s' does not exist." % name)
        if "start" not in self.checkpoints[self.name_lookup[name]]:
            raise KeyError("Checkpoint has not been started.")
        self._mark(name, "end", "stop")

    def _mark(self, name, key, utc=None):
        checkpoint = self.checkpoints[self.name_lookup[name]]
        checkpoint[key] = time.perf_counter()
        now = datetime.datetime.now(datetime.timezone.utc)
        checkpoint[(utc or key) + "_utc"] = now.isoformat() + "Z"

    def get_checkpoints(self):
        """The finished timings."""
        results = []
        for checkpoint in self.checkpoints:
            if "start" in checkpoint and "end" in checkpoint:
                start, end = checkpoint.pop("start"), checkpoint.pop("end")
                checkpoint["duration_ms"] = (end - start) * 1000
                results.append(checkpoint)
        return results

    def clear(self):
        self.checkpoints = []
        self.name_lookup = {}


class LineTimer:
    """Times the lines of a with block."""

    def __init__(self, name):
        self.checkpoints = Checkpoints()
        self.name = name
        self.checkpoints.add(name)

    def __enter__(self):
        self.checkpoints.start(self.name)

    def __exit__(self, *args):
        self.checkpoints.stop(self.name)


class FunctionTimer:
    """Times the calls of a function, as its decorator."""

    def __init__(self, function):
        self.function = function
        self.checkpoints = Checkpoints()

    def __call__(self, *args, **kwargs):
        name = self.function.__name__
        self.checkpoints.add(name)
        self.checkpoints.start(name)
        try:
            return self.function(*args, **kwargs)
        finally:
            if name in self.checkpoints.name_lookup:
                self.checkpoints.stop(name)


def get_debugger_output():
    """The system and the timings so far, which are then forgotten."""
    timestamps = Checkpoints().get_checkpoints()
    clear_debugger_output()
    return {
        "system_info": {
            "os": "%s %s" % (platform.system(), platform.release()),
            "processor": _processor(),
            "python_version": platform.python_version(),
            "runpod": __version__,
        },
        "timestamps": timestamps,
    }


def clear_debugger_output():
    Checkpoints().clear()


def _processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as info:
            for line in info:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "Unable to get processor info."


def added_to(started):
    """A function that adds the debugger's block to an output, where it is a dict."""
    import runpod

    ready_ms = (started - runpod._imported) * 1000

    def add(output):
        block = get_debugger_output()
        block["ready_delay_ms"] = ready_ms
        return {**output, "rp_debugger": block} if isinstance(output, dict) else output

    return add
