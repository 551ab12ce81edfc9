"""evil_registry.py - a registry that says what a test wants: manifests by name, blobs by digest or by a function."""

import http.server
import json
import re
import threading

from made_images import OCI

SENT_MAX = 64 << 20


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def answer(self, data, kind="application/octet-stream"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def refuse(self):
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        registry = self.server.registry
        found = re.fullmatch(r"/v2/(?:(\w+)/(manifests|blobs)/(\S+))?", self.path)
        name, what, reference = found.groups() if found else (None, None, None)
        if found and not name:
            self.answer(b"{}", "application/json")
        elif what == "manifests" and (name in registry.manifests or reference in registry.blobs):
            data = registry.blobs[reference] if reference in registry.blobs else registry.manifests[name]
            self.answer(data, kind_of(data))
        elif what == "blobs" and reference in registry.blobs:
            blob = registry.blobs[reference]
            blob(self) if callable(blob) else self.answer(blob)
        else:
            self.refuse()

    do_HEAD = do_GET

    def endless(self):
        """More than was promised, and no end to it."""
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        try:
            for _ in range(SENT_MAX >> 16):
                self.wfile.write(bytes(1 << 16))
        except OSError:
            pass

    def elsewhere(self, address):
        self.send_response(307)
        self.send_header("Location", address)
        self.send_header("Content-Length", "0")
        self.end_headers()


def kind_of(data):
    try:
        return json.loads(data)["mediaType"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"{OCI}.manifest.v1+json"


class EvilRegistry:
    def __init__(self):
        self.manifests, self.blobs = {}, {}

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.registry = self
        self.host = "127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()
