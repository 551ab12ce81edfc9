"""egress.py - hotcell-egress for a test: the daemon, and the node that hands it doors.

    with Egress() as egress:
        egress.start()
        egress.open(slot, warden.doors(slot))
        egress.counts(slot)

The structures are those of src/egress/protocol.h; egress refuses a message of another size.
"""

import ctypes
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

import link_hello
import refused_calls
from protocol import CODES
from warden import build_dir, wait_for

VERSION = 4
ID_MAX = 63
OPEN, CLOSE, NAME, COUNT, RULE, LOG, KNOWN, EXPLAIN, RESET = range(9)
ANSWER_SECONDS = 30
END_SECONDS = 10


class Request(ctypes.Structure):
    _fields_ = [("tag", ctypes.c_uint64), ("verb", ctypes.c_uint32),
                ("slot", ctypes.c_uint32), ("id", ctypes.c_char * (ID_MAX + 1))]


class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("tcp_refused", "names_refused", "tcp_allowed", "tcp_failed",
                                                     "names_allowed", "bytes_out", "bytes_in")]


class Reply(ctypes.Structure):
    _fields_ = [("tag", ctypes.c_uint64), ("code", ctypes.c_uint32), ("msg", ctypes.c_char * 128),
                ("counts", Counts)]


def memory_file(value):
    """JSON, to be passed as a descriptor."""
    file = open(os.memfd_create("json"), "wb+", buffering=0)
    file.write(json.dumps(value).encode())
    return file


class EgressError(Exception):
    """Egress answered with an error."""

    def __init__(self, reply):
        self.code = CODES[reply.code]
        super().__init__(f"{self.code}: {reply.msg.decode()}")


class Egress:
    """One daemon with a folder of its own. Verbs are methods."""

    def __init__(self, user="", node_uid=0, inside=(), told=True, **settings):
        """`inside`: what to put before its command, so that it runs in another network; `told`: whether it tells
        which system calls it is refused, which must be none then."""
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="hotcell-egress-",
                                                  dir=os.environ.get("HOTCELL_TEST_DIR")))
        self.base.chmod(0o755)
        self.settings = {"socket": self.base / "egress.sock", "user": user, "node_uid": node_uid,
                         **settings}
        self.inside, self.tells = list(inside), told
        self.process = self.sock = None
        self.tag = 0
        self.answered = []  # the descriptor that came with the last answer

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        self.kill()
        log = self.log() if (self.base / "log").exists() else ""
        shutil.rmtree(self.base, ignore_errors=True)
        if not failed:
            refused_calls.check("egress", log)

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        return (self.base / "log").read_text()

    def start(self):
        config = self.base / "egress.conf"
        config.write_text("".join(f"{key} = {value}\n" for key, value in self.settings.items()))
        with open(self.base / "log", "ab") as log:
            self.process = subprocess.Popen([*self.inside, build_dir() / "src/egress/hotcell-egress", config],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=refused_calls.environment(self.tells))
        wait_for(self.connect, "egress serves")
        self.call(RESET)  # answered: it is confined
        return self

    def connect(self):
        assert self.process.poll() is None, f"egress ended: {self.log()}"
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.settimeout(ANSWER_SECONDS)
        try:
            sock.connect(str(self.settings["socket"]))
            link_hello.say(sock, VERSION)
        except (FileNotFoundError, ConnectionRefusedError):
            sock.close()
            return False
        self.sock = sock
        return True

    def hang_up(self):
        if self.sock:
            self.sock.close()
            self.sock = None

    def kill(self):
        """SIGKILL, and nothing after it."""
        self.hang_up()
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def end(self):
        """SIGTERM; it ends well, with nothing a sanitizer complains about."""
        self.hang_up()
        self.process.terminate()
        status = self.process.wait(END_SECONDS)
        self.process = None
        assert status == 0 and "Sanitizer" not in self.log(), self.log()

    def call(self, verb, slot=0, name=b"", fds=()):
        self.tag += 1
        rq = Request(verb=verb, tag=self.tag, slot=slot, id=name)
        socket.send_fds(self.sock, [bytes(rq)], list(fds))
        data, self.answered, _, _ = socket.recv_fds(self.sock, ctypes.sizeof(Reply) + 1, 1)
        assert len(data) == ctypes.sizeof(Reply), f"a reply of {len(data)} bytes"
        reply = Reply.from_buffer_copy(data)
        assert reply.tag == self.tag
        if reply.code:
            raise EgressError(reply)
        return reply

    def open(self, slot, doors):
        """Hands over, and closes, a slot's doors (sockets)."""
        try:
            self.call(OPEN, slot, fds=[door.fileno() for door in doors])
        finally:
            for door in doors:
                door.close()

    def rule(self, slot, rules):
        """A sandbox's rules, as in src/egress/policy.h; they hold from now on."""
        with memory_file(rules) as file:
            self.call(RULE, slot, fds=[file.fileno()])

    def told(self, verb, slot=0, question=None):
        """JSON that comes back as a descriptor: LOG, KNOWN, EXPLAIN (of a question)."""
        if question is None:
            self.call(verb, slot)
        else:
            with memory_file(question) as file:
                self.call(verb, slot, fds=[file.fileno()])
        with open(self.answered[0], "rb") as file:
            file.seek(0)
            return json.loads(file.read())

    def counts(self, slot):
        counts = self.call(COUNT, slot).counts
        return counts.tcp_refused, counts.names_refused
