"""Strict JSON: what any client can parse, or an error that names the place."""

from json import JSONEncoder

from . import texts

_encode = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_DEEPEST = 5000

LIMIT = 64 << 20  # far above what the platform takes, far below what ends the connection


class NotJSON(ValueError):
    """A value that cannot be sent; its text names the path and the type, or the size."""


def encode(value, root):
    """The value as UTF-8 JSON."""
    try:
        data = _encode(value).encode()
    except Exception as error:
        raise NotJSON(_explain(value, root, error)) from None
    check_size(len(data), root)
    return data


def encode_output(value):
    """An output, which may be large, as the parts of its UTF-8 JSON: bytes, and large texts of ASCII."""
    lifted = []
    try:
        data = _encode(texts.lift(value, lifted)).encode()
    except Exception as error:
        raise NotJSON(_explain(value, "output", error)) from None
    parts = texts.put_back(data, lifted) if lifted else [data]
    check_size(sum(map(len, parts)), "output")
    return parts


def check_size(size, root):
    if size > LIMIT:
        raise NotJSON(too_large("the result" if root == "output" else root, size))


def too_large(what, size):
    return "%s is too large: %d bytes, the limit is %d" % (what, size, LIMIT)


def text(value):
    """A value as text: JSON if it can be."""
    if isinstance(value, str):
        return value
    try:
        return _encode(value)
    except Exception:
        return str(value)


def _explain(value, root, error):
    """Find the first place that is not JSON. No recursion: depth may be what is wrong."""
    stack = [(value, None, 0)]
    above = []  # ids of the containers around the present value
    while stack:
        value, place, depth = stack.pop()
        del above[depth:]
        fault = _fault(value)
        if id(value) in above:
            fault = "%s contains itself" % type(value).__name__
        if fault:
            return "%s%s: %s" % (root, _path(place), fault)
        if depth > _DEEPEST:
            break
        above.append(id(value))
        if isinstance(value, dict):
            items = list(value.items())
        elif isinstance(value, (list, tuple)):
            items = list(enumerate(value))
        else:
            continue
        stack.extend((item, (place, key), depth + 1) for key, item in reversed(items))
    if isinstance(error, RecursionError):
        return "%s: nested too deeply for JSON" % root
    return "%s: %s" % (root, error or type(error).__name__)


def _path(place):
    parts = []
    while place is not None:
        place, key = place
        if isinstance(key, str) and key.isidentifier():
            parts.append("." + key)
        else:
            parts.append("[%s]" % ascii(key))
    return "".join(reversed(parts))


def _fault(value):
    if isinstance(value, str):
        return _text_fault(value)
    if isinstance(value, float):
        return _float_fault(value)
    if isinstance(value, dict):
        for key in value:
            if isinstance(key, (str, float)) and _fault(key):
                return "the key %s: %s" % (ascii(key), _fault(key))
            if not isinstance(key, (str, int, float, type(None))):
                return "%s is no key in JSON: make it a string" % _name(key)
        return None
    if value is None or isinstance(value, (int, list, tuple)):
        return None
    return _name(value) + " is not JSON" + _hint(value)


def _text_fault(value):
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return "lone surrogate %s is not valid text" % ascii(value[error.start])
    return None


def _float_fault(value):
    if value != value:
        return "NaN is not valid JSON"
    if value in (float("inf"), float("-inf")):
        return ("-" if value < 0 else "") + "Infinity is not valid JSON"
    return None


def _name(value):
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else kind.__module__ + "." + kind.__qualname__


def _hint(value):
    if isinstance(value, (bytes, bytearray, memoryview)):
        return ": make it text, for instance with base64.b64encode(…).decode()"
    if isinstance(value, (set, frozenset)):
        return ": make it a list"
    for method in ("tolist", "isoformat"):
        if hasattr(value, method):
            return ": call its ." + method + "()"
    return ""
