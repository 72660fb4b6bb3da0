import runpod

log = runpod.RunPodLogger()


def handler(job):
    for shift in range(4):
        text = "x" * shift + "é€😀\n" * 10_000
        log.info(text, job["id"])
        print(text.replace("\n", "|"))
    raise ValueError("as told")


runpod.serverless.start({"handler": handler})
