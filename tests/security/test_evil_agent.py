"""test_evil_agent.py - a gateway against guests in which somebody else speaks in the agent's place.

The guest and a node for it are evil_guest.py, in a process and a network of their own: no VM is needed. Whatever the
guest says, the gateway neither crashes, stalls nor leaks: it is the same process, an innocent client of another sandbox
is answered in time, and afterwards it holds no descriptor more and hardly more memory.

HOTCELL_LIES (2000): how many random ones, from HOTCELL_SEED (1) on.
"""

import concurrent.futures
import contextlib
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

import pytest

from evil_client import (CLIENT_SECONDS, LISTEN_SECONDS, REQUESTS, WITH_UPGRADE, ask, check_answer, request_head,
                         wait_end)
from evil_guest import AGENT_PORT, EARLY_PORT, HONEST_PORT, PORT
from lies import ENDLESS, NAMES, SAID, TIMED
from server import Daemon, free_port
from warden import UID_RANGE, UID_RANGES, UID_RANGES_FROM, wait_for

HERE = pathlib.Path(__file__).resolve().parent
LIES = int(os.environ.get("HOTCELL_LIES", "2000"))
SEED = int(os.environ.get("HOTCELL_SEED", "1"))
AT_ONCE = 8
CROWD = 32
DELAY_MAX = 0.250  # seconds, of an innocent client
TRIES = 3
GROWTH_MAX_KIB = 16 * 1024
RELEASE_SECONDS = 30
HONEST = ("honest", HONEST_PORT, "GET", "honest")


class World:
    """A gateway, and behind it the evil guest."""

    def __init__(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="hotcell-evil-"))
        self.base.chmod(0o755)
        self.port, self.guest, self.gateway = free_port(), None, None

    def __enter__(self):
        try:
            self.start_guest()
            self.start_gateway()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start_guest(self):
        self.guest = subprocess.Popen(["unshare", "--net", sys.executable, HERE / "evil_guest.py",
                                       self.base / "node.sock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert b"ready" in self.guest.stdout.readline()

    def start_gateway(self):
        user = UID_RANGES_FROM + UID_RANGE * random.randrange(UID_RANGES)
        data = self.base / "data"
        data.mkdir()
        os.chown(data, user, user)
        self.gateway = Daemon("gateway", self.base, {
            "listen": f"127.0.0.1:{self.port}", "node_socket": self.base / "node.sock", "data_dir": data,
            "admin_socket": data / "admin.sock", "user": user})
        self.gateway.launch()
        wait_for(lambda: self.gateway.check_alive() or self.serves(), "the gateway serves", 30, 0.05)

    def serves(self):
        with contextlib.suppress(OSError):
            return self.ask(*HONEST).startswith(b"HTTP/1.1 200")
        return False

    def __exit__(self, *exc):
        if self.gateway:
            self.gateway.kill()
            if any(exc):
                print(self.gateway.log()[-4000:])
        if self.guest:
            self.guest.stdin.close()  # it ends
            self.guest.wait()
        shutil.rmtree(self.base)

    def ask(self, sandbox, port, method, name, listen=CLIENT_SECONDS):
        return ask(self.port, sandbox, port, method, name, listen)

    def tell_guest(self, line):
        self.guest.stdin.write(f"{line}\n".encode())
        self.guest.stdin.flush()

    def gone(self, sandbox):
        self.tell_guest(f"gone {sandbox}")

    def heard(self, name):
        """How many requests for a lie have reached the guest."""
        self.tell_guest(f"heard {name}")
        return int(self.guest.stdout.readline())

    # --- what it holds ---

    @property
    def descriptors(self):
        return len(os.listdir(f"/proc/{self.gateway.pid}/fd"))

    @property
    def memory_kib(self):
        status = pathlib.Path(f"/proc/{self.gateway.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


@pytest.fixture(scope="module")
def world():
    with World() as w:
        for name in SAID:  # so that it has used every part of itself once
            w.ask("warmup", PORT, "GET", name, 5)
        w.gone("warmup")
        yield w


@pytest.fixture(autouse=True)
def unharmed(world):
    """Every sandbox but the honest one ends after a test, and then nothing of it is left."""
    pid = world.gateway.pid
    assert world.serves()
    memory = world.memory_kib
    wait_for(lambda: world.descriptors <= least(world), "the gateway is at rest", RELEASE_SECONDS, 0.1)
    yield
    world.gateway.check_alive()
    assert world.gateway.pid == pid
    assert world.serves()
    for sandbox in SANDBOXES:
        world.gone(sandbox)
    wait_for(lambda: world.descriptors <= least(world), f"{world.descriptors} descriptors are let go, "
             f"{least(world)} would do", RELEASE_SECONDS, 0.1)
    grown = world.memory_kib - memory
    assert grown < GROWTH_MAX_KIB, f"{grown} KiB more than before"


SANDBOXES = ("evilone", "eviltwo", "evilcrowd", "evilrandom")
RESTING = []  # descriptors of a gateway whose only sandbox is the honest one, the most there ever were


def least(world):
    if not RESTING:
        settled = [world.descriptors]
        for _ in range(20):  # the honest one's connections and spare sockets
            assert world.serves()
            settled.append(world.descriptors)
        RESTING.append(max(settled) + 4)
    return RESTING[0]


# --- one lie at a time -----------------------------------------------------------------------------------

ALWAYS_OK = {"ok", "continue, then ok", "more than promised"}


def ask_agent(world, port, method, name, listen):
    """The agent's connections are kept, and this agent closes them: what is sent over one at that moment, and has a body
    that nobody keeps, is lost, and the client is told. There is no other to lose the next one over."""
    sandbox = "evilone" if port == AGENT_PORT else "eviltwo"
    answer = world.ask(sandbox, port, method, name, listen)
    if port == AGENT_PORT and method in ("POST", "PUT") and answer.startswith(b"HTTP/1.1 502"):
        answer = world.ask(sandbox, port, method, name, listen)
    return answer


@pytest.mark.parametrize("name", NAMES)
def test_a_lie(world, name):
    """Over the port of the agent, whose connections are kept, and over another one; with every kind of
    request."""
    endless = name in ENDLESS or name in TIMED
    for port in AGENT_PORT, PORT:
        for method in REQUESTS:
            answer = ask_agent(world, port, method, name, LISTEN_SECONDS if endless else CLIENT_SECONDS)
            check_answer(name, answer)
            if name in ALWAYS_OK and method in ("GET", "POST", "PUT"):
                assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"ok"), (method, answer[:300])
            if name == "nothing":
                assert answer.startswith(b"HTTP/1.1 502"), answer[:300]


@pytest.mark.parametrize("name", ["ok", "garbage", "endless body"])
def test_an_answer_before_the_question(world, name):
    for method in REQUESTS:
        check_answer(name, world.ask("evilone", EARLY_PORT, method, name, LISTEN_SECONDS))


def test_random_lies(world):
    def one(seed):
        chance = random.Random(seed)
        port = chance.choice([AGENT_PORT, PORT, EARLY_PORT])
        answer = world.ask("evilrandom", port, chance.choice(list(REQUESTS)), f"random/{seed}", 2)
        assert not answer or answer.startswith(b"HTTP/1.1 "), (seed, answer[:200])

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one, range(SEED, SEED + LIES // 4)))
        before = world.memory_kib
        list(pool.map(one, range(SEED + LIES // 4, SEED + LIES)))
    grown = world.memory_kib - before
    print(f"{LIES} random lies: {grown} KiB more after the last three quarters")
    assert grown < GROWTH_MAX_KIB


def test_a_sandbox_that_ends_takes_its_lies_along(world):
    """Streams of every kind are open; the sandbox goes; each client sees the end within 5 s."""
    names = ["silence", "endless chunks", "dripping head", "deaf", "tunnel flood", "half closed, silent"]
    before = {name: world.heard(name) for name in names}
    with contextlib.ExitStack() as stack:
        clients = []
        for name in names:
            s = stack.enter_context(socket.create_connection(("127.0.0.1", world.port), CLIENT_SECONDS))
            s.sendall(request_head("evilone", PORT, "OPTIONS", name) + WITH_UPGRADE)
            clients.append(s)
        for name in names:  # one that is still on its way would go to whatever comes after the end
            wait_for(lambda: world.heard(name) > before[name], f"{name} is there", CLIENT_SECONDS, 0.05)
        world.gone("evilone")
        until = time.monotonic() + 5
        for s in clients:
            wait_end(s, until)


@pytest.mark.parametrize("sandbox", ["evil-one", "Evil", "../evil", "%00"])
def test_a_name_that_is_none_reaches_no_guest(world, sandbox):
    answer = world.ask(sandbox, PORT, "GET", "ok")
    assert answer.startswith(b"HTTP/1.1 400") and answer.endswith(b"\r\n\r\nInvalid sandbox ID"), answer


# --- an innocent client beside them ------------------------------------------------------------------------


def p95(world, seconds=2):
    taken, until = [], time.monotonic() + seconds
    while time.monotonic() < until or len(taken) < 20:
        begun = time.monotonic()
        assert world.ask(*HONEST).endswith(b"ok")
        taken.append(time.monotonic() - begun)
    return sorted(taken)[len(taken) * 95 // 100]


@contextlib.contextmanager
def crowd(world, names):
    """Clients of the evil sandbox, each with a lie of its own, again and again."""
    stop = threading.Event()

    def listen(name):
        while not stop.is_set():
            with contextlib.suppress(OSError):
                s = socket.create_connection(("127.0.0.1", world.port), CLIENT_SECONDS)
                with s:
                    s.sendall(request_head("evilcrowd", PORT, "GET", name) + b"\r\n")
                    s.settimeout(0.2)
                    with contextlib.suppress(TimeoutError):
                        s.recv(4096)
                    stop.wait(0.2)  # and then it does not read

    threads = [threading.Thread(target=listen, args=(names[n % len(names)],)) for n in range(CROWD)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("kind", ["endless", "timed"])
def test_lies_delay_nobody_else(world, kind):
    names = list(ENDLESS) if kind == "endless" else list(TIMED)
    rows = []
    for _ in range(TRIES):
        with crowd(world, ["ok"]):
            usual = p95(world)
        with crowd(world, names):
            now = p95(world)
        rows.append((usual, now))
        print(f"p95 beside a polite guest {usual * 1000:.1f} ms, beside an evil one {now * 1000:.1f} ms")
        if now - usual <= DELAY_MAX:
            return
    raise AssertionError(f"p95 in seconds (polite, evil): {rows}")
