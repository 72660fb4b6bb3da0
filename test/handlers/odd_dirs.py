"""Mirrors directories and brings them back, as a job names them, and tells what came of it."""

import os
import pathlib
import shutil

import runpod

root = pathlib.Path(os.environ["ROOT"])
volume, data = root / "volume", root / "data"


def make():
    for name, text in {"file": "file", "d/small": "s", "d/in/large": "l" * 300_000, "new\nline/file": "n"}.items():
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def wipe(folder):
    """Leaves the links, which the class does not know."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif not path.is_symlink():
            path.unlink()


def handler(job):
    wipe(volume)
    make()
    cache = runpod.serverless.VolumeCache(job["input"]["dirs"], volume_path=str(volume), best_effort=False)
    cold = cache.hydrate()
    cache.sync(background=False)
    wipe(data)
    warm = cache.hydrate()
    return {"cold": cold, "warm": warm, "found": sorted(str(path.relative_to(data)) for path in data.rglob("*"))}


if __name__ == "__main__":
    volume.mkdir()
    data.mkdir()
    (data / "link").symlink_to("d")
    (data / "dangling").symlink_to("nothing")
    os.chdir(data)
    runpod.serverless.start({"handler": handler})
