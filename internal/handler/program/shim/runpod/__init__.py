"""The runpod package as a serverless handler uses it, served by the worker that started the program.

Only what a worker needs is here. Everything else, such as Endpoint or the file transfers, comes
from the installed runpod package the moment it is asked for.
"""

import os
import sys
import time

_imported = time.perf_counter()

from ._worker import lazy  # noqa: E402

lazy.tell()
__path__ = lazy.extended(__path__, __name__)
sys.meta_path.append(lazy.Missing)

from . import serverless  # noqa: E402
from .serverless.modules.rp_logger import RunPodLogger  # noqa: E402
from .version import __version__  # noqa: E402

SSH_KEY_PATH = os.path.expanduser("~/.runpod/ssh")
profile = "default"
endpoint_url_base = os.environ.get("RUNPOD_ENDPOINT_BASE_URL", "https://api.runpod.ai/v2")

_elsewhere = lazy.attributes(
    __name__,
    {
        ".api.ctl_commands": (
            "create_container_registry_auth",
            "create_endpoint",
            "create_pod",
            "create_template",
            "delete_container_registry_auth",
            "get_endpoints",
            "get_gpu",
            "get_gpus",
            "get_pod",
            "get_pods",
            "get_user",
            "resume_pod",
            "stop_pod",
            "terminate_pod",
            "update_container_registry_auth",
            "update_endpoint_template",
            "update_user_settings",
        ),
        ".cli.groups.config.functions": ("check_credentials", "get_credentials", "set_credentials"),
        ".endpoint": ("AsyncioEndpoint", "AsyncioJob", "Endpoint"),
    },
)


def __getattr__(name):
    if name == "api_key":
        return _api_key()
    return _elsewhere(name)


def _api_key():
    """The key of the stored credentials, as long as the program sets none."""
    if not lazy.installed() or not os.path.exists(os.path.expanduser("~/.runpod/config.toml")):
        return None
    stored = _elsewhere("get_credentials")(profile)
    return stored["api_key"] if stored else None
