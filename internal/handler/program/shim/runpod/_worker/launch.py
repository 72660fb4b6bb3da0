"""Serves a function of a file that does not call start(): handler.py:func."""

import os
import sys


def launch():
    """Run the file named by the first argument as python would run it itself, then serve the
    function named by the second one."""
    path, name = sys.argv[1:3]
    sys.argv[:] = [path, *sys.argv[3:]]
    whole = os.path.abspath(path)
    sys.path[0] = os.path.dirname(os.path.realpath(whole))
    main = _as_main(whole)
    try:
        with open(whole, "rb") as file:
            code = compile(file.read(), whole, "exec", dont_inherit=True)
    except OSError as error:
        sys.exit("%s: %s" % (path, error.strerror))
    from . import entry

    def file_starts(config):
        """The file calls start() after all, maybe with options that belong to its own handler."""
        if config.get("handler") is not _function(main, path, name):
            entry.log.warn("%s calls start() itself: its own handler is served, not %s" % (path, name))

    entry.before = file_starts
    exec(code, main)
    if not entry.started:
        entry.before = None
        entry.start({"handler": _function(main, path, name)})


def _function(main, path, name):
    function = main.get(name)
    if not callable(function):
        found = [key for key, value in main.items() if callable(value) and not key.startswith("_")]
        sys.exit("%s has no function %r; it has: %s" % (path, name, ", ".join(found) or "none"))
    return function


def _as_main(path):
    """The namespace of the real __main__, such as a script finds it: pickle, inspect and
    multiprocessing look there."""
    from importlib.machinery import SourceFileLoader

    main = sys.modules["__main__"].__dict__
    for name in [name for name in main if not name.startswith("__")]:
        del main[name]
    main.update(__file__=path, __loader__=SourceFileLoader("__main__", path), __spec__=None, __cached__=None)
    return main
