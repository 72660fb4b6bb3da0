"""TERM and INT while a program serves: the worker alone decides when it stops."""

import os
import signal
from _thread import get_ident

_NUMBERS = (signal.SIGTERM, signal.SIGINT)


class Taken:
    """Ignores the signals from now on, in this process only."""

    def __init__(self):
        self.before = {}
        self.masks = {}  # of the threads that are about to fork
        for number in _NUMBERS:
            action = signal.getsignal(number)
            try:
                # Not SIG_IGN, which the programs that a handler starts would inherit.
                signal.signal(number, lambda *_: None)
            except ValueError:  # start() was called on another thread than the main one
                return
            self.before[number] = signal.SIG_DFL if action is None else action
        os.register_at_fork(
            before=self._hold, after_in_parent=self._release, after_in_child=self._in_child
        )

    def give_back(self):
        before, self.before = self.before, {}
        for number, action in before.items():
            signal.signal(number, action)

    # A child of multiprocessing that is terminated at once gets its signal before it is set up.
    # Python would drop it, so it is held back until it can take effect.

    def _hold(self):
        if self.before:
            self.masks[get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, _NUMBERS)

    def _release(self):
        mask = self.masks.pop(get_ident(), None)
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def _in_child(self):
        self.give_back()
        self._release()
