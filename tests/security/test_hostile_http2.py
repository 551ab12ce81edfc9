"""test_hostile_http2.py - clients of HTTP/2 that ask for much with few bytes.

The gateway must not crash, hang or grow, must send them away, and others must not notice. A real gateway before a played
node; the loads are h2_load.py.

HOTCELL_RESETS (20000): streams that are opened and reset at once; the long suite asks for a million.
HOTCELL_STREAMS (500): relayed streams that are held; long: 9,000.
HOTCELL_ASKS (200): how often the innocent client asks in a round, of whom the timing suite measures.
"""

import contextlib
import os
import pathlib
import resource
import selectors
import subprocess
import sys
import threading
import time

import pytest

from attacked import KERNEL_MAX, Watched, compare, kernel_bytes, memory_kib, steady
from h2_client import H2Client
from tls_gateway import TlsGateway
from warden import wait_for

HERE = pathlib.Path(__file__).resolve().parent
RESETS = int(os.environ.get("HOTCELL_RESETS", "20000"))
STREAMS = int(os.environ.get("HOTCELL_STREAMS", "500"))
RESETS_SERVED = 600  # of a connection, before it is sent away
FLOOD_SECONDS = 40
FLOODS = ("provoked_resets", "window_overflow", "continuations", "hpack_bombs", "settings", "pings", "priorities",
          "nothing", "padding")
CLIENTS = 8
STALLED = 10  # connections of a hundred streams each
SLOW = 500  # prefaces
BIG_PORT, HELD_PORT = 8081, 8082
STREAMS_EACH = 100  # of a connection


@pytest.fixture(scope="module")
def gateway():
    most = max(STREAMS * 2, 5000)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 2 * most + 2000), hard), hard))
    with TlsGateway(connections_max=most, sandbox_connections_max=most) as g:
        g.box = g.node.add("i1", g.team)
        g.big = g.node.listen(BIG_PORT)
        threading.Thread(target=serve_big, args=[g.big], daemon=True).start()
        yield g
        g.big.close()


def serve_big(listener):
    """Answers without end, to whoever asks."""
    def one(s):
        with contextlib.suppress(OSError), s:
            s.recv(4096)
            s.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
            while True:
                s.sendall(bytes(65536))

    with contextlib.suppress(OSError):
        while True:
            threading.Thread(target=one, args=[listener.accept()[0]], daemon=True).start()


@pytest.fixture(autouse=True)
def unharmed(gateway, request):
    """The same process afterwards, never larger than it may be, nor the kernel's buffers; with nothing left of the load."""
    before = held(gateway)
    if "beside" in request.function.__name__:  # nobody looks on while the clock runs
        watched = Watched(gateway)
        yield watched
        watched.look()
    else:
        with Watched(gateway) as watched:
            yield watched
    watched.check()
    with H2Client(gateway.port) as c:
        assert c.get("/health").status == 204
    wait_for(lambda: held(gateway) <= before + 16, f"descriptors are let go: {before} before", 60, 0.1)


def held(gateway):
    return len(os.listdir(f"/proc/{gateway.daemon.pid}/fd"))


def spoken(gateway):
    return gateway.admin("GET", "/admin/status").json["gateway"]["http"]["2"]


# What is measured are the turns of the gateway, not who gets a processor of this machine: so the loads are nice.
@contextlib.contextmanager
def load(gateway, kind, clients, *more, port=None):
    process = subprocess.Popen(["nice", sys.executable, HERE / "h2_load.py", str(port or gateway.port), kind, str(clients),
                                *map(str, more)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline().strip() == b"ready"
        yield process
    finally:
        process.stdin.close()
        process.said = [int(n) for n in process.stdout.read().split()]
        process.wait()


def test_rapid_reset(gateway, unharmed):
    before = spoken(gateway)
    with load(gateway, "rapid_reset", CLIENTS, RESETS) as attack:
        unharmed.look()
        opened = int(attack.stdout.readline().split()[0])  # when they are all sent
        assert gateway.ask("GET", "/health", key=None).status == 204
    assert opened >= RESETS
    after = spoken(gateway)
    connections = after["connections"] - before["connections"]
    requests = after["requests"] - before["requests"]
    print(f"{opened} streams were opened, on {connections} connections; {requests} of them were seen")
    assert requests <= connections * RESETS_SERVED


def test_rapid_reset_by_one_who_is_never_sent_away(gateway, unharmed):
    before = spoken(gateway)["requests"]
    with load(gateway, "rapid_reset_patient", CLIENTS, RESETS) as attack:
        unharmed.look()
        opened, sent_away, _ = map(int, attack.stdout.readline().split())
        assert gateway.ask("GET", "/health", key=None).status == 204
    requests = spoken(gateway)["requests"] - before
    print(f"{opened} streams were opened, {requests} seen")
    assert sent_away == 0 and requests >= opened >= RESETS


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_is_sent_away(gateway, unharmed, kind):
    before = spoken(gateway)["connections"]
    until = time.monotonic() + FLOOD_SECONDS
    with load(gateway, kind, CLIENTS):
        unharmed.look()
        while spoken(gateway)["connections"] - before < 2 * CLIENTS:  # each was sent away, and came again
            assert gateway.ask("GET", "/health", key=None).status == 204
            assert time.monotonic() < until, f"{kind}: is not sent away"


@pytest.mark.parametrize("kind", ("stalled", "stalled_tls"))
def test_a_thousand_stalled_windows(gateway, kind):
    stall(gateway, kind, STALLED, gateway.tls_port if kind == "stalled_tls" else gateway.port)


def test_windows_that_stall_when_buffers_have_grown(gateway):
    """A hundred, each of which was fast at first: the kernel gives such a connection more and more memory if it is let."""
    stall(gateway, "stalled_later", 1, gateway.port, KERNEL_MAX * STREAMS_EACH // 1000)


def stall(gateway, kind, connections, port, kernel_max=KERNEL_MAX):
    with load(gateway, kind, connections, 0, gateway.host(gateway.box, BIG_PORT), port=port) as attack:
        wait_for(lambda: held(gateway) >= connections * STREAMS_EACH, "all of them are relayed", 60, 0.1)
        steady(lambda: kernel_bytes(gateway) + memory_kib(gateway, "VmRSS") * 1024)
        assert kernel_bytes(gateway) <= kernel_max
        assert gateway.ask("GET", "/health", key=None).status == 204
        with H2Client(gateway.port) as c:
            big = c.ask("GET", "/", authority=gateway.host(gateway.box, BIG_PORT))
            c.until(lambda: len(big.body) > 1 << 20)
    assert attack.said[0] == connections * STREAMS_EACH


class Holder:
    """A service that begins an answer and goes on when it is told to; one thread for all."""

    def __init__(self, listener):
        self.clients, self.waiting = [], selectors.DefaultSelector()
        listener.setblocking(False)
        self.listener = listener
        self.waiting.register(listener, selectors.EVENT_READ)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError, ValueError):
            while True:
                for key, _ in self.waiting.select():
                    self.look(key.fileobj)

    def look(self, s):
        if s is self.listener:
            with contextlib.suppress(BlockingIOError):
                self.waiting.register(s.accept()[0], selectors.EVENT_READ)
            return
        self.waiting.unregister(s)
        if s.recv(65536):
            s.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
            self.clients.append(s)

    def say(self, data):
        for s in self.clients:
            s.sendall(data)

    def close(self):
        for s in (self.listener, *self.clients):
            s.close()


def test_streams_are_held(gateway):
    """Each gets its first byte, another later, and its end; meanwhile others are served."""
    holder = Holder(gateway.node.listen(HELD_PORT))
    host, before = gateway.host(gateway.box, HELD_PORT), memory_kib(gateway, "VmRSS")
    with contextlib.ExitStack() as stack, contextlib.closing(holder):
        clients = [stack.enter_context(H2Client(gateway.port)) for _ in range(STREAMS // STREAMS_EACH)]
        for c in clients:
            for _ in range(STREAMS_EACH):
                c.ask("GET", "/", authority=host)
            c.until(lambda c=c: all(bytes(s.body) == b"a" for s in c.streams.values()), 120)
        steady(lambda: memory_kib(gateway, "VmRSS"))
        each = (memory_kib(gateway, "VmRSS") - before) / STREAMS
        print(f"{STREAMS} streams of {len(clients)} connections are held: {each:.1f} KiB each")
        assert gateway.ask("GET", "/health", key=None).status == 204
        holder.say(b"1\r\nb\r\n0\r\n\r\n")
        for c in clients:
            c.until(lambda c=c: all(s.ended and bytes(s.body) == b"ab" for s in c.streams.values()), 120)


def test_slow_prefaces(gateway, unharmed):
    with load(gateway, "slow_prefaces", SLOW):
        unharmed.look()
        assert gateway.ask("GET", "/health", key=None).status == 204
        with H2Client(gateway.port) as c:
            assert c.get("/health").status == 204


# --- what another client notices ---

@pytest.mark.parametrize("kind", ("rapid_reset", "rapid_reset_patient", *FLOODS))
def test_beside_a_flood_another_client_is_served(gateway, kind):
    """Who floods is sent away and comes again, so the others come anew, too."""
    compare(kind, gateway, lambda: load(gateway, kind, CLIENTS), lambda: load(gateway, "polite_anew", CLIENTS))


@contextlib.contextmanager
def stalled(gateway):
    """When all of them have begun, as those beside which it is compared."""
    with load(gateway, "stalled", STALLED, 0, gateway.host(gateway.box, BIG_PORT)):
        wait_for(lambda: held(gateway) >= STALLED * STREAMS_EACH, "all of them are relayed", 60, 0.1)
        steady(lambda: kernel_bytes(gateway))
        yield


def test_beside_stalled_windows_another_client_is_served(gateway):
    """Of that beside as many streams in which nothing moves for good reason."""
    with contextlib.closing(Holder(gateway.node.listen(HELD_PORT))):
        compare("stalled", gateway, lambda: stalled(gateway),
                lambda: load(gateway, "held", STALLED, 0, gateway.host(gateway.box, HELD_PORT)))


def test_beside_slow_prefaces_another_client_is_served(gateway):
    """Of that beside as many connections that were used and rest."""
    compare("slow prefaces", gateway, lambda: load(gateway, "slow_prefaces", SLOW), lambda: load(gateway, "resting", SLOW))
