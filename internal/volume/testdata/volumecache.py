"""Runs the official VolumeCache on demand: one JSON request per line, one JSON answer per line."""
import json
import sys
import time

from runpod.serverless.utils.rp_volume_cache import VolumeCache

answers = sys.stdout
sys.stdout = sys.stderr  # its log
print(json.dumps("ready"), file=answers, flush=True)
for line in sys.stdin:
    request = json.loads(line)
    cache = VolumeCache(request["dirs"], namespace=request["namespace"], volume_path=request["volume"], best_effort=False)
    began = time.perf_counter()
    count = cache.hydrate() if request["do"] == "hydrate" else cache._do_sync()
    print(json.dumps({"files": count, "seconds": time.perf_counter() - began}), file=answers, flush=True)
