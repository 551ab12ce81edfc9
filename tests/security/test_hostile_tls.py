"""test_hostile_tls.py - clients that shake hands for ever, say too much, or never finish.

A real gateway with a real signer before a played node; the loads are tls_load.py.

HOTCELL_ASKS (200): how often the innocent client asks in a round, of whom the timing suite measures.
"""

import contextlib
import resource
import subprocess
import sys
import time

import pytest

from attacked import (ASKS, HERE, Watched, busy_seconds, compare, memory_kib, on_one_connection, p95, preferred,
                      steady)
from tls_gateway import TlsGateway
from tls_load import ADDRESSES
from warden import is_sanitized, wait_for

HALF_OPEN = 1000 if is_sanitized() else 5000  # clients
HALF_OPEN_MAX = 2048  # src/gateway/arrivals/arrivals.h
REFUSED = ("oversized", "promised")
KINDS = ("silent", "begun", "large", "unanswered", "half_open")
SMALL = 400  # connections of a small gateway
CLIENTS = 8
TLS_ASKS = ASKS // 4  # a handshake each
FULL_ROUNDS = 3
DELAY_MAX = 0.25  # seconds, when the gateway is as busy as it can be
PATIENCE = 2  # seconds, of an honest client


@contextlib.contextmanager
def load(gateway, kind, clients, rate=0):
    process = subprocess.Popen(["nice", sys.executable, HERE / "tls_load.py", str(gateway.tls_port), kind, str(clients),
                                str(rate)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline().strip() == b"ready"
        yield
    finally:
        process.stdin.close()
        process.wait()


def now(gateway):
    return gateway.tls()["handshakes"]["now"]


@pytest.fixture(scope="module")
def gateway():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 2 * HALF_OPEN + 2000), hard), hard))
    with TlsGateway() as g:
        yield g


@pytest.fixture(autouse=True)
def unharmed(gateway, request):
    if "beside" in request.function.__name__:  # nobody looks on while the clock runs
        watched = Watched(gateway)
        yield watched
        watched.look()
    else:
        with Watched(gateway) as watched:
            yield watched
    watched.check()
    wait_for(lambda: now(gateway) == 0, "all handshakes are over", 20, 0.05)
    assert gateway.ask_tls()[0] == 204


@pytest.mark.parametrize("kind", KINDS)
def test_half_open_handshakes_are_bounded(gateway, unharmed, kind):
    with load(gateway, kind, HALF_OPEN):
        wait_for(lambda: now(gateway) >= min(HALF_OPEN, HALF_OPEN_MAX) // 2, "they are there", 20, 0.02)
        steady(lambda: memory_kib(gateway, "VmRSS"))
        unharmed.look()
        assert now(gateway) <= HALF_OPEN_MAX
        for _ in range(5):
            begun = time.monotonic()
            assert gateway.ask_tls()[0] == 204
            assert time.monotonic() - begun < PATIENCE


@pytest.mark.parametrize("kind", REFUSED)
def test_oversized_hellos_are_refused(gateway, unharmed, kind):
    failed = gateway.tls()["handshakes"]["failed"]
    with load(gateway, kind, CLIENTS):
        unharmed.look()
        wait_for(lambda: gateway.tls()["handshakes"]["failed"] > failed + 10 * CLIENTS, "they are refused, and come again", 20, 0.02)
        assert gateway.ask_tls()[0] == 204


def test_a_small_gateway_is_not_filled_by_handshakes():
    """More of them than it has connections."""
    with TlsGateway(connections_max=SMALL) as small:
        with load(small, "silent", SMALL + 100):
            wait_for(lambda: now(small) >= SMALL // 4, "so many are half open", 20, 0.02)
            begun = time.monotonic()
            assert small.ask_tls()[0] == 204
            assert small.ask("GET", "/health", key=None).status == 204
            assert time.monotonic() - begun < PATIENCE
            assert now(small) <= SMALL // 4


# --- what another client notices ---

def shaking_hands(gateway):
    """Each time anew."""
    taken = []
    for _ in range(TLS_ASKS):
        begun = time.monotonic()
        assert gateway.ask_tls()[0] == 204
        taken.append(time.monotonic() - begun)
    return taken


def rate_of(gateway, kind):
    """Handshakes in a second."""
    with load(gateway, kind, ADDRESSES), preferred(gateway):
        before = gateway.tls()["handshakes"]["open"]
        time.sleep(1)
        return gateway.tls()["handshakes"]["open"] - before


def is_idle_at_times(gateway):
    begun, busy = time.monotonic(), busy_seconds(gateway)
    time.sleep(0.3)
    return busy_seconds(gateway) - busy < 0.8 * (time.monotonic() - begun)


@contextlib.contextmanager
def as_busy(gateway, kind, clients, rate):
    """When all are there, and no more come in a second than polite ones do."""
    with load(gateway, kind, clients, rate):
        wait_for(lambda: is_idle_at_times(gateway), "the first of them are dealt with", 30, 0.01)
        yield


BESIDE = [("half_open", HALF_OPEN), ("unanswered", HALF_OPEN), ("oversized", CLIENTS)]


@pytest.mark.parametrize("kind,clients", BESIDE)
@pytest.mark.parametrize("ask", [on_one_connection, shaking_hands])
def test_beside_hostile_handshakes_another_client_is_served(gateway, kind, clients, ask):
    """Half-open ones are there all the time, and new ones as often as polite ones shake hands."""
    rate = rate_of(gateway, "polite")
    compare(f"{kind}, {ask.__name__}, {rate} a second", gateway, lambda: as_busy(gateway, kind, clients, rate),
            lambda: load(gateway, "polite", ADDRESSES), ask)


@pytest.mark.parametrize("kind,clients", BESIDE)
@pytest.mark.parametrize("ask", [on_one_connection, shaking_hands])
def test_beside_as_many_as_can_be_it_is_not_long(gateway, kind, clients, ask):
    """As fast as the gateway takes them: no polite clients here could make it so busy."""
    with load(gateway, kind, clients), preferred(gateway):
        delay = min(p95(ask(gateway)) for _ in range(FULL_ROUNDS))
    print(f"{kind}, {ask.__name__}, at full speed: p95 {delay * 1000:.2f} ms")
    assert delay <= DELAY_MAX
