"""test_opened_tls.py - what it costs that TLS is opened for a rule: against the same client and server without it.

Figures are printed; what is promised is modest, for the client and the server share the machine."""

import concurrent.futures
import os
import socket
import ssl
import time

import injector
import pytest

HOST = "api.example.com"
RULES = {HOST: [{"transform": {"headers": {"Authorization": "Bearer 12345"}}}]}
MIB = int(os.environ.get("HOTCELL_OPENED_MIB", "64"))
CONNECTIONS = int(os.environ.get("HOTCELL_OPENED_CONNECTIONS", "200"))
LEAST = 0.1  # of the direct one: two more TLS ends, on cores that all share


class Bulk(injector.Server):
    """Answers GET /N with N MiB."""

    def serve_one(self, stream):
        head = stream.readline()
        while stream.readline() not in (b"\r\n", b""):
            pass
        if not head:
            return False
        n = int(head.split()[1][1:])
        stream.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (n << 20))
        for _ in range(n):
            stream.write(b"x" * (1 << 20))
        stream.flush()
        return True


@pytest.fixture(name="world")
def fixture_world(tmp_path):
    both, alone = injector.certificate(tmp_path, HOST)
    it = injector.Injector(extra_ca=alone).start()
    server = Bulk(both)
    context = ssl.create_default_context(cadata=it.facts()["ca"])
    context.load_verify_locations(alone)
    channel = it.worker(RULES)
    yield context, server, channel
    server.close()
    it.end()


def fetch(context, sock, n):
    with context.wrap_socket(sock, server_hostname=HOST) as tls:
        tls.sendall(f"GET /{n} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        left, into = n << 20, bytearray(1 << 18)
        head = b""
        while b"\r\n\r\n" not in head:
            head += tls.recv(4096)
        left -= len(head.split(b"\r\n\r\n", 1)[1])
        while left > 0:
            left -= tls.recv_into(into)


def seconds(work):
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def test_bulk(world):
    context, server, channel = world
    ratios = []
    for _ in range(3):
        direct = seconds(lambda: fetch(context, socket.create_connection(server.address), MIB))
        opened = seconds(lambda: fetch(context, channel.hand(HOST, server.address), MIB))
        ratios.append(direct / opened)
        print(f"{MIB} MiB: direct {MIB / direct:.0f} MiB/s, opened {MIB / opened:.0f} MiB/s, ratio {ratios[-1]:.2f}")
        if ratios[-1] >= LEAST:
            break
    assert max(ratios) >= LEAST


def test_connection_rate(world):
    context, server, channel = world

    def one_opened(_):
        fetch(context, channel.hand(HOST, server.address), 0)

    def one_direct(_):
        fetch(context, socket.create_connection(server.address), 0)

    for name, one in (("direct", one_direct), ("opened", one_opened)):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            took = seconds(lambda one=one, pool=pool: list(pool.map(one, range(CONNECTIONS))))
        print(f"{CONNECTIONS} connections, {name}: {CONNECTIONS / took:.0f} a second")
