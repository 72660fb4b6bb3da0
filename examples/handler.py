import runpod


def handler(job):
    return {"hello": job["input"].get("name", "world")}


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
