"""Downloads a model where none is, in the layout of the Hugging Face hub, and tells what it has found."""

import hashlib
import os
import pathlib

import runpod

models = pathlib.Path(os.environ["MODELS"])
blob = models / "blobs" / "abc"
link = models / "snapshots" / "rev" / "model.bin"
ref = models / "refs" / "main"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def load():
    if not blob.exists():
        for folder in (blob.parent, link.parent, ref.parent):
            folder.mkdir(parents=True, exist_ok=True)
        part = blob.with_suffix(".incomplete")
        part.write_bytes(b"weights " * (int(os.environ.get("SIZE", "1000000")) // 8))
        (models / "interrupted.incomplete").write_bytes(b"wei")
        part.rename(blob)
        ref.write_text("rev")
    if not link.is_symlink():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to("../../blobs/abc")


def files():
    return {str(path.relative_to(models)): digest(path) for path in sorted(models.rglob("*")) if path.is_file()}


def handler(job):
    if "learn" in job["input"]:
        (models / job["input"]["learn"]).write_text(job["input"]["learn"])
    return {"found": found, "link": os.readlink(link), "now": files()}


found = files()
if os.environ.get("VOLUME"):
    with runpod.serverless.VolumeCache(dirs=[models], volume_path=os.environ["VOLUME"]):
        found = files()
        load()
else:
    load()

if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
