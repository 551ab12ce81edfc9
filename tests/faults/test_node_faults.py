"""test_node_faults.py - node dies at each named step of a create, a kill, a pause, a resume and a fill of the pool.

Whatever the step: after its restart a sandbox is whole, paused or gone, and nothing is left of the rest.
Needs a build with -Dfaults=true.
"""

import contextlib

import pytest

from node import Gone, NodeHost, wait_for
from node_client import value

TEAM = "team"
CREATE = ["create.journal", "create.files", "create.slot", "create.restore", "create.identity", "create.running", "create.answer"]
KILL = ["kill.journal", "kill.slot", "kill.stop", "kill.files", "kill.row", "kill.answer"]
POOL = ["pool.journal", "pool.files", "pool.slot", "pool.restore", "pool.ready"]
WHOLE_AFTER = {"create.running", "create.answer"}
PAUSE = ["pause.asked", "pause.copier", "pause.copied", "pause.synced", "pause.renamed", "pause.row", "pause.answer",
         "pause.stop"]
PAUSED_AFTER = {"pause.row", "pause.answer", "pause.stop"}
RESUME = ["resume.slot", "resume.restore", "resume.applied", "resume.waking", "resume.identity", "resume.row",
          "resume.answer"]
RUNS_AFTER = {"resume.waking", "resume.identity", "resume.row", "resume.answer"}
DISK_ALONE = ["pause.asked", "pause.copied", "pause.synced", "pause.row", "resume.restore", "resume.waking",
              "resume.identity", "resume.row"]


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
    assert not host.warden.list() and not host.rows() and not host.folders()


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


# --- pause and resume ---

MARK = "head -c 2000000 /dev/urandom > /dev/shm/m; head -c 200000 /dev/urandom > /root/d"
SEE = "cat /proc/sys/kernel/random/boot_id; md5sum < /dev/shm/m; md5sum < /root/d"


def check_saved(host, box, before, paused):
    """It is where the step left it, comes from there to life, and is what it was."""
    def settled():
        status = host.client.status()
        return (status["sandboxes"], status["paused"]) == ((0, 1) if paused else (1, 0))

    wait_for(settled, "it is paused" if paused else "it runs", 90)
    found = host.client.get(TEAM, box.id).sandbox
    assert found.state == value("NODE_PAUSED" if paused else "NODE_RUNNING")
    wait_for(lambda: len(host.warden.list()) == (0 if paused else 1), "its VM", 60)
    want = ["disk", "pages", "state"] if paused else ["disk"]
    wait_for(lambda: host.folders() == {box.id: want}, f"{want} and nothing else", 60)
    if paused:
        assert host.client.connect(TEAM, box.id, 300).resumed == 1
    assert host.run(box, SEE) == before
    host.client.pause(TEAM, box.id)
    host.client.connect(TEAM, box.id, 300)
    assert host.run(box, SEE) == before
    host.client.kill(TEAM, box.id)
    assert not host.warden.list() and not host.rows() and not host.folders()


@pytest.mark.parametrize("step", PAUSE)
def test_dying_while_it_pauses(host, step):
    box = host.client.create(TEAM)
    host.run(box, MARK)
    before = host.run(box, SEE)
    die_and_return(host, lambda: host.client.pause(TEAM, box.id), die_at=step)
    check_saved(host, box, before, paused=step in PAUSED_AFTER)


@pytest.mark.parametrize("step", RESUME)
def test_dying_while_it_resumes(host, step):
    box = host.client.create(TEAM)
    host.run(box, MARK)
    before = host.run(box, SEE)
    host.client.pause(TEAM, box.id)
    die_and_return(host, lambda: host.client.connect(TEAM, box.id, 300), die_at=step)
    check_saved(host, box, before, paused=step not in RUNS_AFTER)


@pytest.mark.parametrize("step", DISK_ALONE)
def test_dying_with_the_disk_alone(host, step):
    def pause_and_resume():
        host.client.pause(TEAM, box.id, flags=["NO_MEMORY"])
        host.client.connect(TEAM, box.id, 300)

    box = host.client.create(TEAM)
    host.run(box, MARK)
    before = host.run(box, SEE).splitlines()[-1]
    die_and_return(host, pause_and_resume, die_at=step)
    found = wait_for(lambda: host.client.get(TEAM, box.id).sandbox, "it is there")
    if found.state == value("NODE_PAUSED"):
        host.client.connect(TEAM, box.id, 300)
    assert host.run(box, "md5sum < /root/d") == before
    host.client.kill(TEAM, box.id)
    assert not host.warden.list() and not host.rows() and not host.folders()


@pytest.mark.parametrize("step", ["pause.copied", "resume.applied"])
def test_dying_twice(host, step):
    """The next node dies where it repairs what the first has left."""
    def cause():
        if step.startswith("pause"):
            host.client.pause(TEAM, box.id)
        else:
            host.client.connect(TEAM, box.id, 300)

    box = host.client.create(TEAM)
    host.run(box, MARK)
    before = host.run(box, SEE)
    if step.startswith("resume"):
        host.client.pause(TEAM, box.id)
    die_and_return(host, cause, die_at=step)
    host.kill_node()
    host.start_node()
    host.wait_template()
    check_saved(host, box, before, paused=step.startswith("resume"))


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
