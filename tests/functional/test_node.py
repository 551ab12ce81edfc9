"""test_node.py - the node as a gateway sees it: sandboxes come, live, end, and survive their node."""

import os
import signal
import time

import pytest

from node import NodeError, NodeHost, ask, wait_for

TEAM, OTHER = "team-one", "team-two"


@pytest.fixture(scope="module")
def host():
    with NodeHost(pool=0, own_template=True) as h:
        h.wait_template()
        yield h


@pytest.fixture
def box(host):
    b = host.client.create(TEAM, text={"metadata": {"k": "v"}, "envVars": {"FROM": "create"}, "more": [1]})
    yield b
    try:
        host.client.kill(TEAM, b.id)
    except NodeError as e:
        assert e.code == "not_found"


def refused(code, call, *args, **kw):
    with pytest.raises(NodeError) as e:
        call(*args, **kw)
    assert e.value.code == code, e.value
    return e.value.msg


def test_a_sandbox_is_created_answers_and_is_killed(host):
    before = time.time_ns()
    b = host.client.create(TEAM, timeout_s=77)
    assert b.id.startswith("ia") and len(b.id) == 22 and b.id.isalnum() and b.id.islower()
    assert (b.team, b.alias, b.vcpus, b.memory_mib) == (TEAM, "base", 1, 512)
    assert b.template_id == host.client.templates()[0]["templateID"] and b.disk_mib > 0
    assert before <= b.started_ns <= time.time_ns() and b.end_ns - b.started_ns == 77 * 10**9
    assert len(b.access_token) >= 20
    assert host.alive(b)
    assert host.agent(b, "GET", "/envs")[0] == 200
    (sock,) = host.client.sockets(b.id)
    assert ask(sock, "GET", "/envs", token="wrong")[0] == 401
    host.client.kill(TEAM, b.id)
    host.client.wait_event(b.id)
    assert b.id not in host.warden.list() and host.rows() == []
    assert "doesn't exist or you don't have access to it" in refused("not_found", host.client.get, TEAM, b.id)
    refused("not_found", host.client.kill, TEAM, b.id)
    refused("not_found", host.client.sockets, b.id)


def test_what_was_said_about_it_is_kept_but_for_its_environment(host, box):
    assert host.client.get(TEAM, box.id).text == {"metadata": {"k": "v"}, "more": [1]}
    status, body = host.agent(box, "GET", "/envs")
    assert status == 200 and b'"FROM":"create"' in body.replace(b" ", b"")
    assert box.id.encode() in body


def test_without_security_the_agent_wants_no_token(host):
    b = host.client.create(TEAM, secure=False)
    assert b.access_token == ""
    assert host.agent(b, "GET", "/envs")[0] == 200
    host.client.kill(TEAM, b.id)


def test_another_team_sees_nothing(host, box):
    for call in (host.client.get, host.client.kill):
        refused("not_found", call, OTHER, box.id)
    refused("not_found", host.client.timeout, OTHER, box.id, 5)
    refused("not_found", host.client.connect, OTHER, box.id, 5)
    assert host.client.list(OTHER) == []
    assert host.client.get(TEAM, box.id).sandbox == box


def test_bad_requests_are_refused(host):
    for text in ({"envVars": {"A": 1}}, {"envVars": ["A"]}, {"envVars": {"A=B": "x"}}, {"envVars": {"": "x"}}):
        refused("invalid", host.client.create, TEAM, text=text)
    refused("not_found", host.client.create, TEAM, template="nothing-like-it")
    assert host.client.list(TEAM) == []


def test_the_list_is_in_the_order_of_their_start(host):
    boxes = [host.client.create(TEAM, text={"n": i}) for i in range(3)]
    found = host.client.list(TEAM)
    assert [s.id for s, _ in found] == [b.id for b in boxes]
    assert [t["n"] for _, t in found] == [0, 1, 2]
    (rest,) = host.client.list_page(TEAM, boxes[1].started_ns, boxes[1].id)
    assert rest[0].id == boxes[2].id
    for tag in [host.client.send("KILL", team=TEAM, id=b.id) for b in boxes]:
        host.client.receive(tag)
    assert host.client.list(TEAM) == []


def test_the_deadline_moves_and_is_kept(host, box):
    longer = host.client.timeout(TEAM, box.id, 500)
    assert abs(longer.end_ns - time.time_ns() - 500 * 10**9) < 5 * 10**9
    assert host.client.connect(TEAM, box.id, 10).sandbox.end_ns == longer.end_ns  # never shortens
    further = host.client.connect(TEAM, box.id, 900)
    assert further.sandbox.end_ns > longer.end_ns and further.text["more"] == [1]
    capped = host.client.timeout(TEAM, box.id, 24 * 3600)
    assert abs(capped.end_ns - box.started_ns - 24 * 3600 * 10**9) < 10**9  # derived from another clock
    soon = host.client.timeout(TEAM, box.id, 1)
    host.client.wait_event(box.id)
    assert time.time_ns() >= soon.end_ns
    wait_for(lambda: box.id not in host.warden.list(), "its VM is gone")
    refused("not_found", host.client.get, TEAM, box.id)


def test_a_second_kill_waits_for_the_first(host):
    b = host.client.create(TEAM)
    tags = [host.client.send("KILL", team=TEAM, id=b.id) for _ in range(3)]
    for tag in tags:
        host.client.receive(tag)
    assert b.id not in host.warden.list()


def test_a_vm_that_dies_is_noticed_and_removed(host, box):
    os.kill(host.warden.list()[box.id].pid, signal.SIGKILL)
    host.client.wait_event(box.id)
    wait_for(lambda: box.id not in host.warden.list() and host.rows() == [], "nothing of it is left")


def test_a_hung_sandbox_delays_nobody(host, box):
    pid = host.warden.list()[box.id].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        b = host.client.create(TEAM)
        assert host.alive(b) and len(host.client.list(TEAM)) == 2
        host.client.kill(TEAM, b.id)
        assert host.client.get(TEAM, box.id).sandbox.id == box.id
        host.client.kill(TEAM, box.id)
        assert not host.warden.list()
    finally:
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass


def test_sandboxes_survive_their_node(host):
    keep = host.client.create(TEAM, text={"metadata": {"a": "b"}})
    short = host.client.create(TEAM)
    kill = host.client.create(TEAM)
    pid = host.warden.list()[keep.id].pid
    host.client.timeout(TEAM, short.id, 3)
    keep = host.client.get(TEAM, keep.id).sandbox
    host.kill_node()
    os.kill(host.warden.list()[kill.id].pid, signal.SIGKILL)  # while nobody looks
    host.warden.wait_state(kill.id, 3)
    host.start_node()
    reply = host.client.get(TEAM, keep.id)
    assert reply.sandbox == keep and reply.text == {"metadata": {"a": "b"}}
    assert host.alive(keep) and host.warden.list()[keep.id].pid == pid
    wait_for(lambda: [s.id for s, _ in host.client.list(TEAM)] == [keep.id], "only it is left", 30)
    wait_for(lambda: list(host.warden.list()) == [keep.id], "the other VMs are gone", 30)
    host.wait_template()
    again = host.client.create(TEAM)
    for b in (keep, again):
        host.client.kill(TEAM, b.id)
    assert host.rows() == []


def test_a_vm_of_nobody_is_ended(host):
    host.kill_node()
    template = next(p.name for p in (host.warden.state / "templates").glob("base-*"))
    host.warden.restore("stray", template, host.warden.slot_make(), None)
    host.start_node()
    wait_for(lambda: not host.warden.list(), "the stray is gone", 30)


def test_creates_wait_for_a_warden_that_is_gone(host):
    b = host.client.create(TEAM)
    host.warden.kill()
    tag = host.client.create_send(TEAM)
    assert host.client.get(TEAM, b.id).sandbox.id == b.id
    host.warden.start()
    late = host.client.receive(tag).sandbox
    assert host.alive(b) and host.alive(late)
    for x in (b, late):
        host.client.kill(TEAM, x.id)


def test_creates_do_not_wait_for_ever(host):
    host.warden.kill()
    began = time.monotonic()
    assert "warden" in refused("unavailable", host.client.create, TEAM)
    assert 9 < time.monotonic() - began < 30
    host.warden.start()
    host.wait_status("warden", True)


def test_the_pool_is_filled_and_claimed(host):
    host.kill_node()
    host.start_node(pool=2)
    host.wait_template()
    host.wait_status("pooled", 2)
    assert host.client.list(TEAM) == [] and host.client.status()["sandboxes"] == 0
    pids = {c.pid for c in host.warden.list().values()}
    reply = host.client.receive(host.client.create_send(TEAM, text={"envVars": {"P": "q"}}))
    b = reply.sandbox
    print(f"claimed in {reply.seconds * 1000:.1f} ms")
    assert host.warden.list()[b.id].pid in pids
    status, body = host.agent(b, "GET", "/envs")
    assert status == 200 and b'"q"' in body
    host.wait_status("pooled", 2)  # filled again
    host.client.kill(TEAM, b.id)
    host.kill_node()
    host.start_node(pool=0)  # what was pooled is nobody's now
    wait_for(lambda: not host.warden.list() and not host.rows(), "the pool is gone", 60)


def test_more_than_allowed_is_refused_and_the_rest_waits_in_order(host):
    host.kill_node()
    host.start_node(sandboxes_max=3, starts_max=1)
    tags = [host.client.create_send(TEAM, text={"n": i}) for i in range(4)]
    refused("exhausted", host.client.receive, tags[3])
    boxes = [host.client.receive(tag).sandbox for tag in tags[:3]]
    assert [b.started_ns for b in boxes] == sorted(b.started_ns for b in boxes)
    assert [t["n"] for _, t in host.client.list(TEAM)] == [0, 1, 2]
    host.client.kill(TEAM, boxes[0].id)
    boxes[0] = host.client.create(TEAM)
    for b in boxes:
        host.client.kill(TEAM, b.id)
    host.kill_node()
    host.start_node()
