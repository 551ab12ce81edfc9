"""test_create.py - creating sandboxes through the API: from a warm pool, without one, many at once, many alive.

HOTCELL_ALIVE (100) sandboxes alive, HOTCELL_PAIRS (30) pairs, HOTCELL_BURST (50) creates at once.
"""

import concurrent.futures
import http.client
import json
import os
import statistics
import time

import pytest

from server import TEMPLATE, Server, wait_for
from test_restore_latency import Bare

ALIVE = int(os.environ.get("HOTCELL_ALIVE", "100"))
PAIRS = int(os.environ.get("HOTCELL_PAIRS", "30"))
BURST = int(os.environ.get("HOTCELL_BURST", "50"))
WARM = 2
WARM_RATIO_MAX = 0.075  # of a bare restore in the same run: 15 ms where that takes 200, emulated or not
RATIO_MAX = 1.15
TRIES = 5  # a shared machine has bad moments
PATIENCE = 600


@pytest.fixture(scope="module")
def server():
    with Server(vms_max=max(ALIVE, BURST) + 64, node={"slots": 4}) as s:
        yield s


class Client:
    """One connection that is kept, as SDKs keep theirs."""

    def __init__(self, server):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        self.headers = {"X-API-KEY": server.key, "content-type": "application/json"}

    def ask(self, method, target, body=None):
        self.connection.request(method, target, json.dumps(body) if body else None, self.headers)
        response = self.connection.getresponse()
        data = response.read()
        assert response.status < 300, (response.status, data)
        return json.loads(data) if data else None

    def create(self):
        """(milliseconds, the sandbox)"""
        begun = time.monotonic()
        box = self.ask("POST", "/v2/sandboxes", {"templateID": TEMPLATE, "timeout": 3600})
        return (time.monotonic() - begun) * 1000, box

    def kill(self, box):
        self.ask("DELETE", f"/sandboxes/{box['sandboxID']}")


def pooled(server):
    """How many wait in the pool."""
    return server.node_status()["pooled"]


def template_of(server):
    return next(path.name for path in (server.warden.state / "templates").iterdir())


def warm_pairs(server, client, bare):
    """Milliseconds of creates from a full pool, and of bare restores, in turns. Nothing else is under way."""
    ours, bares = [], []
    while len(ours) < PAIRS:
        wait_for(lambda: pooled(server) >= 4, "the pool is full", PATIENCE, 0.05)
        ms, box = client.create()
        ours.append(ms)
        client.kill(box)
        wait_for(lambda: pooled(server) >= 4, "the pool is full", PATIENCE, 0.05)
        bares.append(bare.restore()["total"] / 1000)
    return sorted(ours), bares


def test_create_from_a_warm_pool(server):
    server.restart("node", pool=4)
    server.wait_up()
    client, bare = Client(server), Bare(server.warden, template_of(server))
    try:
        for attempt in range(TRIES):
            taken, bares = warm_pairs(server, client, bare)
            p50, p95 = taken[len(taken) // 2], taken[len(taken) * 95 // 100]
            ratio = p50 / statistics.median(bares)
            print(f"\ncreate from a warm pool: p50 {p50:.1f} ms, p95 {p95:.1f} ms, most {taken[-1]:.1f} ms, {len(taken)} "
                  f"creates; p50 is {ratio:.3f} of a bare restore, {statistics.median(bares):.1f} ms "
                  f"(limit {WARM_RATIO_MAX})")
            if ratio <= WARM_RATIO_MAX:
                break
    finally:
        bare.close()
    server.restart("node")
    server.wait_up()
    assert ratio <= WARM_RATIO_MAX


def test_create_without_a_pool_beside_a_bare_program(server):
    """Both end with the agent's first answer after its identity, and begin with a slot that is ready."""
    client, bare = Client(server), Bare(server.warden, template_of(server))
    try:
        for attempt in range(TRIES):
            ours, bares = [], []
            for n in range(WARM + PAIRS):
                wait_for(lambda: server.node_status()["slotsReady"] >= 1,
                         "a slot is ready", PATIENCE, 0.02)
                ms, box = client.create()
                client.kill(box)
                row = bare.restore()
                if n >= WARM:
                    ours.append(ms)
                    bares.append(row["total"] / 1000)
            ratio = statistics.median(ours) / statistics.median(bares)
            print(f"\ncreate with an empty pool: median {statistics.median(ours):.1f} ms, bare "
                  f"{statistics.median(bares):.1f} ms, ratio of medians {ratio:.3f} (limit {RATIO_MAX}), {PAIRS} pairs")
            if ratio <= RATIO_MAX:
                break
    finally:
        bare.close()
    assert ratio <= RATIO_MAX


def test_creates_at_once_are_fair(server):
    """None is lost, and who came first is served first."""
    begun = time.monotonic()

    def one(n):
        client = Client(server)
        client.connection.connect()
        time.sleep(max(0, begun + 1 + n * 0.02 - time.monotonic()))  # they come one after the other
        asked = time.monotonic()
        _, box = client.create()
        return n, asked - begun, time.monotonic() - begun, box

    with concurrent.futures.ThreadPoolExecutor(BURST) as pool:
        rows = sorted(pool.map(one, range(BURST)), key=lambda row: row[1])
    rows = [(n, *row[1:]) for n, row in enumerate(rows)]  # in the order in which they asked
    for n, asked, done, _ in rows:
        print(f"create {n:3}: asked at {asked:.2f} s, done at {done:.2f} s, took {done - asked:.2f} s")
    assert len({box["sandboxID"] for *_, box in rows}) == BURST
    order = [n for n, *_ in sorted(rows, key=lambda row: row[2])]
    late = max(abs(place - n) for place, n in enumerate(order))
    print(f"{BURST} at once: none lost; nobody is served more than {late} places from where they stood")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda row: Client(server).kill(row[3]), rows))
    # those that are restored at the same time may finish in any order
    assert late <= 12, order


def test_many_alive_and_each_answers(server):
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        boxes = [box for _, box in pool.map(lambda _: Client(server).create(), range(ALIVE))]
        took = time.monotonic() - begun
        answers = list(pool.map(lambda box: server.agent(box, "GET", "/health").status, boxes))
        assert answers == [204] * ALIVE
        assert {box["sandboxID"] for box in boxes} <= server.ids()
        hosts = set(pool.map(lambda box: server.read(box, "/etc/machine-id"), boxes))
        assert len(hosts) == ALIVE, "two sandboxes think they are the same machine"
        print(f"\n{ALIVE} alive through the API, each answers; {ALIVE / took:.1f} created per second, 8 at once")
        list(pool.map(lambda box: Client(server).kill(box), boxes))
