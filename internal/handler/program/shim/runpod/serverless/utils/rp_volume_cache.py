"""VolumeCache: directories that are warm on a cold start, by way of a mirror on the network volume.

The program that started this one does the copying. Where it cannot be run the class of the installed runpod package does,
and without one nothing is cached.
"""

import atexit
import json
import os
import subprocess
import sys
import threading

from ..modules.rp_logger import RunPodLogger, write

_BINARY = "RUNPODCTL_WORKER_BINARY"
_JOIN_TIMEOUT_SECONDS = 30.0  # a volume that hangs must not keep the process from its end

log = RunPodLogger()

_said = set()  # what need not be said again


class VolumeCache:
    """Directories with a mirror at {volume_path}/.cache/{namespace}.

    hydrate() copies from the mirror what is missing here, sync() copies to it what has changed here. As a context
    manager it does the one at the beginning and the other at the end. Without a volume or a namespace nothing happens.
    """

    def __init__(
        self, dirs, *, namespace=None, volume_path="/runpod-volume", best_effort=True, max_workers=None
    ):
        if isinstance(dirs, (str, bytes, os.PathLike)):
            dirs = [dirs]
        self._dirs = [os.path.realpath(os.fsdecode(os.fspath(path))) for path in dirs]
        self._namespace = namespace or os.environ.get("RUNPOD_ENDPOINT_ID") or ""
        if self._namespace in (".", "..") or "/" in self._namespace or "\\" in self._namespace:
            raise ValueError("namespace must be a single safe path component, got %r" % self._namespace)
        self._volume_path = os.fsdecode(os.fspath(volume_path))
        self._best_effort = best_effort
        if max_workers is not None and max_workers < 1:
            raise ValueError("max_workers must be a positive integer, got %r" % max_workers)
        self._max_workers = max_workers

    @property
    def available(self):
        """Is there a volume, and a namespace to keep the mirror under?"""
        return bool(self._namespace) and os.path.isdir(self._volume_path)

    @property
    def _mirror_root(self):
        return os.path.join(self._volume_path, ".cache", self._namespace)

    def hydrate(self):
        """Copy from the mirror what is missing or older here. Returns the number of files copied."""
        return self._guarded(self._hydrate) if self._dirs and self.available else 0

    def sync(self, *, background=True):
        """Copy to the mirror what has changed here, by default beside whatever comes next.

        The end of the process waits for it.
        """
        if not self._dirs or not self.available:
            return
        if not background:
            self._guarded(self._sync)
            return
        thread = threading.Thread(target=self._guarded, args=(self._sync,), daemon=True)
        _pending[:] = [other for other in _pending if other.is_alive()]
        thread.start()
        _pending.append(thread)

    def __enter__(self):
        self.hydrate()
        return self

    def __exit__(self, *exc):
        self.sync(background=True)

    def _guarded(self, work):
        try:
            return work()
        except Exception as error:
            if not self._best_effort:
                raise
            log.warn("VolumeCache operation failed: %s" % error)
            return 0

    def _hydrate(self):
        try:
            report = self._run("hydrate")
        except _NotRunnable as reason:
            other = self._substitute(reason)
            return other.hydrate() if other else 0
        files, small = report.get("files", 0), report.get("small", 0)
        if small:
            log.info("VolumeCache: extracted %d small file(s)" % small)
        if files:
            log.info("VolumeCache: hydrated %d file(s) from %s" % (files, self._mirror_root))
        return files

    def _sync(self):
        try:
            files = self._run("sync").get("files", 0)
        except _NotRunnable as reason:
            other = self._substitute(reason)
            return other.sync(background=False) if other else None
        if files:
            log.info("VolumeCache: synced %d file(s) to %s" % (files, self._mirror_root))
        return files

    def _run(self, action):
        """Have the worker's program do it. Returns its report."""
        binary = os.environ.get(_BINARY)
        if not binary:
            raise _NotRunnable("%s is not set" % _BINARY)
        command = [binary, "cache", action, "--json", "--log-level=WARN"]
        command += ["--volume=" + self._volume_path, "--namespace=" + self._namespace]
        if self._max_workers:
            command.append("--copiers=%d" % self._max_workers)
        try:
            done = subprocess.run(
                command + ["--"] + self._dirs,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            raise _NotRunnable(str(error)) from error
        said = done.stderr.decode(errors="replace").splitlines()
        failure = _error(said.pop() if said and done.returncode else "")
        for line in said:
            if line not in _said:
                _said.add(line)
                write(line)
        if done.returncode:
            raise OSError(failure or "%s ended with code %d" % (binary, done.returncode))
        return json.loads(done.stdout).get("report", {})

    def _substitute(self, reason):
        """The cache of the installed package, None without one."""
        installed = _installed_class()
        if installed:
            return installed(
                self._dirs,
                namespace=self._namespace,
                volume_path=self._volume_path,
                best_effort=self._best_effort,
                max_workers=self._max_workers,
            )
        if not self._best_effort:
            raise OSError("VolumeCache cannot run the worker's program: %s" % reason)
        if reason.args not in _said:
            _said.add(reason.args)
            log.warn("VolumeCache: nothing is cached, since the worker's program cannot be run: %s" % reason)
        return None


class _NotRunnable(Exception):
    """The worker's program cannot be run here."""


def _error(line):
    """The message of an error that the worker's program has printed, empty if the line is none."""
    try:
        return json.loads(line)["error"]
    except (ValueError, TypeError, KeyError):
        return line


def _installed_class():
    """The class that this one stands before in the installed package, None without one."""
    from importlib import util

    name = __name__ + "_installed"
    for place in sys.modules[__package__].__path__[1:]:
        file = os.path.join(place, "rp_volume_cache.py")
        if name not in sys.modules and os.path.isfile(file):
            spec = util.spec_from_file_location(name, file)
            module = util.module_from_spec(spec)
            spec.loader.exec_module(module)
            sys.modules[name] = module
    return getattr(sys.modules.get(name), "VolumeCache", None)


_pending = []  # threads of syncs in the background


def _join_pending():
    for thread in list(_pending):
        thread.join(_JOIN_TIMEOUT_SECONDS)
        if thread.is_alive():
            log.warn(
                "VolumeCache: background sync did not finish within %.0fs at exit; cache may be incomplete"
                % _JOIN_TIMEOUT_SECONDS
            )


atexit.register(_join_pending)
