"""test_node_faults.py - node dies at each named step of a create, a kill and a fill of the pool.

Whatever the step: after its restart a sandbox is whole or gone, and nothing is left of the rest.
Needs a build with -Dfaults=true.
"""

import contextlib

import pytest

from node import Gone, NodeHost, wait_for

TEAM = "team"
CREATE = ["create.journal", "create.slot", "create.restore", "create.identity", "create.running", "create.answer"]
KILL = ["kill.journal", "kill.slot", "kill.stop", "kill.row", "kill.answer"]
POOL = ["pool.journal", "pool.slot", "pool.restore", "pool.ready"]
WHOLE_AFTER = {"create.running", "create.answer"}


@pytest.fixture(scope="module")
def host():
    with NodeHost() as h:
        h.wait_template()
        yield h


def die_and_return(host, cause, **settings):
    """Start a node that dies at a step, let `cause` lead it there, start another."""
    host.kill_node()
    host.start_node(**settings)
    with contextlib.suppress(Gone):
        cause()
    assert host.process.wait(120) == -9, host.log()[-2000:]
    host.kill_node()
    host.start_node()
    host.wait_template()


def check_whole_or_gone(host, expected):
    wait_for(lambda: len(host.warden.list()) == expected and len(host.rows()) == expected,
             f"{expected} sandboxes and nothing else", 60)
    found = [s for s, _ in host.client.list(TEAM)]
    assert {s.id for s in found} == set(host.warden.list()) == {r[0] for r in host.rows()}
    assert len(found) == expected
    for box in found:
        assert host.alive(box)
        host.client.kill(TEAM, box.id)
    box = host.client.create(TEAM)
    host.client.kill(TEAM, box.id)
    assert not host.warden.list() and not host.rows()


@pytest.mark.parametrize("step", CREATE)
def test_dying_while_it_creates(host, step):
    die_and_return(host, lambda: host.client.create(TEAM), die_at=step)
    check_whole_or_gone(host, 1 if step in WHOLE_AFTER else 0)


@pytest.mark.parametrize("step", ["create.restore:2", "create.running:2"])
def test_dying_among_others(host, step):
    def three():
        for tag in [host.client.create_send(TEAM) for _ in range(3)]:
            host.client.receive(tag)

    die_and_return(host, three, die_at=step)
    left = len(host.client.list(TEAM))
    assert left <= 2
    check_whole_or_gone(host, left)


@pytest.mark.parametrize("step", KILL)
def test_dying_while_it_kills(host, step):
    def create_and_kill():
        box = host.client.create(TEAM)
        host.client.kill(TEAM, box.id)

    die_and_return(host, create_and_kill, die_at=step)
    check_whole_or_gone(host, 0)


@pytest.mark.parametrize("step", POOL)
def test_dying_while_it_fills_the_pool(host, step):
    die_and_return(host, lambda: host.client.receive_one(120), die_at=step, pool=2)
    check_whole_or_gone(host, 0)


@pytest.mark.parametrize("daemon", ["warden", "egress"])
def test_the_others_may_die_too(host, daemon):
    boxes = [host.client.create(TEAM) for _ in range(2)]
    if daemon == "warden":
        host.warden.kill()
        host.warden.start()
    else:
        host.end_egress()
        tag = host.client.create_send(TEAM)  # waits
        assert host.alive(boxes[0])
        host.start_egress()
        boxes.append(host.client.receive(tag).sandbox)
    boxes.append(host.client.create(TEAM))
    check_whole_or_gone(host, len(boxes))
