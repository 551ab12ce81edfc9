"""protocol.py - src/warden/protocol.h in Python: the messages, and a client that speaks them.

The verbs are made of verbs.def. The structures are ctypes with the platform's own alignment, as in C;
test_protocol.py compares every size and offset with what the compiler says (layout.c).
"""

import ctypes
import dataclasses
import enum
import errno
import os
import socket
import time

import link_hello
from layout import layout

LAYOUT = "tests/warden/layout"
VERSION = 4
ID_MAX = 63
FDS_MAX = 16
LIST_MAX = 16
ANSWER_SECONDS = 30  # longer than the deadline of any job of warden

TEMPLATE_FILES = ("kernel", "disk", "overlay", "memory", "state", "manifest")

# enum err_code, by number
CODES = ("ok", "invalid", "not_found", "exists", "denied", "exhausted", "mismatch", "timeout",
         "unavailable", "internal", "no_space", "files_missing", "base_lost", "version_mismatch")


def verb_fds():
    """Of each verb of verbs.def, by its name: the least number of descriptors."""
    return {name.removeprefix("fds.WARDEN_"): n for name, n in layout(LAYOUT).items() if name.startswith("fds.")}


Verb = enum.IntEnum("Verb", {name: layout(LAYOUT)["WARDEN_" + name] for name in verb_fds()})
TAKES_FDS = {Verb[name]: n for name, n in verb_fds().items()}


BOOT, APPLY = 1, 2  # enum warden_flags


class State(enum.IntEnum):
    STARTING = 0
    RUNNING = 1
    STOPPING = 2
    EXITED = 3


class Sizes(ctypes.Structure):
    _fields_ = [("vcpus", ctypes.c_uint32),
                ("memory_mib", ctypes.c_uint32),
                ("overhead_mib", ctypes.c_uint32),
                ("cpu_percent", ctypes.c_uint32),
                ("pids_max", ctypes.c_uint32),
                ("disk_mib", ctypes.c_uint32)]


class Request(ctypes.Structure):
    _fields_ = [("tag", ctypes.c_uint64),
                ("verb", ctypes.c_uint32),
                ("id", ctypes.c_char * (ID_MAX + 1)),
                ("template_id", ctypes.c_char * (ID_MAX + 1)),
                ("installation", ctypes.c_char * (ID_MAX + 1)),
                ("sizes", Sizes),
                ("slot", ctypes.c_uint32),
                ("count", ctypes.c_uint32),
                ("flags", ctypes.c_uint32)]


class Facts(ctypes.Structure):
    _fields_ = [("vmm_version", ctypes.c_char * 128),
                ("cpu_model", ctypes.c_char * 128),
                ("accel", ctypes.c_char * 16),
                ("arguments", ctypes.c_char * 1536),
                ("emulated", ctypes.c_uint32)]


class Cell(ctypes.Structure):
    _fields_ = [("id", ctypes.c_char * (ID_MAX + 1)),
                ("installation", ctypes.c_char * (ID_MAX + 1)),
                ("state", ctypes.c_uint32),
                ("slot", ctypes.c_uint32),
                ("pid", ctypes.c_int32),
                ("uid", ctypes.c_uint32)]


class Payload(ctypes.Union):
    _fields_ = [("facts", Facts), ("cells", Cell * LIST_MAX)]


class Reply(ctypes.Structure):
    _anonymous_ = ["payload"]
    _fields_ = [("tag", ctypes.c_uint64),
                ("code", ctypes.c_uint32),
                ("sys", ctypes.c_int32),
                ("msg", ctypes.c_char * 256),
                ("slot", ctypes.c_uint32),
                ("count", ctypes.c_uint32),
                ("payload", Payload)]


class WardenError(Exception):
    """Warden answered with an error."""

    def __init__(self, reply):
        self.code = CODES[reply.code]
        self.sys = reply.sys
        self.msg = reply.msg.decode()
        super().__init__(f"{self.code}: {self.msg}" + (f" ({errno.errorcode.get(self.sys)})" if
                                                       self.sys else ""))


class Gone(Exception):
    """Warden closed the connection."""


@dataclasses.dataclass
class Answer:
    """A reply and the descriptors that came with it; the caller closes those."""

    reply: Reply
    fds: list
    seconds: float

    @property
    def code(self):
        return CODES[self.reply.code]

    def check(self):
        if self.reply.code:
            self.close()
            raise WardenError(self.reply)
        return self

    def close(self):
        while self.fds:
            os.close(self.fds.pop())


def request(verb, tag=0, vm="", template="", installation="", sizes=None, slot=0, count=0, flags=0):
    """One request as bytes. Ids may be str or bytes, and are put in as they are."""
    def text(value):
        raw = value.encode() if isinstance(value, str) else value
        return raw[:ID_MAX + 1].ljust(ID_MAX + 1, b"\0")

    message = Request(verb=verb, tag=tag, sizes=sizes or Sizes(), slot=slot,
                      count=count, flags=flags)
    for name, value in (("id", vm), ("template_id", template), ("installation", installation)):  # exact bytes, NULs included
        ctypes.memmove(ctypes.addressof(message) + getattr(Request, name).offset, text(value),
                       ID_MAX + 1)
    return bytes(message)


class Client:
    """One connection. call() waits for its answer; send() and receive() do not have to pair up."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.tag = 0
        self.sent = {}
        self.early = {}
        try:
            self.sock.connect(str(path))
            self.greet()
        except (OSError, Gone):
            self.sock.close()
            raise

    def greet(self):
        self.sock.settimeout(ANSWER_SECONDS)
        try:
            link_hello.say(self.sock, VERSION)
        except (BrokenPipeError, ConnectionResetError) as e:
            raise Gone("the connection is closed") from e
        finally:
            self.sock.settimeout(None)

    def close(self):
        for answer in self.early.values():
            answer.close()
        self.early.clear()
        self.sock.close()

    def send_raw(self, data, fds=()):
        try:
            socket.send_fds(self.sock, [data], list(fds))
        except (BrokenPipeError, ConnectionResetError) as e:
            raise Gone("the connection is closed") from e

    def send(self, verb, fds=(), **fields):
        self.tag += 1
        self.sent[self.tag] = time.monotonic()
        self.send_raw(request(verb, tag=self.tag, **fields), fds)
        return self.tag

    def receive_any(self, seconds=ANSWER_SECONDS):
        self.sock.settimeout(seconds)
        try:
            data, fds, _, _ = socket.recv_fds(self.sock, ctypes.sizeof(Reply) + 1, FDS_MAX)
        except ConnectionResetError as e:
            raise Gone("the connection is closed") from e
        finally:
            self.sock.settimeout(None)
        if not data:
            raise Gone("the connection is closed")
        assert len(data) == ctypes.sizeof(Reply), f"a reply of {len(data)} bytes"
        reply = Reply.from_buffer_copy(data)
        return Answer(reply, fds, time.monotonic() - self.sent.pop(reply.tag, time.monotonic()))

    def receive(self, tag, seconds=ANSWER_SECONDS):
        until = time.monotonic() + seconds
        while tag not in self.early:
            answer = self.receive_any(max(until - time.monotonic(), 0.001))
            self.early[answer.reply.tag] = answer
        return self.early.pop(tag)

    def call(self, verb, seconds=ANSWER_SECONDS, **fields):
        return self.receive(self.send(verb, **fields), seconds).check()
