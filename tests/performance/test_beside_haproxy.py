"""test_beside_haproxy.py - TLS and HTTP/2 at the gateway beside HAProxy: same backend, certificate, cipher, client,
and the same fields added to requests.

The proxy has one core, backend and load have the other. Each round measures both, one after the other; what is
compared is work per second of processor time, the gateway's with that of the signer. Medians of HOTCELL_ROUNDS (5).
"""

import os
import re
import resource
import selectors
import socket
import ssl
import statistics
import subprocess
import threading
import time

import pytest

from daemon import free_port
from tls_gateway import TlsGateway
from warden import wait_for


ROUNDS = int(os.environ.get("HOTCELL_ROUNDS", "5"))
PORT, HELD_PORT = 8080, 8081
SUITE = "TLS_AES_256_GCM_SHA384"
PROXY_CORE, LOAD_CORE = "0", "1"
LARGE = 4 << 20
IDLE, MANY_IDLE, STREAMS = 1000, 10_000, 9_000
LEAST = {"requests": 0.8, "bytes": 0.8, "handshakes": 0.6}
TICKS = os.sysconf("SC_CLK_TCK")
CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # once: what the system trusts is read for seconds
CONTEXT.check_hostname, CONTEXT.verify_mode = False, ssl.CERT_NONE

NGINX = """
daemon off; worker_processes 1; pid {base}/nginx.pid; error_log {base}/nginx.log;
events {{ worker_connections 20000; }}
http {{
    access_log off; keepalive_requests 1000000; sendfile on;
    client_body_temp_path {base}/body; proxy_temp_path {base}/proxy; fastcgi_temp_path {base}/fastcgi;
    uwsgi_temp_path {base}/uwsgi; scgi_temp_path {base}/scgi;
    server {{ listen 169.254.77.2:{port} backlog=4096; root {base}/www; }}
}}
"""
HAPROXY = """
global
    nbthread 1
    maxconn 8000
    ssl-default-bind-options ssl-min-ver TLSv1.3
    ssl-default-bind-ciphersuites {suite}
    ssl-default-bind-curves X25519
defaults
    mode http
    timeout connect 5s
    timeout client 600s
    timeout server 600s
    http-reuse always
frontend tls
    bind 127.0.0.1:{port} ssl crt {pair} alpn h2,http/1.1
    option forwardfor
    http-request set-header X-Forwarded-Proto https
    http-request set-header X-Forwarded-Host %[req.hdr(host)]
    default_backend guest
backend guest
    server guest 169.254.77.2:{backend} namespace {namespace}
"""


def on_core(core, *words):
    return ["taskset", "-c", core, *map(str, words)]


class Proxy:
    """Something that ends TLS before the backend: where it is, and which processes do it."""

    def __init__(self, name, port, pids, host):
        self.name, self.port, self.pids, self.host = name, port, pids, host
        for pid in pids:
            subprocess.run(["taskset", "-acp", PROXY_CORE, str(pid)], check=True, capture_output=True)

    def cpu(self):
        total = 0
        for pid in self.pids:
            with open(f"/proc/{pid}/stat") as f:
                total += sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
        return total / TICKS

    def memory(self):
        total = 0
        for pid in self.pids:
            with open(f"/proc/{pid}/smaps_rollup") as f:
                total += int(re.search(r"^Pss: +(\d+) kB", f.read(), re.M)[1]) * 1024
        return total

    def load(self, path, *flags, done):
        """How much is done in a second of its processor time."""
        before = self.cpu()
        out = subprocess.run(on_core(LOAD_CORE, "h2load", f"--connect-to=127.0.0.1:{self.port}", *flags,
                                     f"https://{self.host}{path}"),
                             check=True, capture_output=True, text=True, timeout=300).stdout
        assert re.search(rf"\b{done} succeeded, 0 failed, 0 errored", out), out
        assert SUITE in out, out
        return done / max(self.cpu() - before, 1 / TICKS)

    def connect(self):
        s = CONTEXT.wrap_socket(socket.create_connection(("127.0.0.1", self.port), 60), server_hostname=self.host)
        assert s.cipher()[0] == SUITE
        return s


@pytest.fixture(scope="module", autouse=True)
def many_files():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@pytest.fixture(scope="module")
def gateway():
    with TlsGateway(connections_max=20_000, address_connections_max=20_000,
                     sandbox_connections_max=20_000) as g:
        g.box = g.node.add("ihaproxy", g.team)
        yield g


@pytest.fixture(scope="module")
def backend(gateway):
    base = gateway.base / "nginx"
    (base / "www").mkdir(parents=True)
    (base / "www/small").write_bytes(b"x" * 1024)
    (base / "www/large").write_bytes(b"x" * LARGE)
    for path in (base, base / "www", base / "www/small", base / "www/large"):
        path.chmod(0o755)
    (base / "nginx.conf").write_text(NGINX.format(base=base, port=PORT))
    nginx = subprocess.Popen(gateway.node.command(*on_core(LOAD_CORE, "nginx", "-c", base / "nginx.conf")))
    yield base
    nginx.terminate()
    nginx.wait()


@pytest.fixture(scope="module")
def proxies(gateway, backend):
    port = free_port()
    pair = gateway.base / "pair.pem"
    pair.write_text(gateway.pair.chain + gateway.pair.key)
    config = gateway.base / "haproxy.cfg"
    config.write_text(HAPROXY.format(suite=SUITE, port=port, pair=pair, backend=PORT, namespace=gateway.node.namespace))
    haproxy = subprocess.Popen(["haproxy", "-db", "-f", config])
    host = f"{gateway.host(gateway.box, PORT)}"
    wait_for(lambda: is_open(port), "haproxy listens")
    yield [Proxy("gateway", gateway.tls_port, [gateway.daemon.pid, gateway.signer.daemon.pid], host),
           Proxy("haproxy", port, [haproxy.pid], host)]
    haproxy.terminate()
    haproxy.wait()


def is_open(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def compare(proxies, what, *load, done, per="", unit=1):
    found = {p.name: [] for p in proxies}
    for p in proxies:
        p.load(*load, done=done)  # what is cold becomes warm
    for n in range(ROUNDS):
        for p in proxies if n % 2 else proxies[::-1]:
            found[p.name].append(p.load(*load, done=done) * unit)
    ours, theirs = (statistics.median(found[name]) for name in ("gateway", "haproxy"))
    print(f"{what}: gateway {ours:.0f}, HAProxy {theirs:.0f} {per} a second of processor time: {ours / theirs:.2f} x")
    return ours / theirs


def test_memory_of_an_idle_connection(proxies):
    """First of all: what was freed after a load would be used again, and look like nothing."""
    for p in proxies:
        held = [p.connect() for _ in range(50)]
        before = p.memory()
        held += [p.connect() for _ in range(IDLE)]
        print(f"{p.name}: {(p.memory() - before) / IDLE / 1024:.1f} KiB for an idle connection")
        for s in held:
            s.close()


@pytest.mark.parametrize("version", ["http/1.1", "h2"])
def test_requests(proxies, version):
    flags = ["--h1", "-c20"] if version == "http/1.1" else ["-c10", "-m20"]
    assert compare(proxies, f"requests, {version}", "/small", "-n20000", *flags, done=20000) >= LEAST["requests"]


@pytest.mark.parametrize("version", ["http/1.1", "h2"])
def test_bytes(proxies, version):
    flags = ["--h1", "-c4"] if version == "http/1.1" else ["-c2", "-m4", "-w20", "-W22"]
    assert compare(proxies, f"MiB, {version}", "/large", "-n200", *flags, done=200,
                   unit=LARGE / (1 << 20)) >= LEAST["bytes"]


def test_full_handshakes(proxies):
    """A connection each, with one small request in it."""
    assert compare(proxies, "full handshakes", "/small", "-n1000", "-c1000", "--h1", "-r500",
                   done=1000) >= LEAST["handshakes"]


def test_many_idle_connections_are_held(gateway, proxies):
    p = proxies[0]
    held = []
    try:
        for _ in range(MANY_IDLE):
            held.append(p.connect())
        assert p.load("/small", "-n100", "-c1", done=100) > 0
        for s in held[::500]:
            s.sendall(f"GET /small HTTP/1.1\r\nHost: {p.host}\r\n\r\n".encode())
            assert s.recv(15) == b"HTTP/1.1 200 OK"
        print(f"{len(held)} idle connections: {p.memory() >> 20} MiB")
    finally:
        for s in held:
            s.close()


class Held(threading.Thread):
    """A backend that begins each answer, and ends all at once when told to."""

    def __init__(self, listening):
        super().__init__(daemon=True)
        self.listening, self.open, self.go_on = listening, [], threading.Event()
        self.most = 0

    def run(self):
        ready = selectors.DefaultSelector()
        self.listening.setblocking(False)
        ready.register(self.listening, selectors.EVENT_READ)
        while not self.go_on.is_set():
            for key, _ in ready.select(0.1):
                if key.fileobj is self.listening:
                    s, _ = self.listening.accept()
                    ready.register(s, selectors.EVENT_READ)
                elif key.fileobj.recv(65536):
                    key.fileobj.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh")
                    self.open.append(key.fileobj)
                    self.most = max(self.most, len(self.open))
                else:
                    ready.unregister(key.fileobj)
        for s in self.open:
            s.sendall(b"i")


def test_many_relayed_streams_are_held(gateway, proxies):
    held = Held(gateway.node.listen(HELD_PORT))
    held.start()
    p = proxies[0]
    load = subprocess.Popen(on_core(LOAD_CORE, "h2load", f"--connect-to=127.0.0.1:{p.port}", f"-n{STREAMS}",
                                    f"-c{STREAMS // 100}", "-m100",
                                    f"https://{gateway.host(gateway.box, HELD_PORT)}/"), stdout=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: held.most == STREAMS, f"{STREAMS} streams are there", 300)
        print(f"{STREAMS} relayed streams: {p.memory() >> 20} MiB")
        assert p.load("/small", "-n100", "-c1", done=100) > 0
        held.go_on.set()
        out = load.communicate(timeout=120)[0]
    finally:
        load.kill()
    assert f"{STREAMS} succeeded, 0 failed" in out, out
