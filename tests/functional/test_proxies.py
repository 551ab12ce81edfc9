"""test_proxies.py - a real gateway behind real proxies, with the configurations of docs/proxies.md.

HAProxy (with fields, and with the PROXY protocol), nginx and Caddy end TLS in front of a gateway with a played node. What
is checked is what a client, a service in a sandbox and an operator see: who is counted, what passes, and as what. The
second part needs no proxy: what becomes of bad headers, and of the word of those who are not listed.

Clients come from 127.0.0.2 and 127.0.0.3, proxies from 127.0.0.1.
"""

import contextlib
import hashlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import time

import pytest

from lone_gateway import DOMAIN
from proxied import ALICE, KINDS, PORT, SECONDS, SIGNATURE, ProxiedGateway, Proxy, header
from warden import build_dir, wait_for

LIMIT = 4
UPLOAD = 24 << 20
BOB = "127.0.0.3"
FORGED = {"X-Forwarded-For": "198.51.100.1", "X_Forwarded_For": "198.51.100.2", "X-Real-IP": "198.51.100.3",
          "Forwarded": "for=198.51.100.4", "X-Forwarded-Proto": "gopher", "X-Forwarded-Host": "evil.test"}
# names them as fields of the connection between client and proxy: a proxy might leave out its own
HOPS = {"Connection": "close, X-Forwarded-For, X-Forwarded-Proto, X-Real-IP", "X-Forwarded-For": "198.51.100.1"}
WS_KEY = b"dGhlIHNhbXBsZSBub25jZQ=="


@pytest.fixture(scope="module", params=list(KINDS))
def proxy(request):
    if not shutil.which(KINDS[request.param]):
        pytest.skip(f"{KINDS[request.param]} is not installed")
    settings = {"proxies": "127.0.0.1", "address_connections_max": LIMIT}
    if request.param == "haproxy-tcp":
        settings["proxy_protocol"] = "yes"
    with ProxiedGateway(**settings) as gateway, Proxy(request.param, gateway) as one:
        yield one


# --- what passes, and who is counted ---


def only(fields, name):
    values = [value for n, value in fields if n == name]
    assert len(values) == 1, fields
    return values[0]


@pytest.mark.parametrize("source", [ALICE, BOB])
@pytest.mark.parametrize("said", [{}, FORGED, HOPS], ids=["honest", "forged", "hop by hop"])
def test_a_service_sees_the_true_client(proxy, source, said):
    """And the name it was called by, and that TLS was spoken; nothing of what the client made up."""
    with proxy.service(source) as c:
        answer = c.ask("GET", "/head", headers={**said, "X-Own": "1"})
        assert answer.status == 200, answer.body
        fields = json.loads(answer.body)
        assert only(fields, "x-forwarded-for") == source
        assert only(fields, "x-forwarded-proto") == "https"
        assert only(fields, "host").split(":")[0] == c.host == only(fields, "x-forwarded-host").split(":")[0]
        assert only(fields, "x-own") == "1"
        assert b"198.51.100" not in answer.body and b"evil" not in answer.body and b"gopher" not in answer.body


def test_the_api_is_reached(proxy):
    with proxy.connect("api") as c:
        assert c.ask("GET", "/sandboxes").status == 401
        answer = c.ask("GET", "/sandboxes", headers={"X-API-KEY": proxy.gateway.key})
        assert answer.status == 200 and [box["sandboxID"] for box in json.loads(answer.body)] == [proxy.gateway.box["id"]]


def held(proxy, source, stack):
    c = stack.enter_context(proxy.service(source))
    answer = c.begin("GET", "/hold")
    assert answer.status == 200 and answer.read(1) == b"1"
    return c


def status(proxy, source, headers=()):
    with proxy.service(source) as c:
        return c.ask("GET", "/head", headers=headers).status


def test_limits_hit_the_one_who_asks(proxy):
    """Whatever it says of itself; another client of the same proxy does not notice, and the proxy is no address."""
    proxy.gateway.service.over.clear()
    with contextlib.ExitStack() as stack:
        wait_for(lambda: status(proxy, ALICE) == 200, "nothing is left of the tests before", SECONDS, 0.05)
        for _ in range(LIMIT):
            held(proxy, ALICE, stack)
        assert status(proxy, ALICE) == 429
        assert status(proxy, ALICE, FORGED) == 429
        for _ in range(LIMIT - 1):
            held(proxy, BOB, stack)
        assert status(proxy, BOB) == 200
    if proxy.kind == "haproxy":  # as the page says: it does not notice before there is something to send
        proxy.gateway.service.over.set()
    wait_for(lambda: status(proxy, ALICE) == 200, "there is room again", SECONDS, 0.05)


def test_a_stream_arrives_as_it_is_sent(proxy):
    """The second half of it is sent when the client has seen the first."""
    with proxy.service() as c, proxy.service() as other:
        answer = c.begin("GET", "/stream")
        assert answer.readline() == b"one\n"
        assert other.ask("GET", "/go_on").body == b"yes"
        assert answer.read() == b"two\n"


def test_a_large_upload(proxy):
    body = os.urandom(UPLOAD)
    with proxy.service() as c:
        assert c.ask("POST", "/upload", body=body).body.decode() == hashlib.sha256(body).hexdigest()


def frame(text):
    mask = os.urandom(4)
    return bytes([0x81, 0x80 | len(text)]) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(text))


def test_a_websocket(proxy):
    with proxy.service() as c:
        c.connect()
        c.sock.sendall(b"GET /ws HTTP/1.1\r\nHost: %s:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                       b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n" % (c.host.encode(), proxy.port, WS_KEY))
        f = c.sock.makefile("rb")
        assert f.readline().startswith(b"HTTP/1.1 101 "), f.readline()
        while f.readline() not in (b"\r\n", b""):
            pass
        for text in b"one", b"two":
            c.sock.sendall(frame(text))
            assert f.read(2 + len(text)) == bytes([0x81, len(text)]) + text


def test_http2_to_the_proxy(proxy):
    """The same is seen."""
    host = f"{PORT}-{proxy.gateway.box['id']}.{DOMAIN}"
    done = subprocess.run(["curl", "-sS", "--http2", "--max-time", str(SECONDS), "--interface", ALICE, "--cacert",
                           proxy.authority.cert, "--resolve", f"{host}:{proxy.port}:127.0.0.1", "-w", "\n%{http_version}",
                           "-H", "X-Forwarded-For: 198.51.100.1", f"https://{host}:{proxy.port}/head"],
                          check=True, capture_output=True, text=True)
    body, version = done.stdout.rsplit("\n", 1)
    fields = json.loads(body)
    assert version == "2"
    assert only(fields, "x-forwarded-for") == ALICE and only(fields, "x-forwarded-proto") == "https"
    assert only(fields, "host").split(":")[0] == host


# --- without a proxy: headers that are wrong, and peers who are not listed ---


@pytest.fixture(scope="module")
def introduced():
    with ProxiedGateway(proxies="127.0.0.1", proxy_protocol="yes", address_connections_max=LIMIT) as gateway:
        yield gateway


def head(gateway):
    return f"GET /head HTTP/1.1\r\nHost: {gateway.host(gateway.box, PORT)}\r\n\r\n".encode()


def read_answer(s):
    answer = http.client.HTTPResponse(s)
    answer.begin()
    return answer.status, answer.read()


def test_a_header_may_come_in_pieces(introduced):
    whole = header("203.0.113.9") + head(introduced)
    with socket.create_connection(("127.0.0.1", introduced.port), SECONDS) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(whole)):
            s.sendall(whole[i:i + 1])
        code, body = read_answer(s)
        assert code == 200 and only(json.loads(body), "x-forwarded-for") == "203.0.113.9"
        s.sendall(head(introduced).replace(b"\r\n\r\n", b"\r\nX-Forwarded-For: 198.51.100.1\r\n\r\n"))
        code, body = read_answer(s)  # the client is not listed: its fields say nothing
        assert only(json.loads(body), "x-forwarded-for") == "203.0.113.9"


def test_a_proxy_before_the_proxy_is_believed_when_it_is_listed(introduced):
    with socket.create_connection(("127.0.0.1", introduced.port), SECONDS) as s:
        s.sendall(header("127.0.0.1") + head(introduced).replace(b"\r\n\r\n", b"\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n"))
        code, body = read_answer(s)
        assert code == 200 and only(json.loads(body), "x-forwarded-for") == "203.0.113.9"


def is_closed(s):
    """Without an answer."""
    try:
        return s.recv(1) == b""
    except ConnectionResetError:
        return True


BAD = {"http": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "version 1": b"PROXY TCP4 203.0.113.9 127.0.0.1 4711 443\r\n",
       "tls": b"\x16\x03\x01\x02\x00\x01\x00", "endless": SIGNATURE + b"\x21\x11\xff\xff" + bytes(70000),
       "udp": SIGNATURE + b"\x21\x12\x00\x0c" + bytes(12), "a part too long": SIGNATURE + b"\x21\x11\x00\x0f" + bytes(12) + b"\x20\xff\xff"}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_header_ends_the_connection(introduced, name):
    with socket.create_connection(("127.0.0.1", introduced.port), SECONDS) as s:
        with contextlib.suppress(OSError):
            s.sendall(BAD[name])
        assert is_closed(s)
    assert introduced.serves()


def test_it_is_logged_once_a_minute(introduced):
    lines = [line for line in introduced.daemon.log().splitlines() if "a connection of proxy 127.0.0.1" in line]
    assert len(lines) == 1 and "no PROXY header" in lines[0], lines


def test_a_slow_header_ends_the_connection(introduced):
    """A byte a while does not help it; and nobody else waits for it."""
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", introduced.port), SECONDS) as slow:
        slow.settimeout(0.5)
        for byte in (header("203.0.113.9") * 2)[:27]:
            with contextlib.suppress(TimeoutError):
                slow.sendall(bytes([byte]))
                assert introduced.serves()
                if is_closed(slow):
                    break
        slow.settimeout(SECONDS)
        assert is_closed(slow)
    assert 4 < time.monotonic() - begun < 15


class Unlisted(ProxiedGateway):
    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), SECONDS)


@pytest.fixture(scope="module")
def stranger():
    with Unlisted(proxies="127.0.0.9 2001:db8::/32", proxy_protocol="yes") as gateway:
        yield gateway


def test_the_word_of_others_is_nothing(stranger):
    """Neither passed on nor believed; and a header of theirs is a bad request."""
    answer = stranger.ask("GET", "/head", key=None, headers={**FORGED, "Host": stranger.host(stranger.box, PORT)})
    assert answer.status == 200
    assert only(answer.json, "x-forwarded-for") == "127.0.0.1" and only(answer.json, "x-forwarded-proto") == "http"
    assert b"198.51.100" not in answer.raw and b"evil" not in answer.raw
    with stranger.connect() as s:
        s.sendall(header("203.0.113.9") + head(stranger))
        assert read_answer(s)[0] == 400


@pytest.mark.parametrize("value", ["192.0.2.1/24", "proxy.example", "0.0.0.0/0", "10.0.0.0/8,10.1.0.0/16"])
def test_a_wrong_list_is_said_at_start(tmp_path, value):
    tmp_path.joinpath("gateway.conf").write_text(f"proxies = {value}\nlisten = 127.0.0.1:0\n")
    done = subprocess.run([build_dir() / "src/gateway/hotcell-gateway", tmp_path / "gateway.conf"], capture_output=True, timeout=SECONDS)
    assert done.returncode == 1 and b"proxies: `" in done.stderr
