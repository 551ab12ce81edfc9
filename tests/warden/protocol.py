"""protocol.py - src/warden/protocol.h in Python, made of what the compiler says: the messages, and a client that
speaks them."""

import ctypes
import dataclasses
import errno
import os
import socket
import time

import link_hello
from layout import Layout

ANSWER_SECONDS = 30  # longer than the deadline of any job of warden

LAYOUT = Layout("tests/warden/layout")
VERSION = LAYOUT.value("WARDEN_VERSION_MAX")
ID_MAX = LAYOUT.value("WARDEN_ID_MAX")
FDS_MAX = LAYOUT.value("WARDEN_FDS_MAX")
LIST_MAX = LAYOUT.value("WARDEN_LIST_MAX")
BOOT, APPLY = LAYOUT.value("WARDEN_BOOT"), LAYOUT.value("WARDEN_APPLY")
TEMPLATE_FILES = tuple(LAYOUT.said["template_files"])
CODES = tuple(LAYOUT.errors)
Verb = LAYOUT.enum("warden_verb", "WARDEN_")
State = LAYOUT.enum("warden_cell_state", "WARDEN_")
Sizes, Request, Facts, Cell, Reply = (
    LAYOUT.structs[f"warden_{name}"] for name in ("sizes", "request", "facts", "cell", "reply"))
TAKES_FDS = {Verb[name.removeprefix("WARDEN_")]: n for name, n in LAYOUT.said["fds"].items()}  # at least


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


def request(verb, tag=0, vm="", template="", kernel="", installation="", sizes=None, slot=0, count=0, flags=0):
    """One request as bytes. Ids may be str or bytes, and are put in as they are."""
    def text(value):
        raw = value.encode() if isinstance(value, str) else value
        return raw[:ID_MAX + 1].ljust(ID_MAX + 1, b"\0")

    message = Request(verb=verb, tag=tag, sizes=sizes or Sizes(), slot=slot,
                      count=count, flags=flags)
    for name, value in (("id", vm), ("template_id", template), ("kernel_id", kernel),
                        ("installation", installation)):  # exact bytes, NULs included
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
