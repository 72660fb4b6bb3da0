"""Fails while it is loaded, as a handler with a missing package does."""

import runpod

import no_such_package_anywhere

runpod.serverless.start({"handler": no_such_package_anywhere.handler})
