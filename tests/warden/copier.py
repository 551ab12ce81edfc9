"""copier.py - src/copier in Python: what a client hands to WARDEN_COPY, and the file of pages.

    with Files(warden, "t1") as files:
        pid = warden.copy("vm1", files.fds)
        reply = files.ask(Verb.COPY)
"""

import ctypes
import enum
import os
import socket
import struct
import tempfile

from protocol import CODES

VERSION = 3        # of what is said to a copier
PAGES_VERSION = 2
PAGE = 4096
ANSWER_SECONDS = 60
HEAD = "<8sIIQQQQQIII"  # without its own checksum
RUN = "<QIIQ"
ZERO = 1


class Verb(enum.IntEnum):
    FIRST = 0
    COPY = 1
    STATE = 2
    SYNC = 3
    APPLY = 4


class Reply(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint32), ("sys", ctypes.c_int32), ("msg", ctypes.c_char * 256),
                ("pages", ctypes.c_uint64), ("zero_pages", ctypes.c_uint64),
                ("pages_bytes", ctypes.c_uint64), ("state_bytes", ctypes.c_uint64),
                ("pages_crc", ctypes.c_uint32), ("state_crc", ctypes.c_uint32),
                ("took_us", ctypes.c_uint64)]

    def check(self):
        assert self.code == 0, f"{CODES[self.code]}: {self.msg.decode()}"
        return self


def crc32c_table():
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        yield n


TABLE = list(crc32c_table())


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xff]
    return crc ^ 0xffffffff


def pages_file(memory_bytes, pages):
    """A file of pages: {number: content of one page, or None for zeros}. The last page's copy comes first, and the
    second copy is nobody's."""
    kept = [n for n, page in sorted(pages.items(), reverse=True) if page is not None]
    copies = [pages[n] for n in kept]
    copies.insert(1, b"?" * PAGE)
    at = {n: 0 if i == 0 else i + 1 for i, n in enumerate(kept)}
    runs = [struct.pack(RUN, n, 1, ZERO if page is None else 0, at.get(n, 0)) for n, page in sorted(pages.items())]
    head = struct.pack(HEAD, b"HOTCELLP", PAGES_VERSION, PAGE, memory_bytes, len(copies), len(runs), len(kept),
                       len(runs) - len(kept), crc32c(b"".join(copies)), crc32c(b"".join(runs)), 0)
    head += struct.pack("<I", crc32c(head))
    return head.ljust(PAGE, b"\0") + b"".join(copies) + b"".join(runs)


def read_pages(content):
    """{number: content, or None} of a file of pages."""
    _, _, _, _, n_copies, n_runs, _, _, _, _, _ = struct.unpack_from(HEAD, content)
    found, table = {}, PAGE + n_copies * PAGE
    for i in range(n_runs):
        first, count, flags, copy = struct.unpack_from(RUN, content, table + i * struct.calcsize(RUN))
        for k in range(count):
            at = PAGE + (copy + k) * PAGE
            found[first + k] = None if flags & ZERO else content[at:at + PAGE]
    return found


class Files:
    """What a client opens for one copier, and its end of the socket."""

    def __init__(self, warden, template, pages=None):
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pages = tempfile.NamedTemporaryFile(dir=warden.base)
        self.state = tempfile.NamedTemporaryFile(dir=warden.base)
        if pages is not None:
            self.pages.write(pages)
            self.pages.flush()
        memory = warden.state / "templates" / template / "memory"
        self.theirs = [theirs.detach(),
                       os.open(self.pages.name, os.O_RDWR if pages is None else os.O_RDONLY),
                       os.open(memory, os.O_RDONLY)]
        if pages is None:
            self.theirs.append(os.open(self.state.name, os.O_RDWR))

    @property
    def fds(self):
        return self.theirs

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.forget()
        self.hang_up()
        self.pages.close()
        self.state.close()

    def forget(self):
        """They are the copier's: a copy of its socket here would keep it from being told."""
        while self.theirs:
            os.close(self.theirs.pop())

    def hang_up(self):
        self.control.close()

    def ask(self, verb, version=VERSION, base_crc=0):
        self.forget()
        self.control.settimeout(ANSWER_SECONDS)
        self.control.send(struct.pack("<IIII", version, verb, base_crc, 0))
        data = self.control.recv(ctypes.sizeof(Reply) + 1)
        assert len(data) == ctypes.sizeof(Reply), f"a reply of {len(data)} bytes"
        return Reply.from_buffer_copy(data)

    def ended(self):
        """Did the copier hang up?"""
        self.control.setblocking(False)
        try:
            return self.control.recv(1) == b""
        except BlockingIOError:
            return False
