"""test_node_faults.py - node dies at each named step of each operation (steps.py), the copier and warden in between.

Whatever the step: after its restart a sandbox is whole, paused or gone, and nothing is left of the rest.
Needs a build with -Dfaults=true.
"""

import contextlib
import os
import pathlib
import signal
import threading

import pytest

from node import Gone, NodeError, NodeHost, wait_for
from node_client import NodeClient, value
from steps import OPERATIONS, steps_of, steps_to_try
from warden import is_alive

TEAM = "team"
WHOLE_AFTER = {"create.running", "create.answer"}
PAUSED_AFTER = {"pause.row", "pause.answer", "pause.stop"}
RUNS_AFTER = {"resume.waking", "resume.identity", "resume.row", "resume.answer"}


@pytest.fixture(scope="module")
def host():
    with NodeHost() as h:
        h.wait_template()
        yield h


TRIED = {}


def steps_of_each(*operations):
    """The steps at which node dies in a test of these operations."""
    TRIED.update({name: steps_to_try(name) for name in operations})
    return pytest.mark.parametrize("step", [step for name in operations for step in TRIED[name]])


def test_every_step_is_tried():
    """Whoever adds a step to node says in steps.py what leads to it, and here how."""
    assert sorted({step for steps in OPERATIONS.values() for step in steps}) == steps_of("node")
    assert set(TRIED) == set(OPERATIONS)
    assert sorted({step for steps in TRIED.values() for step in steps}) == steps_of("node")


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


@steps_of_each("create")
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


@steps_of_each("kill")
def test_dying_while_it_kills(host, step):
    def create_and_kill():
        box = host.client.create(TEAM)
        host.client.kill(TEAM, box.id)

    die_and_return(host, create_and_kill, die_at=step)
    check_whole_or_gone(host, 0)


@steps_of_each("fill the pool")
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
    want = ["disk", "pages", "row", "state"] if paused else ["disk"]
    wait_for(lambda: host.folders() == {box.id: want}, f"{want} and nothing else", 60)
    if paused:
        assert host.client.connect(TEAM, box.id, 300).resumed == 1
    assert host.run(box, SEE) == before
    host.client.pause(TEAM, box.id)
    host.client.connect(TEAM, box.id, 300)
    assert host.run(box, SEE) == before
    host.client.kill(TEAM, box.id)
    assert not host.warden.list() and not host.rows() and not host.folders()


@steps_of_each("pause")
def test_dying_while_it_pauses(host, step):
    box = host.client.create(TEAM)
    host.run(box, MARK)
    before = host.run(box, SEE)
    die_and_return(host, lambda: host.client.pause(TEAM, box.id), die_at=step)
    check_saved(host, box, before, paused=step in PAUSED_AFTER)


@steps_of_each("resume")
def test_dying_while_it_resumes(host, step):
    box = host.client.create(TEAM)
    host.run(box, MARK)
    before = host.run(box, SEE)
    host.client.pause(TEAM, box.id)
    die_and_return(host, lambda: host.client.connect(TEAM, box.id, 300), die_at=step)
    check_saved(host, box, before, paused=step not in RUNS_AFTER)


@steps_of_each("pause the disk alone", "resume the disk alone")
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


# --- deadlines, and the end of one that is paused ---

def watch_time_pass(host, box):
    host.client.timeout(TEAM, box.id, 1)
    host.client.wait_event(box.id, 120)  # it is gone: killed or paused
    host.client.receive_one(120)


@steps_of_each("deadline")
def test_dying_at_a_deadline(host, step):
    box = host.client.create(TEAM)
    die_and_return(host, lambda: watch_time_pass(host, box), die_at=step)
    check_whole_or_gone(host, 0)
    assert {t["id"]: t["reason"] for t in host.client.ended(TEAM)}[box.id] == value("NODE_LIFETIME")


@steps_of_each("pause at the deadline")
def test_dying_when_it_pauses_at_a_deadline(host, step):
    """Whoever comes next finds its time over, and pauses it."""
    box = host.client.create(TEAM, flags=["AUTO_PAUSE"])
    host.run(box, MARK)
    before = host.run(box, SEE)
    die_and_return(host, lambda: watch_time_pass(host, box), die_at=step)
    check_saved(host, box, before, paused=True)


@steps_of_each("kill a paused one")
def test_dying_while_it_kills_a_paused_one(host, step):
    box = host.client.create(TEAM)
    host.client.pause(TEAM, box.id)
    die_and_return(host, lambda: host.client.kill(TEAM, box.id), die_at=step)
    check_whole_or_gone(host, 0)


# --- copies ---

COPIED = "md5sum < /dev/shm/m; md5sum < /root/d"


@pytest.fixture(scope="module")
def marked(host):
    """A sandbox that is copied all the time, and what is in it."""
    box = host.client.create(TEAM, timeout_s=3600)
    host.run(box, MARK)
    yield box, host.run(box, COPIED)
    host.client.kill(TEAM, box.id)


def snapshot_folders(host):
    return {f.name for f in (host.base / "node/snapshots").iterdir()}


def check_copies(host, marked, snapshots, most=0):
    """The source goes on; so many snapshots can be used and nothing is left of others. All copies are ended."""
    box, content = marked
    wait_for(lambda: host.client.status()["saving"] == 0 and host.run(box, COPIED) == content, "it goes on", 60)
    copies = [s for s, _ in host.client.list(TEAM) if s.id != box.id]
    assert len(copies) <= most
    for copy in copies:
        assert host.run(copy, COPIED) == content
        host.client.kill(TEAM, copy.id)
    wait_for(lambda: {s["snapshotID"] for s in host.client.snapshots()} == snapshot_folders(host), "whole or gone", 60)
    found = host.client.snapshots(TEAM)
    assert len(found) == snapshots
    for snapshot in found:
        copy = host.client.create(TEAM, template=snapshot["snapshotID"])
        assert host.run(copy, COPIED) == content
        host.client.kill(TEAM, copy.id)
        host.client.snapshot_delete(TEAM, snapshot["snapshotID"])
    wait_for(lambda: not snapshot_folders(host), "no snapshot is left", 60)
    wait_for(lambda: {r[0] for r in host.rows()} == set(host.folders()) == set(host.warden.list()) == {box.id},
             "it is alone", 60)


@steps_of_each("snapshot")
def test_dying_while_it_takes_a_snapshot(host, marked, step):
    die_and_return(host, lambda: host.client.snapshot(TEAM, marked[0].id), die_at=step)
    check_copies(host, marked, snapshots=step == "snapshot.row")


@steps_of_each("fork")
def test_dying_while_it_forks(host, marked, step):
    die_and_return(host, lambda: host.client.fork(TEAM, marked[0].id, 2), die_at=step)
    check_copies(host, marked, snapshots=0, most=2 if step == "fork.child" else 0)


@steps_of_each("forget a snapshot")
def test_dying_while_it_forgets_a_snapshot(host, marked, step):
    taken = host.client.snapshot(TEAM, marked[0].id)["snapshotID"]
    die_and_return(host, lambda: host.client.snapshot_delete(TEAM, taken), die_at=step)
    check_copies(host, marked, snapshots=0)


@steps_of_each("create from a snapshot")
def test_dying_while_it_creates_from_a_snapshot(host, marked, step):
    taken = host.client.snapshot(TEAM, marked[0].id)["snapshotID"]
    die_and_return(host, lambda: host.client.create(TEAM, template=taken), die_at=step)
    check_copies(host, marked, snapshots=1, most=step in WHOLE_AFTER)


@steps_of_each("fill the pool of a snapshot")
def test_dying_while_it_fills_the_pool_of_a_snapshot(host, marked, step):
    def create_and_wait():
        host.client.create(TEAM, template=taken)
        host.client.receive_one(120)

    taken = host.client.snapshot(TEAM, marked[0].id)["snapshotID"]
    die_and_return(host, create_and_wait, die_at=step, pool_each_max=1)
    check_copies(host, marked, snapshots=1, most=1)


@steps_of_each("forget a snapshot with a pool")
def test_dying_while_it_forgets_a_snapshot_with_a_pool(host, marked, step):
    def fill_and_forget():
        host.client.kill(TEAM, host.client.create(TEAM, template=taken).id)
        host.wait_status("pooled", 1)
        host.client.snapshot_delete(TEAM, taken)

    taken = host.client.snapshot(TEAM, marked[0].id)["snapshotID"]
    die_and_return(host, fill_and_forget, die_at=step if step == "forget.row" else f"{step}:2", pool_each_max=1)
    check_copies(host, marked, snapshots=step != "forget.row")


@steps_of_each("snapshot of a paused one")
def test_dying_while_it_takes_a_snapshot_of_a_paused_one(host, marked, step):
    box, _ = marked
    host.client.pause(TEAM, box.id)
    die_and_return(host, lambda: host.client.snapshot(TEAM, box.id, flags=["ALSO_PAUSED"]), die_at=step)
    assert host.client.connect(TEAM, box.id, 3600).resumed == 1
    check_copies(host, marked, snapshots=step == "snapshot.row")


# --- the copier ---

def find_copier(host, box):
    """Its pid while there is one: it is in the control group of its VM."""
    for group in host.warden.groups():
        with contextlib.suppress(OSError):
            for pid in (group / "cgroup.procs").read_text().split() if group.name == box.id else ():
                if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("hotcell-copier"):
                    return int(pid)
    return None


class Stopped:
    """A request that needs a copier, which is caught and held. `with` ends when the request was answered."""

    def __init__(self, host, box, request):
        self.host, self.box, self.request, self.answer, self.error = host, box, request, None, None
        self.thread = threading.Thread(target=self.ask)
        self.caught = False

    def ask(self):
        try:
            with NodeClient(self.host.socket_path) as client:
                self.answer = self.request(client)
        except (Gone, NodeError, OSError) as e:
            self.error = e

    def __enter__(self):
        self.thread.start()
        self.copier = wait_for(lambda: find_copier(self.host, self.box) or not self.thread.is_alive(),
                               "a copier works", 60, 0.001)
        with contextlib.suppress(ProcessLookupError):
            if self.copier is not True:
                os.kill(self.copier, signal.SIGSTOP)
                self.caught = True
        return self

    def __exit__(self, *_):
        self.thread.join()
        wait_for(lambda: not self.caught or not is_alive(self.copier), "the copier is gone", 60)


def end_copier(held):
    os.kill(held.copier, signal.SIGKILL)


def end_node(held):
    held.host.kill_node()  # and with it its end of the copier's socket
    os.kill(held.copier, signal.SIGCONT)
    held.host.start_node()
    held.host.wait_template()


def end_warden(held):
    held.host.warden.kill()
    held.host.warden.start()
    os.kill(held.copier, signal.SIGCONT)


VICTIMS = {"copier": end_copier, "node": end_node, "warden": end_warden}


def end_in_the_middle(host, box, victim, work):
    """A copier may have done its work when it is caught: then once more, from the start."""
    requests = {"pause": lambda c: c.pause(TEAM, box.id), "resume": lambda c: c.connect(TEAM, box.id, 3600),
                "snapshot": lambda c: c.snapshot(TEAM, box.id)}
    for _ in range(8):
        host.client.connect(TEAM, box.id, 3600)
        if work == "resume":
            host.client.pause(TEAM, box.id)
        with Stopped(host, box, requests[work]) as held:
            if held.caught:
                VICTIMS[victim](held)
        if held.caught and (held.error or victim != "copier"):
            return held
        for snapshot in host.client.snapshots(TEAM):
            host.client.snapshot_delete(TEAM, snapshot["snapshotID"])
    raise AssertionError("it was never needed")


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("work", ["pause", "resume", "snapshot"])
def test_an_end_while_the_copier_works(host, marked, victim, work):
    """It runs or is paused, and is what it was."""
    box, content = marked
    held = end_in_the_middle(host, box, victim, work)
    wait_for(lambda: host.client.get(TEAM, box.id).sandbox.state in (value("NODE_RUNNING"), value("NODE_PAUSED")),
             "it is settled", 60)
    host.client.connect(TEAM, box.id, 3600)
    check_copies(host, marked, snapshots=work == "snapshot" and held.error is None)
