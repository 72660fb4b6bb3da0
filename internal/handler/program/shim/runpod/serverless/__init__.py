"""runpod.serverless, as a handler file knows it."""

from .._worker import lazy
from ..version import __version__ as runpod_version
from .modules.rp_fitness import register_fitness_check
from .modules.rp_logger import RunPodLogger
from .modules.rp_progress import progress_update

__path__ = lazy.extended(__path__, __name__)

__all__ = ["start", "progress_update", "register_fitness_check", "runpod_version", "VolumeCache"]

log = RunPodLogger()


def start(config):
    """Serve jobs with config["handler"] until the worker ends the program."""
    from .._worker import entry

    entry.start(config)


__getattr__ = lazy.attributes(__name__, {".utils.rp_volume_cache": ("VolumeCache",)})
