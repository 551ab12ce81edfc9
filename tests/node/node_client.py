"""node_client.py - src/node/protocol.h in Python: a gateway made of what the compiler says.

    with NodeClient(path) as c:
        box = c.create("team-1", timeout_s=60, text={"metadata": {}})
        c.kill("team-1", box.id)
"""

import contextlib
import ctypes
import dataclasses
import json
import socket
import time

import link_hello
from layout import Layout

ANSWER_SECONDS = 120


LAYOUT = Layout("tests/node/node_layout")
value, fields = LAYOUT.value, LAYOUT.fields


def flag_bits(names):
    return sum(value("NODE_" + name) for name in names)


def pack(struct_name, **values):
    made = LAYOUT.structs[struct_name]()
    for name, given in values.items():
        if isinstance(given, dict):  # a struct within
            given = LAYOUT.structs[fields(struct_name)[name][2].removeprefix("struct ")](**given)
        setattr(made, name, given.encode() if isinstance(given, str) else given)
    return bytes(made)


def unpack(struct_name, raw):
    made = LAYOUT.structs[struct_name].from_buffer_copy(raw)
    return {name: plain(getattr(made, name)) for name in fields(struct_name)}


def plain(member):
    if isinstance(member, ctypes.Structure):
        return Sandbox(**unpack("node_sandbox", member))
    return member.decode() if isinstance(member, bytes) else member


Sandbox = dataclasses.make_dataclass("Sandbox", fields("node_sandbox"))


@dataclasses.dataclass
class Reply(dataclasses.make_dataclass("Reply", fields("node_reply"))):
    after: bytes = b""
    fds: list = dataclasses.field(default_factory=list)
    seconds: float = 0

    @property
    def text(self):
        return json.loads(self.after) if self.after else None


class NodeError(Exception):
    def __init__(self, reply):
        self.code = LAYOUT.errors[reply.code]
        self.msg = reply.msg
        self.reply = reply
        super().__init__(f"{self.code}: {self.msg}")


class Gone(Exception):
    """Node closed the connection."""


class NodeClient:
    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.connect(str(path))
        self.greet()
        self.tag = 0
        self.sent, self.early, self.events = {}, {}, []

    def greet(self):
        self.sock.settimeout(ANSWER_SECONDS)
        try:
            link_hello.say(self.sock, value("NODE_VERSION_MAX"))
        except (BrokenPipeError, ConnectionResetError) as e:
            self.sock.close()
            raise Gone from e
        finally:
            with contextlib.suppress(OSError):
                self.sock.settimeout(None)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, verb, text=b"", **values):
        self.tag += 1
        self.sent[self.tag] = time.monotonic()
        head = pack("node_request", verb=value("NODE_" + verb),
                    tag=self.tag, text_len=len(text), **values)
        try:
            self.sock.send(head + text)
        except (BrokenPipeError, ConnectionResetError) as e:
            raise Gone from e
        return self.tag

    def receive_one(self, seconds):
        self.sock.settimeout(max(seconds, 0.001))
        try:
            raw, fds, _, _ = socket.recv_fds(self.sock, value("NODE_MESSAGE_MAX") + 1,
                                             value("NODE_FDS_MAX"))
        except ConnectionResetError as e:
            raise Gone from e
        if not raw:
            raise Gone
        size = value("node_reply")
        reply = Reply(**unpack("node_reply", raw[:size]), after=raw[size:], fds=fds)
        if reply.tag == 0:
            self.events.append(reply)
            return
        reply.seconds = time.monotonic() - self.sent.pop(reply.tag)
        self.early[reply.tag] = reply

    def receive(self, tag, seconds=ANSWER_SECONDS):
        until = time.monotonic() + seconds
        while tag not in self.early:
            self.receive_one(until - time.monotonic())
        reply = self.early.pop(tag)
        if reply.code:
            raise NodeError(reply)
        return reply

    def call(self, verb, seconds=ANSWER_SECONDS, **values):
        return self.receive(self.send(verb, **values), seconds)

    def wait_event(self, sandbox_id, seconds=30):
        until = time.monotonic() + seconds
        while not any(e.sandbox.id == sandbox_id for e in self.events):
            self.receive_one(until - time.monotonic())

    # --- the verbs ---

    def create_send(self, team, template="base", timeout_s=300, secure=True, text=None, flags=(), **more):
        return self.send("CREATE", team=team, template_id=template, timeout_s=timeout_s,
                         flags=flag_bits([*flags, "SECURE"] if secure else flags),
                         text=json.dumps(text or {}).encode(), **more)

    def create(self, team, seconds=ANSWER_SECONDS, **args):
        return self.receive(self.create_send(team, **args), seconds).sandbox

    def get(self, team, sandbox):
        return self.call("GET", team=team, id=sandbox)

    def kill(self, team, sandbox, seconds=ANSWER_SECONDS):
        return self.call("KILL", seconds, team=team, id=sandbox)

    def timeout(self, team, sandbox, timeout_s):
        return self.call("TIMEOUT", team=team, id=sandbox, timeout_s=timeout_s).sandbox

    def connect(self, team, sandbox, timeout_s, flags=()):
        return self.call("CONNECT", team=team, id=sandbox, timeout_s=timeout_s, flags=flag_bits(flags))

    def pause(self, team, sandbox, flags=()):
        return self.call("PAUSE", team=team, id=sandbox, flags=flag_bits(flags))

    def resume(self, team, sandbox, timeout_s=300, flags=()):
        return self.call("RESUME", team=team, id=sandbox, timeout_s=timeout_s, flags=flag_bits(flags))

    def snapshot(self, team, sandbox, name="", flags=()):
        return self.call("SNAPSHOT", team=team, id=sandbox, template_id=name, flags=flag_bits(flags)).text

    def snapshots(self, team=""):
        return self.call("SNAPSHOTS", team=team, count=100).text

    def snapshot_delete(self, team, snapshot):
        return self.call("SNAPSHOT_DELETE", team=team, template_id=snapshot)

    def fork(self, team, sandbox, count, timeout_s=300, flags=()):
        """The copies that run; all of them must."""
        reply = self.call("FORK", team=team, id=sandbox, count=count, timeout_s=timeout_s, flags=flag_bits(flags))
        size = value("node_forked")
        assert len(reply.after) == reply.count * size
        copies = [unpack("node_forked", reply.after[i * size:(i + 1) * size]) for i in range(reply.count)]
        assert all(c["code"] == 0 for c in copies), copies
        return [c["sandbox"] for c in copies]

    def network(self, team, sandbox, **put):
        return self.call("NETWORK", team=team, id=sandbox, text=json.dumps(put).encode())

    def secret(self, team, name, sealed):
        return self.call("SECRET", team=team, text=json.dumps({"name": name, "sealed": sealed}).encode())

    def explain(self, team, sandbox, question=None):
        text = {"question": question} if question else {}
        return self.call("EXPLAIN", team=team, id=sandbox, text=json.dumps(text).encode()).text

    def egress_log(self, team, sandbox):
        return self.call("EGRESS_LOG", team=team, id=sandbox).text

    def ended(self, team, after_ns=0, after_id=""):
        reply = self.call("ENDED", team=team, after_ns=after_ns, id=after_id)
        size = value("node_tombstone")
        assert len(reply.after) == reply.count * size
        return [unpack("node_tombstone", reply.after[i * size:(i + 1) * size]) for i in range(reply.count)]

    def list_page(self, team, after_ns=0, after_id=""):
        reply = self.call("LIST", team=team, after_ns=after_ns, id=after_id)
        entries, rest, size = [], reply.after, value("node_entry")
        for _ in range(reply.count):
            entry = unpack("node_entry", rest[:size])
            text = rest[size:size + entry["text_len"]]
            entries.append((entry["sandbox"], json.loads(text) if text else None))
            rest = rest[size + entry["text_len"]:]
        assert not rest
        return entries

    def list(self, team):
        found, last = [], (0, "")
        while page := self.list_page(team, *last):
            found += page
            last = (page[-1][0].started_ns, page[-1][0].id)
        return found

    def sockets(self, sandbox, count=1, flags=("AUTO_RESUME",), token=""):
        """As for a client that waits."""
        reply = self.call("SOCKETS", id=sandbox, count=count, flags=flag_bits(flags), text=token.encode())
        assert reply.count == len(reply.fds) == count
        return [socket.socket(fileno=fd) for fd in reply.fds]

    def templates(self):
        return self.call("TEMPLATES").text

    def ready(self):
        """None: it is."""
        reply = self.call("READY")
        return reply.text if reply.after else None

    def status(self):
        return self.call("STATUS").text
