"""test_node_books.py - why one ended, how long it may live, the same create twice, limits, records."""

import os
import signal
import time

import pytest

from node import NodeError, NodeHost, wait_for
from node_client import NodeClient, value
from warden import cgroup_trees

TEAM, OTHER = "team-one", "team-two"


@pytest.fixture(scope="module")
def host():
    with NodeHost(pool=0, timeout_max_s=7200) as h:
        h.wait_template()
        yield h


@pytest.fixture
def box(host):
    b = host.client.create(TEAM)
    yield b
    try:
        host.client.kill(TEAM, b.id)
    except NodeError as e:
        assert e.code == "not_found"


def refused(code, call, *args, **kw):
    with pytest.raises(NodeError) as e:
        call(*args, **kw)
    assert e.value.code == code, e.value
    return e.value


def reason_of(host, sandbox, team=TEAM):
    return refused("not_found", host.client.get, team, sandbox).reply.sandbox.reason


def wait_ended(host, sandbox):
    """Until it is in the list of those that ended; its tombstone."""
    def found():
        return next((t for t in host.client.ended(TEAM) if t["id"] == sandbox), None)

    return wait_for(found, f"{sandbox} ended", 60, every=0.1)


def vmm_pid(host, sandbox):
    return host.warden.list()[sandbox].pid


def test_who_asks_for_one_that_was_killed_is_told(host, box):
    before = time.time_ns()
    host.client.kill(TEAM, box.id)
    for verb in ("get", "kill"):
        told = refused("not_found", getattr(host.client, verb), TEAM, box.id).reply.sandbox
        assert (told.id, told.reason) == (box.id, value("NODE_KILLED"))
        assert before <= told.ended_ns <= time.time_ns()
    assert refused("not_found", host.client.timeout, TEAM, box.id, 60).reply.sandbox.reason == value("NODE_KILLED")
    assert refused("not_found", host.client.connect, TEAM, box.id, 60).reply.sandbox.id == box.id
    assert refused("not_found", host.client.pause, TEAM, box.id).reply.sandbox.id == box.id
    stranger = refused("not_found", host.client.get, OTHER, box.id).reply.sandbox
    assert (stranger.id, stranger.reason) == ("", 0)
    assert box.id not in [t["id"] for t in host.client.ended(OTHER)]


def test_reasons_are_told_apart_and_survive_node(host):
    short = host.client.create(TEAM, timeout_s=1)
    crashed, restarted, lost = (host.client.create(TEAM) for _ in range(3))
    assert wait_ended(host, short.id)["reason"] == value("NODE_LIFETIME")
    os.kill(vmm_pid(host, crashed.id), signal.SIGKILL)
    assert wait_ended(host, crashed.id)["reason"] == value("NODE_VMM_CRASH")
    # to QEMU a kernel that panics and one that restarts are the same: its console tells
    reset = "import ctypes; ctypes.CDLL(None).reboot(0x1234567)"
    host.run(restarted, f"(sleep 1; exec python3 -c '{reset}') >/dev/null 2>&1 </dev/null &")
    assert wait_ended(host, restarted.id)["reason"] == value("NODE_KILLED")
    host.kill_node()
    host.warden.stop(lost.id)
    host.start_node()
    assert wait_ended(host, lost.id)["reason"] == value("NODE_LOST")
    assert reason_of(host, short.id) == value("NODE_LIFETIME")
    ends = [t["ended_ns"] for t in host.client.ended("")]
    assert ends == sorted(ends) and len(ends) >= 4


def test_a_second_node_at_the_same_warden_ends_nothing(host, box):
    """By mistake, with a data_dir of its own. It finds the template, and a VM of another installation."""
    pid, other = vmm_pid(host, box.id), host.base / "other.sock"
    installation = host.client.status()["installation"]
    assert host.warden.list()[box.id].installation.decode() == installation
    process = host.spawn("node", {**host.settings, "data_dir": host.base / "other", "socket": other, "egress_socket": ""},
                         host.base / "other.log")
    try:
        wait_for(other.exists, "the other node listens")
        with NodeClient(other) as client:
            wait_for(lambda: client.status()["vmsOfOthers"] == 1, "it sees the VM")
            wait_for(lambda: client.templates()[0]["buildStatus"] == "ready", "its template is ready", 300)
            assert client.status()["installation"] != installation
            assert client.templates()[0]["templateID"] == host.client.templates()[0]["templateID"]
    finally:
        process.kill()
        process.wait()
    assert vmm_pid(host, box.id) == pid and host.alive(box)


def test_a_list_without_it_is_doubted_while_its_qemu_talks(host, box):
    """Warden has forgotten a VM that lives: its record is gone, and its group another's."""
    pid, state = vmm_pid(host, box.id), host.warden.vm_dir(box.id)
    host.warden.kill()
    aside = host.base / "aside"
    state.rename(aside)
    groups = [tree / host.warden.cgroup / box.id for tree in cgroup_trees()]
    elsewhere = [tree / f"{host.warden.cgroup}-aside" for tree in cgroup_trees()]
    for group, place in zip(groups, elsewhere, strict=True):
        place.mkdir()
        (place / "cgroup.procs").write_text(str(pid))
        group.rmdir()
    host.warden.start()
    wait_for(lambda: host.client.status()["vmsAbsent"] == 1, "it is missed")
    assert host.client.get(TEAM, box.id).sandbox.flags & value("NODE_ABSENT")
    refused("unavailable", host.client.pause, TEAM, box.id)
    host.warden.kill()
    for group, place in zip(groups, elsewhere, strict=True):
        group.mkdir()
        (group / "cgroup.procs").write_text(str(pid))
        place.rmdir()
    aside.rename(state)
    host.warden.start()
    wait_for(lambda: host.client.status()["vmsAbsent"] == 0, "it is found")
    assert vmm_pid(host, box.id) == pid and host.alive(box)


def test_one_that_the_kernel_killed_for_its_memory_is_told_apart(host, box):
    group = cgroup_trees()[0] / host.warden.cgroup / box.id
    v2 = (group / "memory.max").exists()
    hog = 'import time; x = []\nfor _ in range(300): x.append(b"x" * (1 << 20)); time.sleep(0.2)'
    host.run(box, f"(exec python3 -c '{hog}') >/dev/null 2>&1 </dev/null &")
    used = int((group / ("memory.current" if v2 else "memory.usage_in_bytes")).read_text())
    (group / ("memory.max" if v2 else "memory.limit_in_bytes")).write_text(str(used + (16 << 20)))
    assert wait_ended(host, box.id)["reason"] == value("NODE_OOM_HOST")


def test_no_run_is_longer_than_the_host_allows(host, box):
    text = "Timeout cannot be greater than 2 hours"
    assert refused("invalid", host.client.create, TEAM, timeout_s=7201).msg == text
    assert refused("invalid", host.client.connect, TEAM, box.id, 7201).msg == text
    longest = host.client.timeout(TEAM, box.id, 10**9)
    assert abs(longest.end_ns - box.started_ns - 7200 * 10**9) < 2 * 10**9
    assert host.client.timeout(TEAM, box.id, 100).end_ns < longest.end_ns
    shown = host.client.get(TEAM, box.id).sandbox.end_ns
    assert host.client.connect(TEAM, box.id, 5).sandbox.end_ns == shown
    host.kill_node()
    host.start_node()
    assert abs(host.client.get(TEAM, box.id).sandbox.end_ns - shown) < 2 * 10**9


def test_a_repeated_create_is_one_sandbox(host):
    tags = [host.client.create_send(TEAM, idempotency="again", text={"metadata": {"n": "1"}}) for _ in range(3)]
    boxes = [host.client.receive(tag).sandbox for tag in tags]
    assert len({b.id for b in boxes}) == 1
    host.kill_node()
    host.start_node()
    again = host.client.create(TEAM, idempotency="again", text={"metadata": {"n": "1"}})
    assert again.id == boxes[0].id and again.access_token == boxes[0].access_token
    refused("exists", host.client.create, TEAM, idempotency="again", text={"metadata": {"n": "2"}})
    host.client.kill(TEAM, again.id)
    other = host.client.create(TEAM, idempotency="again", text={"metadata": {"n": "1"}})
    assert other.id != again.id
    host.client.kill(TEAM, other.id)


def test_a_key_and_a_team_have_their_limits(host):
    limit = {"key_id": "key-1", "limits": {"sandboxes": 2}}
    boxes = [host.client.create(TEAM, **limit) for _ in range(2)]
    assert refused("exhausted", host.client.create, TEAM, **limit).msg == (
        "you have reached the maximum number of concurrent sandboxes (2)")
    host.kill_node()
    host.start_node()
    refused("exhausted", host.client.create, TEAM, **limit)
    team = {"team_limits": {"sandboxes": 3}}
    boxes.append(host.client.create(TEAM, key_id="key-2", limits={"sandboxes": 1}, **team))
    assert refused("exhausted", host.client.create, TEAM, key_id="key-4", **team).msg == (
        "your team has reached the maximum number of concurrent sandboxes (3)")
    host.client.kill(TEAM, boxes.pop(0).id)
    boxes.append(host.client.create(TEAM, **limit, **team))
    for b in boxes:
        host.client.kill(TEAM, b.id)


def test_a_limit_of_paused_ones_refuses_a_create_and_a_pause_but_no_auto_pause(host):
    limit = {"key_id": "key-3", "limits": {"paused": 1}}
    first, second = (host.client.create(TEAM, **limit) for _ in range(2))
    third = host.client.create(TEAM, timeout_s=3600, flags=["AUTO_PAUSE"], **limit)
    host.client.call("PAUSE", team=TEAM, id=first.id, **limit)
    said = "you have reached the maximum number of paused sandboxes (1)"
    assert refused("exhausted", host.client.create, TEAM, **limit).msg == said
    assert refused("exhausted", host.client.call, "PAUSE", team=TEAM, id=second.id, **limit).msg == said
    assert host.alive(second)
    host.client.timeout(TEAM, third.id, 1)  # its time is over: it is paused all the same, not killed
    wait_for(lambda: host.client.get(TEAM, third.id).sandbox.state == value("NODE_PAUSED"), "it is paused", 120, every=0.1)
    for b in (first, third):
        host.client.kill(TEAM, b.id)
    host.client.call("PAUSE", team=TEAM, id=second.id, **limit)
    host.client.kill(TEAM, second.id)


def test_metrics_come_without_asking_the_guest(host, box):
    def points():
        return host.client.call("METRICS", team=TEAM, id=box.id).text

    first = wait_for(points, "a first point", 60, every=0.2)[-1]
    assert set(first) == {"timestamp", "timestampUnix", "cpuCount", "cpuUsedPct", "memUsed", "memTotal",
                          "memCache", "diskUsed", "diskTotal"}
    assert first["memTotal"] == box.memory_mib << 20 and first["diskTotal"] == box.disk_mib << 20
    assert 0 < first["memUsed"] <= first["memTotal"] and 0 < first["diskUsed"] <= first["diskTotal"]
    assert abs(first["timestampUnix"] - time.time()) < 60
    host.run(box, "(timeout 40 sh -c 'while :; do :; done' >/dev/null 2>&1 &)")
    wait_for(lambda: points()[-1]["cpuUsedPct"] > first["cpuUsedPct"] and points()[-1]["cpuUsedPct"] > 1,
             "it shows that it works", 60, every=0.5)
    assert host.client.call("METRICS", team=TEAM, id=box.id, after_ns=time.time_ns() + 10**12).text == []
    refused("not_found", host.client.call, "METRICS", team=OTHER, id=box.id)


def test_logs_tell_its_life(host, box):
    host.client.timeout(TEAM, box.id, 100)
    entries = host.client.call("LOGS", team=TEAM, id=box.id).text
    assert [e["fields"]["event"] for e in entries] == ["created", "timeout"]
    assert entries[0]["level"] == "info" and entries[0]["message"] == "Sandbox created"
    newest = host.client.call("LOGS", team=TEAM, id=box.id, flags=value("NODE_NEWEST"), count=1).text
    assert newest == entries[1:]
