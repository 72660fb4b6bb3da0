"""What this package does not have itself comes from the installed runpod package, when asked for."""

import os
import sys

# Modules of the full package. Importing one from its package, as in `from runpod.serverless.utils import rp_upload`, asks
# for an attribute first; only an error that is no AttributeError gets through to whoever reads it.
_FULL = frozenset(
    "api cli endpoint error http_client user_agent worker rp_download rp_upload rp_model_cache rp_ssrf "
    "rp_fastapi rp_gpu_fitness rp_handler rp_job rp_local rp_scale rp_system_fitness rp_tips worker_state".split()
)

_SHIM = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def tell():
    """Leave word beside the socket that the program has found this package."""
    try:
        place = os.path.dirname(os.environ["RUNPODCTL_WORKER_SOCKET"])
        os.close(os.open(os.path.join(place, "found"), os.O_CREAT | os.O_WRONLY, 0o600))
    except (KeyError, OSError):
        pass


def extended(path, package):
    """The path of a package: this one's directory, then those of installed packages."""
    tail = os.path.join(*package.split("."))
    here = list(path)
    for entry in sys.path:
        place = os.path.join(os.path.abspath(entry or os.curdir), tail)
        if place not in here and os.path.isfile(os.path.join(place, "__init__.py")):
            here.append(place)
    return here


def attributes(package, names):
    """A module __getattr__ that finds names in modules, and else the package's submodules."""
    home = {name: module for module, group in names.items() for name in group}

    def __getattr__(name):
        from importlib import import_module

        module = home.get(name)
        if module is None and name.startswith("__"):
            raise AttributeError("module %r has no attribute %r" % (package, name))
        try:
            if module is not None:
                return getattr(import_module(module, package), name)
            return import_module("." + name, package)
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("runpod"):
                raise  # a dependency of the installed package is missing: its name says so
            if module is None and (name not in _FULL or installed()):
                raise AttributeError("module %r has no attribute %r" % (package, name)) from None
            raise

    return __getattr__


class Missing:
    """The last finder: explains an import of what only the full package has."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("runpod.") and not installed():
            raise ModuleNotFoundError(
                "%s is part of the full runpod package, which is not installed: pip install runpod"
                % name,
                name=name,
            )
        return None


def installed():
    return len(sys.modules["runpod"].__path__) > 1
