"""test_http2.py - HTTP/2 at the gateway: the same API, the same relay, WebSockets; and h2spec.

A real gateway before a played node, so no guest is needed. That HTTP/2 was spoken is what the gateway itself says.
"""

import base64
import concurrent.futures
import contextlib
import hashlib
import json
import re
import socket
import subprocess
import threading

import pytest

from engine import artefact
from h2_client import H2Client
from lone_gateway import LoneGateway
from tls_gateway import TlsGateway

BIG = 3 << 20
PORT = 8080
LEFT_OUT = ()  # of h2spec: none; nghttp2's own server fails http2/5.1.1/2


@pytest.fixture(scope="module")
def gateway():
    with LoneGateway() as g:
        g.box = g.node.add("i1", g.team)
        g.server = Backend(g.node.listen(PORT))
        yield g
        g.server.close()


class Backend:
    """A service in a sandbox: answers with what it was asked, and speaks a kind of WebSocket."""

    def __init__(self, listener):
        self.listener, self.held = listener, []
        self.read_on = threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                s, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=[s], daemon=True).start()

    def serve(self, s):
        with contextlib.suppress(OSError), s, s.makefile("rb") as f:
            while line := f.readline():
                method, target, _ = line.decode().split()
                fields = {}
                while (line := f.readline().strip()):
                    name, _, value = line.decode().partition(":")
                    fields[name.lower()] = value.strip()
                if target == "/stuck":
                    self.read_on.wait(60)
                if "upgrade" in fields:
                    self.web_socket(s, f, fields)
                    return
                self.answer(s, method, target, fields, self.body(f, fields))

    @staticmethod
    def body(f, fields):
        if fields.get("transfer-encoding") != "chunked":
            return f.read(int(fields.get("content-length", 0)))
        got = b""
        while size := int(f.readline(), 16):
            got += f.read(size)
            f.readline()
        f.readline()
        return got

    @staticmethod
    def answer(s, method, target, fields, body):
        if target == "/big":
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % BIG + b"b" * BIG)
            return
        said = json.dumps({"method": method, "target": target, "fields": fields, "length": len(body)}).encode()
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: keep-alive\r\n"
                  b"Content-Length: %d\r\n\r\n" % len(said) + (b"" if method == "HEAD" else said))

    @staticmethod
    def web_socket(s, f, fields):
        sum_ = hashlib.sha1((fields["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        s.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                  b"X-Fields: %s\r\nSec-WebSocket-Accept: %s\r\n\r\n" % (b",".join(map(str.encode, sorted(fields))),
                                                                        base64.b64encode(sum_)))
        while line := f.readline():
            s.sendall(b"echo " + line)


def spoken(gateway):
    return gateway.admin("GET", "/admin/status").json["gateway"]["http"]["2"]


@pytest.fixture
def client(gateway):
    with H2Client(gateway.port) as c:
        c.authority = gateway.host(gateway.box, PORT)
        yield c


def h2spec(port, *words):
    """Every case; the names of those that are left out are in LEFT_OUT."""
    done = subprocess.run([artefact("h2spec"), "-h", "127.0.0.1", "-p", str(port), "-P", "/", "-o", "3", *words],
                          capture_output=True, text=True, timeout=120, check=False)
    said = done.stdout.partition("Failures:")[2] or done.stdout[-300:]
    found = re.search(r"(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed", done.stdout)
    assert found, said
    assert int(found[1]) >= 145 and (int(found[3]), int(found[4])) == (0, len(LEFT_OUT)), said


def test_h2spec(gateway):
    h2spec(gateway.port)


def test_h2spec_over_tls():
    with TlsGateway() as gateway:
        h2spec(gateway.tls_port, "-t", "-k")
        assert spoken(gateway)["connections"] > 100
        assert gateway.tls()["signatures"]["made"] > 100


def test_the_api_answers_and_counts_it(gateway):
    before = spoken(gateway)
    out = subprocess.run(["curl", "-sS", "--http2-prior-knowledge", "-H", f"X-API-KEY: {gateway.key}",
                          "-w", "\n%{http_version} %{http_code}", gateway.url + "/v2/sandboxes"],
                         check=True, capture_output=True, text=True).stdout
    body, _, what = out.rpartition("\n")
    assert what == "2 200"
    assert [row["sandboxID"] for row in json.loads(body)] == [gateway.box["id"]]
    after = spoken(gateway)
    assert (after["connections"] - before["connections"], after["requests"] - before["requests"]) == (1, 1)


def test_a_relayed_request_is_one_of_http1(client):
    got = client.get("/path?q=1", {"cookie": "a=1", "x-mine": "y"}, "POST", b"0123456789")
    said = json.loads(bytes(got.body))
    assert (got.status, said["method"], said["target"], said["length"]) == (200, "POST", "/path?q=1", 10)
    assert said["fields"]["host"] == client.authority
    assert said["fields"]["x-mine"] == "y" and said["fields"]["cookie"] == "a=1"
    assert "connection" not in got.headers and "keep-alive" not in got.headers
    head = client.get("/", method="HEAD")
    assert (head.status, bytes(head.body)) == (200, b"") and int(head.headers["content-length"]) > 0


def test_large_bodies_both_ways(client):
    up = client.get("/up", method="PUT", body=b"u" * BIG)
    assert json.loads(bytes(up.body))["length"] == BIG
    down = client.get("/big")
    assert len(down.body) == BIG and down.ended


def test_a_hundred_streams_at_once(client):
    streams = [client.ask("GET", f"/{n}") for n in range(100)]
    client.until(lambda: all(s.over for s in streams))
    assert [json.loads(bytes(s.body))["target"] for s in streams] == [f"/{n}" for n in range(100)]


def test_who_does_not_read_holds_up_only_himself(gateway, client):
    """The sandbox reads neither of three uploads: each fills its own window; others pass."""
    gateway.server.read_on.clear()
    stuck = [client.ask("PUT", "/stuck", {"content-length": str(BIG)}, end=False) for _ in range(3)]
    for s in stuck:
        with contextlib.suppress(AssertionError):
            send_all_windows(client, s)
    assert json.loads(bytes(client.get("/", method="PUT", body=b"x" * BIG).body))["length"] == BIG
    assert not any(s.over for s in stuck)
    gateway.server.read_on.set()
    for s in stuck:
        client.send(s, b"s" * (BIG - s.sent), end=True)
    client.until(lambda: all(s.over for s in stuck))
    assert [json.loads(bytes(s.body))["length"] for s in stuck] == [BIG] * 3


def send_all_windows(client, stream):
    """As much as is taken, until nothing moved for a while."""
    stream.sent = 0
    while stream.sent < BIG:
        room = min(client.h2.local_flow_control_window(stream.number), 16384, BIG - stream.sent)
        if room == 0:
            if not client.turn(0.3):
                return
            continue
        client.h2.send_data(stream.number, b"s" * room)
        client.flush()
        stream.sent += room


def test_a_websocket_by_connect(client):
    ws = client.ask("CONNECT", "/ws", {":protocol": "websocket", "sec-websocket-version": "13"}, end=False)
    client.until(lambda: ws.status or ws.over)
    assert ws.status == 200
    assert client.settings[8] == 1
    assert "sec-websocket-accept" not in ws.headers and "upgrade" not in ws.headers
    assert "sec-websocket-version" in ws.headers["x-fields"].split(",")
    for n in range(100):
        client.send(ws, b"%d\n" % n)
        want = b"".join(b"echo %d\n" % i for i in range(n + 1))
        client.until(lambda want=want: bytes(ws.body) == want)
    client.end(ws)
    client.until(lambda: ws.ended)


def test_a_websocket_by_upgrade(gateway):
    with socket.create_connection(("127.0.0.1", gateway.port), 30) as s, s.makefile("rb") as f:
        s.sendall(f"GET /ws HTTP/1.1\r\nHost: {gateway.host(gateway.box, PORT)}\r\nConnection: Upgrade\r\n"
                  "Upgrade: websocket\r\nSec-WebSocket-Key: abc\r\n\r\n".encode())
        assert b" 101 " in f.readline()
        while f.readline().strip():
            pass
        s.sendall(b"x\n")
        assert f.readline() == b"echo x\n"


def test_no_websocket_behind_it(gateway, client):
    ws = client.ask("CONNECT", "/", {":protocol": "websocket"}, end=False,
                    authority=gateway.host(gateway.box, PORT + 1))
    client.until(lambda: ws.over)
    assert ws.status == 502
    other = client.ask("CONNECT", "/", {":protocol": "connect-udp"}, end=False)
    client.until(lambda: other.over)
    assert other.status == 501


def test_grpc_is_refused_as_grpc(client):
    got = client.get("/a.B/C", {"content-type": "application/grpc", "te": "trailers"}, "POST", b"\0\0\0\0\0")
    assert (got.status, got.headers["grpc-status"]) == (200, "12")
    web = client.get("/a.B/C", {"content-type": "application/grpc-web+proto"}, "POST", b"\0\0\0\0\0")
    assert json.loads(bytes(web.body))["length"] == 5


def test_both_versions_at_one_port(gateway):
    def one(n):
        if n % 2:
            return gateway.ask("GET", "/health", key=None).status
        with H2Client(gateway.port) as c:
            return c.get("/health").status

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert set(pool.map(one, range(64))) == {204}


def test_h2load(gateway):
    before = spoken(gateway)["requests"]
    out = subprocess.run(["h2load", "-n", "4000", "-c", "8", "-m", "20", gateway.url + "/health"], check=True,
                         capture_output=True, text=True, timeout=60).stdout
    assert "4000 succeeded, 0 failed, 0 errored" in out, out
    assert spoken(gateway)["requests"] - before == 4000
