"""proxied.py - a gateway with a service in a sandbox, and real proxies before it, with the configurations of docs/proxies.md.

    with ProxiedGateway(proxies="127.0.0.1") as gateway, Proxy("nginx", gateway) as proxy:
        with proxy.service(source="127.0.0.2") as client:      # HTTPS through the proxy, to the service
            client.ask("GET", "/head")

The certificate is the test's own, for hotcell.test and *.hotcell.test: proxy.authority.cert is to be trusted.
"""

import base64
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import struct
import subprocess
import threading

import certs
from daemon import free_port
from lone_gateway import DOMAIN, LoneGateway
from warden import wait_for

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/proxies.md"
KINDS = {"haproxy": "haproxy", "haproxy-tcp": "haproxy", "nginx": "nginx", "caddy": "caddy"}  # of the page: program
PORT = 8080
SECONDS = 30
ALICE = "127.0.0.2"  # where clients come from; proxies come from 127.0.0.1
WS_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


# --- a service in the sandbox ---


class Service:
    """What it does is the path: /head, /stream, /go, /upload, /ws, /hold."""

    def __init__(self, listening):
        self.listening, self.go, self.over, self.open = listening, threading.Event(), threading.Event(), []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                s, _ = self.listening.accept()
                self.open.append(s)
                threading.Thread(target=self.serve, args=[s], daemon=True).start()

    def serve(self, s):
        with s, contextlib.suppress(OSError, ValueError), s.makefile("rwb") as f:
            while line := f.readline():
                method, path, _ = line.decode().split(" ", 2)
                fields = []
                while (line := f.readline()) not in (b"\r\n", b""):
                    name, _, value = line.decode().partition(":")
                    fields.append([name.lower(), value.strip()])
                getattr(self, path.strip("/"))(f, fields)
                f.flush()

    @staticmethod
    def answer(f, body):
        f.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    def head(self, f, fields):
        self.answer(f, json.dumps(fields).encode())

    def go_on(self, f, fields):
        self.go.set()
        self.answer(f, b"yes")

    def stream(self, f, fields):
        self.go.clear()
        f.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n")
        f.flush()
        self.go.wait(SECONDS)
        f.write(b"4\r\ntwo\n\r\n0\r\n\r\n")

    def hold(self, f, fields):
        f.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1")
        f.flush()
        self.over.wait(SECONDS)
        f.write(b"2")

    def upload(self, f, fields):
        got, left = hashlib.sha256(), int(dict(fields)["content-length"])
        while left > 0 and (piece := f.read(min(left, 1 << 20))):
            got.update(piece)
            left -= len(piece)
        self.answer(f, got.hexdigest().encode())

    def ws(self, f, fields):
        key = dict(fields)["sec-websocket-key"].encode()
        accept = base64.b64encode(hashlib.sha1(key + WS_GUID).digest())
        f.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Accept: %s\r\n\r\n" % accept)
        f.flush()
        while head := f.read(2):
            mask, text = f.read(4), f.read(head[1] & 127)
            f.write(bytes([head[0], len(text)]) + bytes(b ^ mask[i % 4] for i, b in enumerate(text)))
            f.flush()

    def close(self):
        self.go.set()
        self.over.set()
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        for s in self.open:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)


# --- proxies ---


def configuration(kind):
    """The text of the page, as it is."""
    found = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert len(found) == 1, f"{kind}: {len(found)} configurations in {PAGE.name}"
    return found[0]


class Proxy:
    """One of them, with its configuration of the page: ports, names, paths and the number of descriptors alone are the test's."""

    def __init__(self, kind, gateway):
        self.kind, self.program, self.gateway = kind, KINDS[kind], gateway
        self.folder = gateway.base / kind
        self.folder.mkdir()
        self.port, self.process = free_port(), None
        self.authority = certs.Authority(self.folder)
        chain, key = self.authority.issue(DOMAIN, f"*.{DOMAIN}")
        for name, text in (("fullchain.pem", chain), ("privkey.pem", key), ("hotcell.pem", chain + key)):
            (self.folder / name).write_text(text)

    def fill_in(self, text):
        for old, new in (("127.0.0.1:3000", f"127.0.0.1:{self.gateway.port}"), ("hotcell.example", DOMAIN),
                         ("/etc/haproxy/", f"{self.folder}/"), ("/etc/nginx/hotcell/", f"{self.folder}/"),
                         ("/etc/caddy/hotcell/", f"{self.folder}/"), ("bind :443", f"bind 127.0.0.1:{self.port}"),
                         ("listen 443", f"listen 127.0.0.1:{self.port}"), ("maxconn 20000", "maxconn 1000")):
            text = text.replace(old, new)
        if self.program == "caddy":
            text = "{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + \
                text.replace(f"{DOMAIN}, *.{DOMAIN} {{", f"{DOMAIN}:{self.port}, *.{DOMAIN}:{self.port} {{")
        if self.program == "nginx":
            places = "".join(f"{name}_temp_path {self.folder}/{name};\n"
                             for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
            text = f"pid {self.folder}/pid;\nuser root;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{places}{text}}}\n"
        return text

    def command(self, path):
        return {"haproxy": ["haproxy", "-db", "-f", path], "caddy": ["caddy", "run", "--adapter", "caddyfile", "--config", path],
                "nginx": ["nginx", "-e", "stderr", "-g", "daemon off;", "-c", path]}[self.program]

    def __enter__(self):
        config = self.folder / "config"
        config.write_text(self.fill_in(configuration(self.kind)))
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(self.command(config), stdout=log, stderr=log, start_new_session=True,
                                            env={**os.environ, "HOME": str(self.folder), "XDG_DATA_HOME": str(self.folder)})
        wait_for(self.serves, f"{self.program} serves", SECONDS, 0.05)
        return self

    def serves(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()
        with contextlib.suppress(OSError, http.client.HTTPException), self.connect("api") as c:
            return c.ask("GET", "/health").status in (200, 204)
        return False

    def __exit__(self, *exc):
        if self.process and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        if exc and exc[0]:
            print((self.folder / "log").read_text()[-4000:])

    # --- its clients ---

    def connect(self, name, source=ALICE):
        return Client(self, f"{name}.{DOMAIN}", source)

    def service(self, source=ALICE):
        return self.connect(f"{PORT}-{self.gateway.box['id']}", source)


class Client(http.client.HTTPSConnection):
    def __init__(self, proxy, host, source):
        super().__init__(host, proxy.port, timeout=SECONDS, source_address=(source, 0),
                         context=ssl.create_default_context(cafile=proxy.authority.cert))

    def connect(self):
        raw = socket.create_connection(("127.0.0.1", self.port), self.timeout, self.source_address)
        self.sock = self._context.wrap_socket(raw, server_hostname=self.host)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def begin(self, method, path, body=None, headers=()):
        """The answer's head; its body is not read yet."""
        self.request(method, path, body, dict(headers))
        return self.getresponse()

    def ask(self, *args, **more):
        answer = self.begin(*args, **more)
        answer.body = answer.read()
        return answer


class ProxiedGateway(LoneGateway):
    """With a sandbox in which the service listens."""

    def __enter__(self):
        super().__enter__()
        self.box = self.node.add("iproxied0000000000001", self.team)
        self.service = Service(self.node.listen(PORT))
        return self

    def __exit__(self, *exc):
        self.service.close()
        super().__exit__(*exc)

    def connect(self):
        """As the proxy does; also where it has to say who it speaks for."""
        s = socket.create_connection(("127.0.0.1", self.port), SECONDS)
        if self.daemon.settings.get("proxy_protocol") == "yes":
            s.sendall(LOCAL)
        return s

    def serves(self):
        self.daemon.check_alive()
        with contextlib.suppress(OSError, http.client.HTTPException), self.connect() as s:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            return s.recv(4096).startswith(b"HTTP/1.1 204") and self.admin("GET", "/admin/status").json["node"] is not None
        return False


SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
LOCAL = SIGNATURE + b"\x20\x00\x00\x00"


def header(client, port=4711):
    """For a client of IPv4."""
    return SIGNATURE + b"\x21\x11\x00\x0c" + socket.inet_aton(client) + socket.inet_aton("127.0.0.1") + \
        struct.pack(">HH", port, 443)
