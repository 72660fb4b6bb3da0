"""Ends for no signal but KILL, and neither do those below it: a child, one in a session of its own, and one that has also
thrown off its parent and its environment. Their ids, and its own, are in the file PIDS."""

import os
import pathlib
import signal
import subprocess
import time

import runpod

deaf = 'trap "" TERM INT HUP; echo $$ >> "$0"; while :; do sleep 1; done'
daemon = 'setsid env -i PATH=/usr/bin:/bin sh -c \'%s\' "$0" >/dev/null 2>&1 & exit 0' % deaf


def handler(_job):
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(sig, signal.SIG_IGN)
    file = os.environ["PIDS"]
    subprocess.Popen(["sh", "-c", deaf, file])
    subprocess.Popen(["sh", "-c", deaf, file], start_new_session=True)
    subprocess.run(["sh", "-c", daemon, file])
    with open(file, "a") as pids:
        pids.write(f"{os.getpid()}\n")
    pathlib.Path(file + ".working").touch()
    while True:
        time.sleep(1)


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
