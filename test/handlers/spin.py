"""Burns every core and floods stdout for some seconds."""

import multiprocessing
import time

import runpod


def burn(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def handler(job):
    seconds = job["input"]["seconds"]
    burners = [
        multiprocessing.Process(target=burn, args=(seconds,))
        for _ in range(multiprocessing.cpu_count())
    ]
    for burner in burners:
        burner.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        print("x" * 200)
    for burner in burners:
        burner.join()
    return "cool"


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
