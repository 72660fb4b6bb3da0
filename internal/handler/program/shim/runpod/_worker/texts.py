"""Large texts inside an output, such as images in base64.

To look through one for what JSON escapes is quicker than to escape it, and it can go out as it
is: so they are kept away from the encoder.
"""

import os

from .frames import LARGE

_ESCAPED = [chr(code) for code in (*b'"\\\n', *range(32))]  # the usual ones first
_MANY = 16  # what has more entries mostly consists of something else
_MARK = os.urandom(16).hex()  # no text has it


def lift(value, texts, depth=2):
    """A copy of the value with a mark in the place of each large text near the top, which goes to
    the texts: as it is if it is ASCII, else encoded."""
    kind = type(value)
    if kind is str:
        if len(value) < LARGE or not _is_plain(value):
            return value
        texts.append(value if value.isascii() else value.encode())
        return _MARK
    if depth and kind is dict and len(value) <= _MANY:
        return {key: lift(item, texts, depth - 1) for key, item in value.items()}
    if depth and kind is list and len(value) <= _MANY:
        return [lift(item, texts, depth - 1) for item in value]
    return value


def put_back(data, texts):
    """The encoded copy in parts, with the texts between them."""
    first, *others = data.split(_MARK.encode())
    parts = [first]
    for text, other in zip(texts, others):
        parts += text, other
    return parts


def _is_plain(text):
    """Is there nothing in it that JSON escapes?"""
    for begin in range(0, len(text), LARGE):  # so much of it stays in the processor's cache
        part = text[begin : begin + LARGE]
        if any(char in part for char in _ESCAPED):
            return False
    return True
