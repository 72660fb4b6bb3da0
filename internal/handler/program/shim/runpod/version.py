"""The release of the runpod package whose interface this one has."""

__version__ = "1.12.0"


def get_version():
    return __version__
