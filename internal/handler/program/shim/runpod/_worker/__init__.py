"""The worker's side of a program: what stands behind runpod.serverless.start()."""
