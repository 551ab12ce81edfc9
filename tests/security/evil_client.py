"""evil_client.py - a client of a guest that lies, through a gateway. It never listens for longer than it wants."""

import contextlib
import select
import socket
import time
import urllib.parse

CLIENT_SECONDS = 30  # an innocent one waits that long, and fails
LISTEN_SECONDS = 0.3  # to a guest that never ends
LISTEN_BYTES = 4 << 20
WITH_BODY = b"Content-Length: 300000\r\n\r\n" + b"x" * 300_000
WITH_CHUNKS = b"Transfer-Encoding: chunked\r\n\r\n" + b"1000\r\n" + b"y" * 4096 + b"\r\n" + b"0\r\n\r\n"
WITH_UPGRADE = b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n"
REQUESTS = {"GET": b"\r\n", "HEAD": b"\r\n", "POST": WITH_BODY, "PUT": WITH_CHUNKS, "OPTIONS": WITH_UPGRADE}


def request_head(sandbox, port, method, name):
    return (f"{method} /{urllib.parse.quote(name)} HTTP/1.1\r\nHost: a\r\nE2b-Sandbox-Id: {sandbox}\r\n"
            f"E2b-Sandbox-Port: {port}\r\n").encode()


def ask(gateway_port, sandbox, port, method, name, listen=CLIENT_SECONDS):
    """A request, and what came back until the end, or until the client has had enough."""
    data = request_head(sandbox, port, method, name) + REQUESTS[method]
    with socket.create_connection(("127.0.0.1", gateway_port), CLIENT_SECONDS) as s:
        return converse(s, data, time.monotonic() + listen)


def converse(s, data, until):
    """Both ways at once: nobody may wait for the other for ever."""
    got, is_head = bytearray(), data.startswith(b"HEAD")
    s.setblocking(False)
    while len(got) < LISTEN_BYTES and (left := until - time.monotonic()) > 0:
        readable, writable, _ = select.select([s], [s] if data else [], [], left)
        try:
            if writable:
                data = data[s.send(data):]
            if readable:
                piece = s.recv(65536)
                if not piece:
                    break
                got += piece
                if is_whole(got, is_head):
                    break
        except (BrokenPipeError, ConnectionResetError):
            break
    return bytes(got)


def wait_end(s, until):
    """The answer is over, or the connection; what came last is enough to tell."""
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while not got or not is_whole(got, False):
            s.settimeout(max(until - time.monotonic(), 0.1))
            piece = s.recv(65536)
            if not piece:
                return
            got = got[-65536:] + piece


def is_whole(answer, is_head):
    """Is the answer over, as a client would see it? (In most cases: the connection is kept.)"""
    head, found, body = bytes(answer[:4096]).partition(b"\r\n\r\n")
    if not found or head.startswith(b"HTTP/1.1 1"):
        return False
    if is_head or head[9:12] in (b"204", b"304"):
        return True
    for line in head.lower().split(b"\r\n")[1:]:
        if line.startswith(b"content-length:"):
            return len(body) >= int(line.split(b":")[1])
    return answer.endswith(b"0\r\n\r\n")


def check_answer(name, answer):
    """A client sees HTTP, or a connection that ends."""
    assert not answer or answer.startswith(b"HTTP/1.1 "), (name, answer[:200])
    assert b"smuggled" not in answer and b"Set-Cookie" not in answer, (name, answer[:500])
