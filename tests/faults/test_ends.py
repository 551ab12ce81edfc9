"""test_ends.py - why a sandbox is no more: each reason, brought about through the API or from inside the guest."""

import http.client
import json
import os
import signal
import socket

import pytest

from server import TEMPLATE, Server, wait_for

END_SECONDS = 300  # a guest that fills its memory under emulation may take long


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        yield s


@pytest.fixture
def box(server):
    made = server.create()
    yield made
    server.delete(made)


def from_inside(server, box, command):
    """As root, and without waiting for an answer that may never come."""
    server.run(box, f"setsid sh -c 'sleep 0.5; {command}' > /dev/null 2>&1 &", user="root")


def reason(server, box):
    target = f"/sandboxes/{box['sandboxID']}"
    wait_for(lambda: server.api("GET", target).status == 404, "it ends", END_SECONDS, 0.2)
    gone = server.api("GET", target).json
    assert gone["endedAt"], gone
    listed = server.admin("GET", f"{'/admin' + target}/why").json
    assert listed["state"] == "ended" and listed["reason"] == gone["reason"]
    return gone["reason"]


@pytest.mark.parametrize("command, want", [
    ("echo c > /proc/sysrq-trigger", "guest_panic"),
    ("echo b > /proc/sysrq-trigger", "guest_panic"),  # without a word: nobody can tell it from a crash
    ("kill -INT 1", "killed"),
    ("reboot -f || busybox reboot -f || python3 -c \"import ctypes; ctypes.CDLL(None).reboot(0x1234567)\"", "killed"),
    # all of it locked: else the kernel may read the last pages of its program again and again instead of giving up
    ("sysctl -w vm.panic_on_oom=2; python3 -c \"import ctypes; print(ctypes.CDLL(None).mlockall(3)); "
     "x=[bytearray(1<<20) for n in range(1<<20)]\"", "oom_guest"),
], ids=("a panic", "a reset", "a shutdown", "a reboot", "no memory"))
def test_from_inside(server, box, command, want):
    from_inside(server, box, command)
    assert reason(server, box) == want
    assert server.leaks() == []


def test_a_process_too_large_is_killed_and_the_sandbox_goes_on(server, box):
    """What the guest's own kernel does when memory is short ends a process, not the sandbox."""
    with pytest.raises(AssertionError, match="exit"):
        server.run(box, "python3 -c 'x=[bytearray(1<<20) for n in range(1<<20)]'")
    assert server.run(box, "echo alive") == "alive"


def test_from_outside(server):
    killed, evicted, crashed, late = (server.create() for _ in range(4))
    assert server.delete(killed) == 204
    assert server.admin("DELETE", f"/admin/sandboxes/{evicted['sandboxID']}").status == 204
    os.kill(server.vm_pid(crashed), signal.SIGKILL)
    server.must("POST", f"/sandboxes/{late['sandboxID']}/timeout", {"timeout": 1})
    assert [reason(server, b) for b in (killed, evicted, crashed, late)] == \
        ["killed", "evicted", "vmm_crash", "lifetime"]


def status_of(server, box):
    """As QEMU says itself: nobody else talks to it while node is away."""
    with socket.socket(socket.AF_UNIX) as s, s.makefile("rw") as link:
        s.settimeout(30)
        s.connect(str(server.warden.state / "vms" / box["sandboxID"] / "qmp.sock"))
        link.readline()
        for command in ("qmp_capabilities", "query-status"):
            link.write(json.dumps({"execute": command}) + "\n")
            link.flush()
            answer = json.loads(link.readline())
            while "return" not in answer:
                answer = json.loads(link.readline())
    return answer["return"]["status"]


def test_one_that_ended_while_node_was_away(server, box):
    from_inside(server, box, "sleep 3; echo c > /proc/sysrq-trigger")
    server.kill("node")
    wait_for(lambda: status_of(server, box) == "shutdown", "its kernel panics", END_SECONDS, 0.5)
    server.start("node")
    server.wait_up()
    assert reason(server, box) == "guest_panic"


def hang_up_on_a_create(server, **headers):
    """The request is sent, and its answer not waited for."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    body = json.dumps({"templateID": TEMPLATE, "timeout": 3600})
    connection.request("POST", "/sandboxes", body, {"X-API-KEY": server.key, "content-type": "application/json", **headers})
    connection.close()


def vms(server):
    return {path.name for path in (server.warden.state / "vms").iterdir()}


def test_nobody_waits_for_what_was_created(server):
    """It is given up, however far it came. The next in line is made after it began."""
    hang_up_on_a_create(server)
    next_one = server.create()
    wait_for(lambda: server.ids() == vms(server) == {next_one["sandboxID"]}, "nothing is left of it", END_SECONDS, 0.2)
    assert server.delete(next_one) == 204
    assert server.leaks() == []


def test_a_create_with_a_name_is_kept_for_who_asks_again(server):
    hang_up_on_a_create(server, **{"Idempotency-Key": "kept"})
    made = wait_for(server.ids, "it is made", END_SECONDS, 0.2)
    again = server.must("POST", "/sandboxes", {"templateID": TEMPLATE, "timeout": 3600},
                        headers={"Idempotency-Key": "kept"})
    assert made == {again["sandboxID"]} and server.run(again, "echo here") == "here"
    assert server.delete(again) == 204
