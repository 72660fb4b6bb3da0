"""Is there a GPU? Answered without loading torch."""

import subprocess


def is_available():
    """True if nvidia-smi runs and knows its name."""
    try:
        out = subprocess.run(["nvidia-smi"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return False
    return out.returncode == 0 and b"NVIDIA-SMI" in out.stdout
