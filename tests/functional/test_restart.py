"""test_restart.py - gateways that take each other's place under load: nobody is refused, and no request fails that had not begun.

The gateways are real and the node is played; the listening sockets are held by the test, as systemd holds them.
"""

import asyncio
import collections
import concurrent.futures
import contextlib
import http.client
import json
import os
import random
import signal
import socket
import ssl
import threading
import time

import pytest

from asking import frames
from gateway_instances import GatewayInstances, TlsInstances
from lone_gateway import DOMAIN, LoneGateway
from warden import is_sanitized, wait_for

RESTARTS = int(os.environ.get("HOTCELL_RESTARTS", "10"))
REQUESTS = int(os.environ.get("HOTCELL_RESTART_REQUESTS", "100"))  # after each
PORT, AGENT_PORT = 8080, 49983
WAIT_SECONDS = 30 * (3 if is_sanitized() else 1)
STREAMED = {"content-type": "application/connect+json"}


def envelope(message, flags=0):
    data = json.dumps(message).encode()
    return bytes([flags]) + len(data).to_bytes(4, "big") + data


class Guest:
    """The servers in the sandbox: a thread with a loop of its own.

    /quick answers at once, /stream sends a line every 20 ms, /hold never answers, /switch talks back after a switch;
    at the agent's port /stream is one of the Connect protocol, and /torn stops in the middle of a message."""

    def __init__(self, node):
        self.sockets = [node.listen(port) for port in (PORT, AGENT_PORT)]
        self.held = 0
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        asyncio.set_event_loop(self.loop)
        for s in self.sockets:
            self.loop.run_until_complete(asyncio.start_server(self.serve, sock=s))
        self.loop.run_forever()

    async def serve(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while await self.serve_one(reader, writer):
                pass
        writer.close()

    async def serve_one(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split()[1]
        length = next((int(line.split(":")[1]) for line in head.split("\r\n") if line.lower().startswith("content-length")), 0)
        body = await reader.readexactly(length)
        if path == "/hold":
            self.held += 1
            await reader.read()  # until it is given up
            return False
        if path == "/switch":
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: chat\r\n\r\n")
            while data := await reader.read(1000):
                writer.write(data)
            return False
        if path in ("/stream", "/torn"):
            return await self.stream(writer, path, writer.get_extra_info("sockname")[1] == AGENT_PORT)
        answer = body or b"ok"
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer))
        return True

    async def stream(self, writer, path, is_connect):
        kind = "application/connect+json" if is_connect else "text/plain"
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        for n in range(1_000_000):
            piece = envelope({"n": n}) if is_connect else b"%d\n" % n
            if path == "/torn":
                piece = piece[:-1]
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(3600 if path == "/torn" else 0.02)
        return False


class Secure(http.client.HTTPSConnection):
    def __init__(self, gateways):
        super().__init__(f"api.{DOMAIN}", timeout=WAIT_SECONDS, context=gateways.context())
        self.gateways = gateways

    def connect(self):
        self.sock = self.gateways.connect(context=self._context)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as that of http.client


class World:
    def __init__(self, kind=GatewayInstances, **settings):
        self.gateways = kind(**settings)

    def __enter__(self):
        self.gateways.__enter__()
        self.guest = Guest(self.gateways.node)
        self.box = self.gateways.node.add("i1", self.gateways.team)
        return self

    def __exit__(self, *exc):
        self.guest.loop.call_soon_threadsafe(self.guest.loop.stop)
        self.gateways.__exit__(*exc)

    def connection(self):
        if isinstance(self.gateways, TlsInstances):
            return Secure(self.gateways)
        return http.client.HTTPConnection("127.0.0.1", self.gateways.port, timeout=WAIT_SECONDS)

    def fields(self, port=PORT):
        return {"Host": f"{port}-{self.box['id']}.{DOMAIN}"}

    def begin(self, path, port=PORT, **fields):
        """A request whose answer is not waited for."""
        c = self.connection()
        c.request("GET", path, headers={**self.fields(port), **fields})
        return c

    def stream(self, path="/stream", port=PORT):
        """(connection, answer) of one that has begun."""
        c = self.begin(path, port)
        answer = c.getresponse()
        assert answer.status == 200
        return c, answer


@pytest.fixture
def world():
    with World() as w:
        yield w


@pytest.fixture
def secure_world():
    with World(TlsInstances) as w:
        yield w


# --- load ---

class Load:
    """Threads that ask all the time, and what came of it."""

    def __init__(self, world):
        self.world, self.over = world, threading.Event()
        self.done, self.failed = collections.Counter(), []
        kinds = [self.short, self.short_api, self.kept, self.kept, self.kept_posts, self.kept_api]
        self.threads = [threading.Thread(target=self.run, args=[kind, n], daemon=True) for n, kind in enumerate(kinds)]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        for t in self.threads:
            t.join(WAIT_SECONDS)

    def run(self, kind, seed):
        chance = random.Random(seed)
        connection = self.world.connection()
        while not self.over.is_set():
            try:
                kind(connection)
                self.done[kind.__name__] += 1
            except (OSError, http.client.HTTPException, AssertionError) as e:
                self.failed.append((kind.__name__, repr(e)))
                connection.close()
            self.over.wait(chance.random() * 0.01)
        connection.close()

    def ask(self, connection, method, path, body=None, headers=()):
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        got = answer.read()
        assert answer.status == 200, (answer.status, got)
        return got

    def kept(self, connection):
        assert self.ask(connection, "GET", "/quick", None, self.world.fields()) == b"ok"

    def kept_posts(self, connection):
        body = os.urandom(5000)
        assert self.ask(connection, "POST", "/quick", body, self.world.fields()) == body

    def kept_api(self, connection):
        key = {"X-API-KEY": self.world.gateways.key}
        assert json.loads(self.ask(connection, "GET", "/v2/sandboxes", None, key))[0]["sandboxID"] == "i1"

    def short(self, connection):
        self.kept(connection)
        connection.close()

    def short_api(self, connection):
        self.kept_api(connection)
        connection.close()


def lines(answer, n):
    """The next n lines of a stream."""
    return [int(answer.readline()) for _ in range(n)]


def test_restarts_under_load_refuse_nobody(world):
    restart_under_load(world)


def test_restarts_under_load_of_tls_refuse_nobody(secure_world):
    restart_under_load(secure_world)


def restart_under_load(world):
    gateways = world.gateways
    first, long = world.stream()
    with Load(world) as load:
        for _ in range(RESTARTS):
            before = sum(load.done.values())
            c, begun = world.stream()
            old = gateways.replace()
            wait_for(lambda: sum(load.done.values()) > before + REQUESTS or load.failed, "the load goes on", WAIT_SECONDS, 0.01)
            assert not load.failed, load.failed[:5]
            if old.number > 1:
                assert old.alive, "it drains as long as the stream lasts"
                lines(begun, 3)
                c.close()
                old.wait_end()
            else:
                c.close()
    assert not load.failed, load.failed[:5]
    assert all(load.done[kind] > RESTARTS for kind in ("short", "short_api", "kept", "kept_posts", "kept_api"))
    seen = lines(long, 50)  # it began at the first gateway, which is still there for it
    assert seen == list(range(50))
    assert [i.number for i in gateways.running] == [1, RESTARTS + 1]
    assert gateways.gateways()[gateways.instances[0].pid] == ("drains", 1)
    first.close()
    gateways.instances[0].wait_end()
    print(dict(load.done))


# --- the end of a drain ---

def test_what_is_cut_is_told_so(world):
    gateways = world.gateways
    gateways.replace(drain_seconds=1).wait_end()
    old = gateways.running[-1]
    held = world.begin("/hold")
    gateways.node.serve_get = lambda *_: None  # never answers
    api = world.connection()
    api.request("GET", "/sandboxes/i1", headers={"X-API-KEY": gateways.key})
    c, plain = world.stream()
    rpc, connect = world.stream(port=AGENT_PORT)
    torn_c, torn = world.stream("/torn", port=AGENT_PORT)
    switched = socket.create_connection(("127.0.0.1", gateways.port), timeout=WAIT_SECONDS)
    switched.sendall(f"GET /switch HTTP/1.1\r\nHost: {world.fields()['Host']}\r\nConnection: upgrade\r\n"
                     "Upgrade: chat\r\n\r\n".encode())
    assert switched.recv(1000).startswith(b"HTTP/1.1 101 ")
    late = socket.create_connection(("127.0.0.1", gateways.port), timeout=WAIT_SECONDS)
    late.sendall(f"GET /quick HTTP/1.1\r\nHost: {world.fields()['Host']}\r\n".encode())
    wait_for(lambda: world.guest.held == 1, "the guest has the request")
    wait_for(lambda: gateways.gateways()[old.pid][1] == 7, "all of them are there")
    started = time.monotonic()
    gateways.replace()
    assert gateways.gateways()[old.pid][0] == "drains"

    answer = api.getresponse()
    assert (answer.status, answer.headers["Retry-After"]) == (429, "1"), answer.read()
    assert json.loads(answer.read())["code"] == 429
    assert 0.9 <= time.monotonic() - started <= WAIT_SECONDS
    answer = held.getresponse()
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1"), answer.read()

    late.sendall(b"\r\n")  # after the others were cut
    assert late.recv(1000).startswith(b"HTTP/1.1 503 ")

    *messages, (flags, last) = frames(connect.read())
    assert [m["n"] for _, m in messages] == list(range(len(messages))) and len(messages) > 5
    assert flags == 2 and last["error"]["code"] == "unavailable", last
    for broken in (plain, torn):
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            broken.read()
    assert switched.recv(1000) == b""
    old.wait_end()
    assert "cuts off 7 connections, 5 of them streams" in old.log()
    for each in (held, api, c, rpc, torn_c, switched, late):
        each.close()


def test_alone_it_is_a_matter_of_seconds_and_newcomers_wait(world):
    gateways = world.gateways
    c, stream = world.stream()
    quick = world.connection()
    quick.request("GET", "/quick", headers=world.fields())
    assert quick.getresponse().read() == b"ok"
    old, started = gateways.running[-1], time.monotonic()
    old.tell()
    wait_for(lambda: "drains for at most 5 s" in old.log(), "it drains")
    waits = world.begin("/quick")  # not refused: the socket is there
    old.wait_end()
    assert 4 <= time.monotonic() - started
    gateways.launch()
    assert waits.getresponse().read() == b"ok"
    for each in (c, quick, waits):
        each.close()


def test_newcomers_wait_for_the_certificate_too(secure_world):
    """Who comes before the first gateway: it lets nobody in until the signer has said what it has keys for."""
    gateways = secure_world.gateways
    gateways.running[-1].tell()
    gateways.running[-1].wait_end()
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        waiting = [pool.submit(gateways.ask_tls) for _ in range(5)]
        gateways.launch()
        assert {one.result()[0] for one in waiting} == {204}


def test_without_a_signer_newcomers_are_told_after_a_second(secure_world):
    gateways = secure_world.gateways
    gateways.running[-1].tell()
    gateways.running[-1].wait_end()
    gateways.signer.daemon.kill()
    gateways.launch()
    began = time.monotonic()
    with pytest.raises(ssl.SSLError, match="(?i)internal.error"):
        gateways.connect()
    assert time.monotonic() - began < 5


def test_a_second_word_ends_it_at_once(world):
    c, stream = world.stream()
    old = world.gateways.replace()
    wait_for(lambda: "drains for at most 600 s" in old.log(), "it drains")
    old.tell()
    old.wait_end()
    assert "told twice" in old.log()
    c.close()
    other = world.gateways.running[-1]
    other.tell(signal.SIGINT)
    other.wait_end()
    assert "drains" not in other.log()


def test_the_service_manager_hears_of_it(world):
    c, stream = world.stream()
    old = world.gateways.replace()
    wait_for(lambda: "STOPPING=1" in old.listen(), "it says that it ends")
    wait_for(lambda: "STATUS=drains, 1 connections are left" in old.listen(), "it says who is left")
    assert world.gateways.running[-1].listen() == ["READY=1", "STATUS=accepts"]
    c.close()
    old.wait_end()


# --- side by side ---

def answers_of(world, key, n=12):
    """Statuses of requests over new connections: some go to the one, some to the other."""
    return {world.gateways.ask("GET", "/v2/sandboxes", key=key).status for _ in range(n)}


def test_a_key_that_one_revokes_is_dead_at_the_other(world):
    gateways = world.gateways
    kept = world.connection()  # at the first, which remembers the key
    key = {"X-API-KEY": gateways.key}
    kept.request("GET", "/v2/sandboxes", headers=key)
    assert kept.getresponse().read()
    gateways.replace()  # the admin's socket is the second's now
    made = gateways.admin("POST", f"/admin/teams/{gateways.team}/keys", {"name": "more"}).json
    assert answers_of(world, made["key"]) == {200}
    gateways.launch()
    assert answers_of(world, made["key"]) == {200}
    assert gateways.admin("DELETE", f"/admin/keys/{made['id']}").status == 204
    assert answers_of(world, made["key"]) == {401}
    first = gateways.admin("GET", f"/admin/teams/{gateways.team}/keys").json[0]
    assert gateways.admin("DELETE", f"/admin/keys/{first['id']}").status == 204
    kept.request("GET", "/v2/sandboxes", headers=key)
    assert kept.getresponse().status == 401
    kept.close()


def test_one_that_is_killed_is_forgotten(world):
    gateways = world.gateways
    other = gateways.launch()
    assert {state for state, _ in gateways.gateways().values()} == {"accepts"} and len(gateways.gateways()) == 2
    other.tell(signal.SIGKILL)
    other.process.wait()
    wait_for(lambda: len(gateways.gateways()) == 1, "it is not listed any more")


def test_a_socket_that_nobody_knows_is_not_kept(world):
    gateways = world.gateways
    gateways.held["surplus"] = socket.create_server(("127.0.0.1", 0))
    one = gateways.launch()
    assert "the service manager's socket `surplus` is not used" in one.log()


def test_a_lone_gateway_listens_by_itself():
    """Without a service manager: as ever, and told to end it gives what is under way its seconds."""
    with LoneGateway() as gateway:
        guest = Guest(gateway.node)
        gateway.node.add("i1", gateway.team)
        c = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=WAIT_SECONDS)
        c.request("GET", "/stream", headers={"Host": f"{PORT}-i1.{DOMAIN}"})
        answer = c.getresponse()
        gateway.daemon.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "drains" in gateway.daemon.log(), "it drains")
        assert gateway.admin("GET", "/admin/status").json["gateways"][0]["state"] == "drains"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", gateway.port))
        assert lines(answer, 20) == list(range(20))
        assert gateway.daemon.process.wait(WAIT_SECONDS) == 0
        c.close()
        guest.loop.call_soon_threadsafe(guest.loop.stop)
