"""The command-line flags that a program understands since it calls start()."""

import os
import sys

_DEFAULTS = {
    "rp_log_level": None,
    "rp_debugger": None,
    "rp_serve_api": None,
    "rp_api_port": 8000,
    "rp_api_concurrency": 1,
    "rp_api_host": "localhost",
    "test_input": None,
}


def program():
    """The program's name for people. It may have taken even that out of sys.argv."""
    return os.fspath(sys.argv[0]) if sys.argv else "python"


def parse(log):
    """Take the flags that are ours out of sys.argv; all else stays for the program."""
    args = dict(_DEFAULTS)
    if any(str(arg).startswith(("--rp_", "--test_input")) for arg in sys.argv[1:]):
        args = _parse()
    if args["rp_log_level"]:
        set_level(log, args["rp_log_level"])
    return args


def _parse():
    import argparse  # slow to import, and seldom needed
    import json

    parser = argparse.ArgumentParser(prog=program(), add_help=False)
    for flag in ("--rp_debugger", "--rp_serve_api"):
        parser.add_argument(flag, action="store_true", default=None)
    for flag in ("--rp_log_level", "--rp_api_host", "--test_input"):
        parser.add_argument(flag)
    for flag in ("--rp_api_port", "--rp_api_concurrency"):
        parser.add_argument(flag, type=int)
    parser.set_defaults(**_DEFAULTS)
    known, rest = parser.parse_known_args()
    if known.test_input is not None:
        try:
            known.test_input = json.loads(known.test_input)
        except ValueError as error:
            parser.error("--test_input is not JSON: %s" % error)
    sys.argv[1:] = rest
    return vars(known)


def set_level(log, level):
    try:
        log.set_level(level)
    except ValueError as error:
        log.warn("%s; the level stays %s" % (error, log.level))
