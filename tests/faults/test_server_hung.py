"""test_server_hung.py - one sandbox hangs: no call about any other takes longer for it."""

import contextlib
import os
import pathlib
import signal
import socket
import statistics
import threading
import time

import pytest

from evil_agent import READY_PORT
from evil_client import ask
from server import Server, wait_for

TRIES = 3       # a busy machine is slow by itself now and then; a server that waits is slow always
ROUNDS = 5
WAITERS = 8     # calls that hang in the stopped sandbox while others are measured
SLACK = 3.0     # seconds on top of three times the usual; what waits for a hung one waits longer
SILENT_PORT = 8099
AGENT_PORT = 49983
AGENT_SECONDS = 10  # how long the gateway waits for an agent here
SECURITY = pathlib.Path(__file__).resolve().parents[1] / "security"
# accepts and never says a word
SILENT_PROGRAM = f"""
import socket, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", {SILENT_PORT}))
s.listen(64)
open("/tmp/silent", "w").write("yes")
held = []
while True:
    held.append(s.accept())
""".encode()


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        yield s


@pytest.fixture
def boxes(server):
    """(the one that hangs, the one that is measured)"""
    made = [server.create(), server.create()]
    yield made
    for box in made:
        server.delete(box)


def calls_about(server, box):
    """Everything a client may ask about a sandbox, or without one."""
    yield "get", lambda: server.must("GET", f"/sandboxes/{box['sandboxID']}")
    yield "list", lambda: server.must("GET", "/v2/sandboxes")
    yield "timeout", lambda: server.api("POST", f"/sandboxes/{box['sandboxID']}/timeout", {"timeout": 3600})
    yield "run", lambda: server.run(box, "echo hello")
    yield "file", lambda: server.write(box, "/tmp/x", b"x")
    yield "life", lambda: one_life(server)


def one_life(server):
    box = server.create()
    server.run(box, "true")
    assert server.delete(box) == 204


def times(server, box, rounds=ROUNDS):
    """The median time of each call, in seconds."""
    taken = {}
    for _ in range(rounds):
        for name, call in calls_about(server, box):
            begun = time.monotonic()
            call()
            taken.setdefault(name, []).append(time.monotonic() - begun)
    return {name: statistics.median(row) for name, row in taken.items()}


@contextlib.contextmanager
def waiting_calls(server, box, port=49983):
    """Clients that ask the hung sandbox and wait."""
    def ask():
        with contextlib.suppress(Exception):
            server.api("GET", "/health", key=None, seconds=300,
                       headers={"E2b-Sandbox-Id": box["sandboxID"], "E2b-Sandbox-Port": str(port)})

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(WAITERS)]
    for thread in threads:
        thread.start()
    yield threads


def check_not_delayed(server, box, usual):
    """Three times what it took before, and some seconds, in the best of a few tries."""
    for attempt in range(TRIES):
        now = times(server, box, 3)
        slow = {name: (usual[name], now[name]) for name in now if now[name] > 3 * usual[name] + SLACK}
        print(f"usual {usual}\nnow   {now}")
        if not slow:
            return
    raise AssertionError(f"slower while another sandbox hangs: {slow}")


def test_a_stopped_qemu_delays_nobody_else(server, boxes):
    hung, other = boxes
    usual = times(server, other)
    pid = server.vm_pid(hung)
    os.kill(pid, signal.SIGSTOP)
    try:
        with waiting_calls(server, hung):
            check_not_delayed(server, other, usual)
            # what needs no answer of the guest works for the hung one too
            assert server.must("GET", f"/sandboxes/{hung['sandboxID']}")["sandboxID"] == hung["sandboxID"]
            assert server.delete(hung) == 204
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    wait_for(lambda: hung["sandboxID"] not in server.ids(), "the hung one is gone")


def test_a_server_in_a_sandbox_that_never_answers_delays_nobody_else(server, boxes):
    hung, other = boxes
    server.write(hung, "/home/user/silent.py", SILENT_PROGRAM)
    usual = times(server, other)
    server.run(hung, "setsid python3 /home/user/silent.py >/dev/null 2>&1 </dev/null &")
    wait_for(lambda: server.agent(hung, "GET", "/files?path=/tmp/silent&username=user").status == 200,
             "it listens", 120, 0.2)
    with waiting_calls(server, hung, SILENT_PORT) as clients:
        check_not_delayed(server, other, usual)
        assert any(client.is_alive() for client in clients), "nobody waits: this showed nothing"
        assert server.run(hung, "echo its agent answers") == "its agent answers"
        assert server.delete(hung) == 204
        for client in clients:  # and they are told at once
            client.join(30)
            assert not client.is_alive(), "a call into a sandbox that is gone still waits"


@pytest.fixture
def impatient(server):
    server.restart("gateway", agent_seconds=AGENT_SECONDS)
    yield
    server.restart("gateway")


@contextlib.contextmanager
def repeated_calls(server, box):
    """Clients that ask the hung agent, again and again: [(answer, seconds)]."""
    over, heard = threading.Event(), []

    def call(method):
        while not over.is_set():
            begun = time.monotonic()
            answer = ask(server.port, box["sandboxID"], AGENT_PORT, method, "health", 120)
            heard.append((answer, time.monotonic() - begun))

    threads = [threading.Thread(target=call, args=(("GET", "POST")[n % 2],)) for n in range(WAITERS)]
    for thread in threads:
        thread.start()
    try:
        yield over, threads, heard
    finally:
        over.set()
        for thread in threads:
            thread.join()


def hang_agent(server, box):
    """Somebody takes its place, accepts, and never says a word."""
    for name in ("lies.py", "evil_agent.py"):
        server.write(box, f"/home/user/{name}", (SECURITY / name).read_bytes())
    server.run(box, "sudo setsid python3 /home/user/evil_agent.py silent >/dev/null 2>&1 </dev/null &")
    wait_for(lambda: ask(server.port, box["sandboxID"], READY_PORT, "GET", "ok").endswith(b"\r\n\r\nok"),
             "it is the agent now", 120, 0.2)


def test_an_agent_that_never_answers_delays_nobody_else(server, boxes, impatient):
    hung, other = boxes
    usual = times(server, other)
    hang_agent(server, hung)
    with repeated_calls(server, hung) as (over, threads, heard):
        check_not_delayed(server, other, usual)
        wait_for(lambda: len(heard) >= WAITERS, "the clients of the hung one are answered", 4 * AGENT_SECONDS)
        assert server.must("GET", f"/sandboxes/{hung['sandboxID']}")["sandboxID"] == hung["sandboxID"]
        over.set()
        told, begun = len(heard), time.monotonic()
        assert server.delete(hung) == 204
        print(f"killed in {time.monotonic() - begun:.2f} s")
        for thread in threads:  # those that still wait are told at once
            thread.join(5)
            assert not thread.is_alive(), "a call into a sandbox that is gone still waits"
    for answer, seconds in heard[:told]:
        assert b" 504 " in answer and b"did not answer in time" in answer, answer
        # twice for a body that was taken in part
        assert AGENT_SECONDS - 1 < seconds < 2 * AGENT_SECONDS + SLACK, seconds
    for answer, _ in heard[told:]:
        assert b"The sandbox was not found" in answer or b"did not answer in time" in answer, answer


def test_a_client_that_never_reads_delays_nobody_else(server, boxes):
    """Output nobody takes stays in the guest; other streams of the same sandbox flow."""
    flooded, other = boxes
    usual = times(server, other)
    server.run(flooded, "head -c 64M /dev/zero > /tmp/zeros")
    with socket.create_connection(("127.0.0.1", server.port)) as deaf:
        deaf.sendall(f"GET /files?path=/tmp/zeros&username=user HTTP/1.1\r\nHost: x\r\n"
                     f"E2b-Sandbox-Id: {flooded['sandboxID']}\r\nE2b-Sandbox-Port: 49983\r\n"
                     f"X-Access-Token: {flooded.get('envdAccessToken') or ''}\r\n\r\n".encode())
        assert deaf.recv(12).startswith(b"HTTP/1.1 200")
        check_not_delayed(server, other, usual)
        assert server.run(flooded, "echo still") == "still"
