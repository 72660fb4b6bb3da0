"""An object whose call is a generator: nothing about it says so before it is called."""

import runpod


class Handler:
    def __init__(self, greeting):
        self.greeting = greeting

    def __call__(self, job):
        yield self.greeting
        yield job["input"].get("name", "nobody")


runpod.serverless.start({"handler": Handler("hello")})
