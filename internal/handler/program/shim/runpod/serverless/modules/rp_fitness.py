"""Fitness checks that the program registers; the worker runs them before it takes jobs."""

from .rp_logger import RunPodLogger

log = RunPodLogger()
checks = []


def register_fitness_check(func):
    """Use as a decorator. A check fails by raising."""
    checks.append(func)
    log.debug("Registered fitness check: %s" % getattr(func, "__name__", func))
    return func


def clear_fitness_checks():
    checks.clear()


async def run_fitness_checks():
    """Stand-in: the worker asks for each check itself."""
