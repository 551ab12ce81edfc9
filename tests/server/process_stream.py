"""process_stream.py - process.Process of a sandbox as a client without an SDK speaks it: one connection, message by message.

    with ProcessStream.start(server, box, ["/bin/cat"], stdin=True) as s:
        send_input(server, box, s.pid, b"hello")
        for kind, data in s.output(): ...
        s.end                                    # after the last one: {"exited": True, ...}

`port` may be that of a proxy before the gateway.
"""

import base64
import http.client
import json

from server import CALL_SECONDS

RPC = {"content-type": "application/json", "connect-protocol-version": "1"}
STREAMED = {"content-type": "application/connect+json", "connect-protocol-version": "1"}
AS_USER = {"authorization": "Basic dXNlcjo="}
AS_ROOT = {"authorization": "Basic cm9vdDo="}


def envelope(message):
    data = json.dumps(message).encode()
    return bytes([0]) + len(data).to_bytes(4, "big") + data


def sandbox_fields(box, port=49983):
    fields = {"E2b-Sandbox-Id": box["sandboxID"], "E2b-Sandbox-Port": str(port)}
    if box.get("envdAccessToken"):
        fields["X-Access-Token"] = box["envdAccessToken"]
    return fields


class ProcessStream:
    """A Start or a Connect under way; `pid` is known."""

    def __init__(self, server, box, method, message, port=None, seconds=CALL_SECONDS, who=AS_USER, **headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", port or server.port, timeout=seconds)
        self.end, self.keepalives = None, 0
        self.connection.request("POST", f"/process.Process/{method}", envelope(message),
                                {**STREAMED, **who, **sandbox_fields(box), **headers})
        self.response = self.connection.getresponse()
        assert self.response.status == 200, (self.response.status, self.response.read())
        self.pid = self.next()["event"]["start"]["pid"]

    @classmethod
    def start(cls, server, box, command, stdin=False, envs=None, **more):
        process = {"cmd": command[0], "args": command[1:], "envs": envs or {}}
        return cls(server, box, "Start", {"process": process, "stdin": stdin}, **more)

    @classmethod
    def connect(cls, server, box, pid, **more):
        return cls(server, box, "Connect", {"process": {"pid": pid}}, **more)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.connection.close()

    def read(self, n):
        data = self.response.read(n)
        assert len(data) == n, "the stream broke off"
        return data

    def next(self):
        """The next message; None after the last one."""
        head = self.read(5)
        body = self.read(int.from_bytes(head[1:], "big"))
        message = json.loads(body) if body else {}
        if head[0] & 2:
            assert "error" not in message, message
            assert not self.response.read(), "something after the end"
            return None
        return message

    def output(self):
        """(name, bytes), piece by piece, until the end of the process."""
        while message := self.next():
            event = message["event"]
            if "keepalive" in event:
                self.keepalives += 1
            for name, text in event.get("data", {}).items():
                yield name, base64.b64decode(text)
            self.end = event.get("end", self.end)

    def all_of(self, wanted):
        """All of one output, and whatever else there was is an error."""
        got = bytearray()
        for name, data in self.output():
            assert name == wanted, (name, data[:500])
            got += data
        return bytes(got)

    @property
    def exit_code(self):
        assert self.end and self.end.get("exited"), self.end
        return self.end.get("exitCode", 0)


def rpc(server, box, service, method, message, seconds=CALL_SECONDS, who=AS_USER):
    """A call with one answer, which must be a success."""
    answer = server.agent(box, "POST", f"/{service}/{method}", message, {**RPC, **who}, seconds)
    assert answer.status == 200, (answer.status, answer.raw[:500])
    return answer.json


def send_input(server, box, pid, data):
    text = base64.b64encode(data).decode()
    rpc(server, box, "process.Process", "SendInput", {"process": {"pid": pid}, "input": {"stdin": text}})


def close_input(server, box, pid):
    rpc(server, box, "process.Process", "CloseStdin", {"process": {"pid": pid}})


def shell_as_root(server, box, command, seconds=CALL_SECONDS):
    with ProcessStream.start(server, box, ["/bin/sh", "-c", command], who=AS_ROOT, seconds=seconds) as s:
        out = s.all_of("stdout")
        assert s.exit_code == 0, (command, s.end)
    return out.decode()
