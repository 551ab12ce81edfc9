"""asking.py - HTTP as a test asks it: one request, one answer; and what a Connect stream says."""

import base64
import contextlib
import http.client
import json
import socket


class ApiError(Exception):
    """An answer that is not a success."""

    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status, self.body = status, body


class Answer:
    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.raw = response.read()

    @property
    def json(self):
        return json.loads(self.raw) if self.raw else None


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket: the admin door."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def ask(connection, method, target, body=None, headers=()):
    """One request on a connection that is closed afterwards."""
    headers = dict(headers)
    if body is not None and not isinstance(body, (bytes, str)):
        body = json.dumps(body)
        headers.setdefault("content-type", "application/json")
    with contextlib.closing(connection):
        connection.request(method, target, body, headers)
        return Answer(connection.getresponse())


def frames(data):
    """The messages of a Connect stream: (flags, JSON)."""
    at = 0
    while at < len(data):
        flags, length = data[at], int.from_bytes(data[at + 1:at + 5], "big")
        text = data[at + 5:at + 5 + length]
        assert len(text) == length, "the stream broke off"
        yield flags, json.loads(text) if text else {}
        at += 5 + length


def output_of(data):
    """Standard output of a finished process; asserts that it went well."""
    out, err, code = b"", b"", None
    for flags, message in frames(data):
        if flags & 2:
            assert "error" not in message, message
        event = message.get("event", {})
        piece = event.get("data", {})
        out += base64.b64decode(piece.get("stdout", ""))
        err += base64.b64decode(piece.get("stderr", ""))
        if "end" in event:
            code = event["end"].get("exitCode", 0)
    assert code == 0, f"exit {code}: {err.decode(errors='replace')}"
    return out.decode().removesuffix("\n")
