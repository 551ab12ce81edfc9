"""test_evil_guest.py - somebody takes the agent's place in a sandbox and lies to the whole server.

It is a real guest: user code is root there if it likes (evil_agent.py). Whatever it says, gateway, node, warden and
egress are the same processes afterwards and hold no descriptor more; calls about another sandbox are answered in time
meanwhile; and the evil one can be killed.

HOTCELL_GUEST_LIES (20): how many random ones come on top of those that have a name.
"""

import concurrent.futures
import os
import pathlib
import threading
import time

import pytest

from evil_agent import READY_PORT
from evil_client import LISTEN_SECONDS, REQUESTS, ask, check_answer
from lies import ENDLESS, NAMES, TIMED
from server import Server, wait_for

HERE = pathlib.Path(__file__).resolve().parent
RANDOM_LIES = int(os.environ.get("HOTCELL_GUEST_LIES", "20"))
AGENT_PORT = 49983
TUNNEL_PORTS = 20_000  # nobody listens there: the agent is asked for a tunnel
AT_ONCE = 4
ANSWER_SECONDS = 1.0
TRIES = 3  # of one call: a busy machine has its moments, a server that waits is slow always
LAST_SECONDS = 5  # an emulated guest takes its time, also with a lie that ends
KILL_SECONDS = 10
HELD = 6  # descriptors of the gateway, of those that never end by themselves
RELEASE_SECONDS = 60
GROWTH_MAX_KIB = 16 * 1024
DAEMONS = ("gateway", "node", "egress", "warden")


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        yield s


@pytest.fixture(scope="module")
def neighbour(server):
    box = server.create()
    yield box
    assert server.delete(box) == 204


def calls_about(server, box):
    yield "get", lambda: server.must("GET", f"/sandboxes/{box['sandboxID']}")
    yield "list", lambda: server.must("GET", "/v2/sandboxes")
    yield "health", lambda: server.agent(box, "GET", "/health")
    yield "file", lambda: server.read(box, "/etc/hostname")
    yield "admin", lambda: server.admin("GET", "/admin/status")


class Innocent(threading.Thread):
    """Calls about another sandbox, one after the other, for as long as the block lasts."""

    def __init__(self, server, box):
        super().__init__()
        self.server, self.box = server, box
        self.over, self.taken, self.failed = threading.Event(), [], []

    def once(self, name, call):
        row = []
        while len(row) < TRIES and (not row or row[-1] > ANSWER_SECONDS):
            begun = time.monotonic()
            call()
            row.append(time.monotonic() - begun)
        self.taken += row
        if row[-1] > ANSWER_SECONDS:
            self.failed.append((name, row))

    def run(self):
        try:
            while not self.over.is_set():
                for name, call in calls_about(self.server, self.box):
                    self.once(name, call)
        except Exception as e:  # a thread's own would be lost
            self.failed.append(repr(e))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        self.join()
        row = sorted(self.taken)
        print(f"{len(row)} calls about another sandbox: p50 {row[len(row) // 2] * 1000:.0f} ms, "
              f"p95 {row[len(row) * 95 // 100] * 1000:.0f} ms, slowest {row[-1] * 1000:.0f} ms")
        assert exc[0] or not self.failed, self.failed


# --- what the daemons hold ---------------------------------------------------------------------------------


def memory_kib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


def descriptors(server):
    return {name: len(os.listdir(f"/proc/{server.pids[name]}/fd")) for name in DAEMONS}


def at_rest(server, box):
    """The most that each holds while nothing but the innocent sandbox is used."""
    most = dict.fromkeys(DAEMONS, 0)
    for _ in range(5):
        for _, call in calls_about(server, box):
            call()
            most = {name: max(n, most[name]) for name, n in descriptors(server).items()}
    return most


@pytest.fixture
def unharmed(server, neighbour):
    """The daemons are those they were, and hold what they held."""
    server.delete(server.create())  # so that a life has been seen once
    pids, usual = server.pids, at_rest(server, neighbour)
    memory = {name: memory_kib(pids[name]) for name in DAEMONS}
    yield
    assert server.pids == pids
    for name in DAEMONS[:-1]:
        server.daemons[name].check_alive()
    wait_for(lambda: all(n <= usual[name] for name, n in descriptors(server).items()),
             f"descriptors are let go: {descriptors(server)}, before: {usual}", RELEASE_SECONDS, 0.2)
    grown = {name: memory_kib(pids[name]) - memory[name] for name in DAEMONS}
    print(f"descriptors {descriptors(server)}; KiB more than before: {grown}")
    assert max(grown.values()) < GROWTH_MAX_KIB, grown


# --- the evil one ------------------------------------------------------------------------------------------


def start_evil(server):
    box = server.create()
    for name in ("lies.py", "evil_agent.py"):
        server.write(box, f"/home/user/{name}", (HERE / name).read_bytes())
    server.run(box, "sudo setsid python3 /home/user/evil_agent.py "
                    ">/home/user/evil.log 2>&1 </dev/null &")
    wait_for(lambda: ask(server.port, box["sandboxID"], READY_PORT, "GET", "ok").endswith(b"\r\n\r\nok"),
             "it is the agent now", 120, 0.2)
    return box


def check_kill(server, box):
    begun = time.monotonic()
    assert server.delete(box) == 204
    took = time.monotonic() - begun
    print(f"killed in {took:.2f} s")
    assert took < KILL_SECONDS
    assert server.api("GET", f"/sandboxes/{box['sandboxID']}").status == 404


def ask_evil(server, box, n, name):
    """Each of them as the agent; of the ones that follow the path, some through a tunnel; by every method in turn."""
    method = list(REQUESTS)[n % len(REQUESTS)]
    listen = LISTEN_SECONDS if name in ENDLESS or name in TIMED else LAST_SECONDS
    answers = [ask(server.port, box["sandboxID"], port, method, name, listen)
               for port in (AGENT_PORT, TUNNEL_PORTS + n)]
    for answer in answers:
        check_answer(name, answer)
    return answers


def check_told(answers):
    """Its words came through, both ways: if not, this showed nothing."""
    for way, name in enumerate(("the agent's door", "a tunnel")):
        told = sum(pair[way].startswith(b"HTTP/1.1 2") for pair in answers)
        refused = sum(b"that is not HTTP" in pair[way] for pair in answers)
        print(f"through {name}: {len(answers)} asked, {told} answers believed, {refused} refused as no HTTP")
        assert told >= 3 and refused >= 3


def test_lies_harm_nobody(server, neighbour, unharmed):
    box = start_evil(server)
    lies = [*NAMES, *(f"random/{seed}" for seed in range(RANDOM_LIES))]
    with Innocent(server, neighbour), concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda pair: ask_evil(server, box, *pair), enumerate(lies)))
    check_told(answers)
    check_kill(server, box)


def test_it_is_killed_in_the_middle_of_its_lies(server, neighbour, unharmed):
    """Clients that listen to it for ever are told, too."""
    box = start_evil(server)
    names, before = [*ENDLESS, *TIMED], descriptors(server)["gateway"]
    with Innocent(server, neighbour), concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        listening = [pool.submit(ask, server.port, box["sandboxID"], AGENT_PORT, "GET", name, 60) for name in names]
        wait_for(lambda: descriptors(server)["gateway"] >= before + HELD, "some of them listen", 30, 0.05)
        begun = time.monotonic()
        check_kill(server, box)
        for each in listening:
            check_answer("endless", each.result())
        assert time.monotonic() - begun < 30
