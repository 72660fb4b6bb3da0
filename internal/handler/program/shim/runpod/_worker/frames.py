"""Frames between this program and the worker that started it.

A frame is a type, the number of a job or a request, a length, and that many bytes.
"""

import _socket  # socket itself costs several times as much to import, for nothing used here
import _thread
from struct import Struct

# Down, on the data connection.
JOB, CHECK = 1, 2
# Up, on the data connection.
DATA, CHUNK, PROGRESS, DONE, ASYNC = 16, 17, 18, 19, 20
# Down, on the control connection.
WELCOME, REFUSED, CANCEL, CREDIT, MODIFIER, SHUTDOWN, ACK = 32, 33, 34, 35, 36, 37, 38
# Up, on the control connection or on a short one of its own.
HELLO, REPLY, LOCAL, PROGRESS_OF = 48, 49, 50, 51

HEADER = Struct("!BII")
LENGTH = Struct("!BI")  # how DONE begins: flags, length of the error text

LARGE = 64 * 1024  # what is not copied into one piece with its neighbours
_FIRST_FD = 64


class Connection:
    """One stream of frames. Writers hold the lock; there is one reader."""

    def __init__(self, path, timeout=None):
        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        sock.settimeout(timeout)  # a new socket has what the program gave to setdefaulttimeout()
        sock.connect(path)
        self.sock = _clear_of_stdio(sock)
        self.sock.settimeout(timeout)
        self.lock = _thread.allocate_lock()
        self.buffer = b""

    def write(self, kind, number=0, *parts):
        """Send one frame, whose parts are bytes or large texts of ASCII. The caller holds the lock
        where there may be other writers."""
        small = HEADER.pack(kind, number, sum(map(len, parts)))
        for part in parts:
            if len(part) < LARGE:
                small += part
                continue
            self.sock.sendall(small)
            small = b""
            for piece in _pieces(part):
                self.sock.sendall(piece)
        if small:
            self.sock.sendall(small)

    def send(self, kind, number=0, *parts):
        with self.lock:
            self.write(kind, number, *parts)

    def receive(self):
        """The next frame as (type, number, payload), or None at the end of the stream."""
        while len(self.buffer) < HEADER.size:
            more = self._recv()
            if not more:
                return None
            self.buffer += more
        kind, number, size = HEADER.unpack_from(self.buffer)
        end = HEADER.size + size
        payload = self.buffer[HEADER.size : end]
        self.buffer = self.buffer[end:]
        if len(payload) < size:
            payload = self._rest(payload, size)
            if payload is None:
                return None
        return kind, number, payload

    def _recv(self):
        try:
            return self.sock.recv(LARGE)
        except OSError as error:  # reset, or closed by another thread: the end all the same
            _pass_on(error)
            return b""

    def _rest(self, begin, size):
        whole = bytearray(size)
        whole[: len(begin)] = begin
        view, got = memoryview(whole), len(begin)
        while got < size:
            try:
                count = self.sock.recv_into(view[got:])
            except OSError as error:
                _pass_on(error)
                return None
            if not count:
                return None
            got += count
        return whole

    def end(self):
        """Wake the reader with an end of stream."""
        try:
            self.sock.shutdown(_socket.SHUT_RD)
        except OSError:
            pass

    def close(self):
        try:
            self.sock.close()
        except OSError:
            pass


def _pieces(part):
    """A text is encoded while it is sent: as a whole it would be written to fresh memory, which
    costs more than all the rest."""
    if not isinstance(part, str):
        return (part,)
    return (part[begin : begin + LARGE].encode() for begin in range(0, len(part), LARGE))


def _pass_on(error):
    """Raise what did not come from the socket: a TimeoutError of a signal handler's, for instance."""
    if error.errno is None:
        raise error


def _clear_of_stdio(sock):
    """Move a socket to a high descriptor.

    Where a program closed stdin or stdout, a new socket gets that number, and the next dup2()
    or close() that means stdout would cut it.
    """
    import fcntl

    try:
        fd = fcntl.fcntl(sock.fileno(), fcntl.F_DUPFD_CLOEXEC, _FIRST_FD)
    except OSError:  # a low limit of open files
        return sock
    high = _socket.socket(fileno=fd)
    sock.close()
    return high
