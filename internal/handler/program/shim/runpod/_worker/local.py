"""One job by hand: python handler.py --test_input '{"input": …}'."""

import json

from ..serverless.modules.rp_logger import RunPodLogger
from . import outcome
from .runner import Job

log = RunPodLogger()


class Printer:
    """Takes the place of the worker: chunks and progress are shown, the end is kept."""

    is_async = True
    foreign = False

    def __init__(self, runner):
        self.runner = runner
        self.result = None
        self.chunks = []

    def opened(self, job):
        pass

    def found_async(self):
        pass

    def chunk(self, job, data):
        self.chunks.append(data)
        log.info("Stream output: %s" % data.decode(), job.id)
        job.credit()

    def done(self, job, result):
        job.closed = True
        self.result = result


def run(config, test_input):
    """Run the job and print its result as the last line of stdout. Returns the exit code."""
    if not isinstance(test_input, dict) or test_input.get("input") is None:
        log.error("Job has no input parameter. Unable to run.")
        return 1
    test_input.setdefault("id", "local_test")
    runner = config.runner()
    printer = Printer(runner)
    job = Job(1, json.dumps(test_input).encode(), 1)
    log.info("Started.", test_input["id"])
    value = runner.call(job, printer)
    if value is not None:
        from .loop import Loop

        Loop(printer).run_one(job, value)
    return _show(printer)


def _show(printer):
    result, line = printer.result, {}
    if result.output is not None:
        line["output"] = json.loads("".join(map(_text, result.output)))
    if result.flags & outcome.STREAM and printer.chunks:
        line["output"] = [json.loads(chunk) for chunk in printer.chunks]
    if result.error:
        line["error"] = result.error
    if result.error:
        log.error("Job failed.")
    print(json.dumps(line), flush=True)
    return 1 if result.error else 0


def _text(part):
    return part if isinstance(part, str) else part.decode()
