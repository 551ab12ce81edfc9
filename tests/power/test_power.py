"""test_power.py - the power is cut: what was reported as saved is there byte by byte, what ended stays ended.

HOTCELL_CUTS (5) is how many cuts follow those three after one of each kind of request was answered. The first are at
named steps of node at which something was just made durable or answered, the rest fall at random; what is kept of
unsynced writes differs from cut to cut. HOTCELL_SEED (1) leads to the same choices again. Needs a build with -Dfaults=true for the named ones, and libfuse3.
"""

import contextlib
import os
import random
import sqlite3
import time

import pytest

from ledger import GONE, PAUSED, SEE, TEAM, Ledger, Life, state_of
from lossy import HOW, PowerHost
from node import Gone, NodeError, wait_for

CUTS = int(os.environ.get("HOTCELL_CUTS", "5"))
IS_LONG = CUTS > 5
SEED = int(os.environ.get("HOTCELL_SEED", "1"))
pytestmark = pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="there is no /dev/fuse")
STEPS = ["pause.answer", "kill.answer", "snapshot.row", "fork.child", "resume.waking", "pause.row", "kill.row", "fork.snapshot",
         "pause.stop", "resume.row", "resume.answer", "pause.renamed", "snapshot.renamed", "kill.journal", "kill.files"]
STEPS_IN_CI = 5
LIES = ["pages", "sandboxes", "disk", "journal.db-wal"]
LIES_IN_CI = 2
RANDOM_ANSWERS = 16  # to lives before a cut at random, at most
RANDOM_SECONDS = 1   # after that
STEP_SECONDS = 300   # until a step is reached


@pytest.fixture(scope="module")
def host():
    with PowerHost() as h:
        h.wait_template()
        yield h


@pytest.fixture(scope="module")
def ledger():
    return Ledger()


def see(host, sandbox):
    return host.run(sandbox, SEE)


def check_boxes(host, ledger, chance):
    """Each is as it was last said to be. Of those that are paused some are left so for the next cut, if chance wants."""
    left = {}
    for box_id, box in ledger.boxes.items():
        state = wait_for(lambda b=box_id: (s := state_of(host, b)) not in ("running", "ending") and s, "it is settled", 60)
        assert state in box.may, f"{box_id} is {state}, not {box.may}"
        if state != PAUSED:
            continue
        box.may = {PAUSED}
        if chance and len(left) < 2 and chance.random() < 0.4:
            left[box_id] = box
            continue
        assert host.client.connect(TEAM, box_id, 300).resumed == 1
        assert see(host, box.sandbox) == box.content, f"{box_id} lost something"
        host.client.kill(TEAM, box_id)
    ledger.boxes = left


def check_snapshots(host, ledger):
    known = {s["snapshotID"] for s in host.client.snapshots(TEAM)}
    for snapshot_id, snapshot in ledger.snapshots.items():
        assert ("there" if snapshot_id in known else GONE) in snapshot.may, f"snapshot {snapshot_id}: {snapshot.may}"
    for snapshot_id in known:
        made = host.client.create(TEAM, template=snapshot_id)
        seen = see(host, made)
        if snapshot_id in ledger.snapshots:  # else nobody was told of it
            assert seen == ledger.snapshots[snapshot_id].content, f"snapshot {snapshot_id} lost something"
        host.client.kill(TEAM, made.id)
        with contextlib.suppress(NodeError):  # somebody who is paused needs it
            host.client.snapshot_delete(TEAM, snapshot_id)
    known = {s["snapshotID"] for s in host.client.snapshots(TEAM)}
    ledger.snapshots = {i: s for i, s in ledger.snapshots.items() if i in known}
    for snapshot in ledger.snapshots.values():
        snapshot.may = {"there"}


def check_no_more(host, ledger):
    """Rows, folders, VMs: those of the paused that are left, and no others."""
    wait_for(lambda: not host.warden.list(), "no VM is left", 60)
    wait_for(lambda: {r[0] for r in host.rows()} == set(ledger.boxes) == set(host.folders()),
             f"rows and folders of {set(ledger.boxes)} alone", 60)
    wait_for(lambda: {s["snapshotID"] for s in host.client.snapshots()} == host.snapshot_folders(),
             "every snapshot is whole or gone", 60)
    with contextlib.closing(sqlite3.connect(f"file:{host.base / 'node/journal.db'}?mode=ro", uri=True)) as db:
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)


def live_until(host, ledger, seed, chance, step):
    """Lives go on until node dies at a step, or for a time."""
    if step:
        host.kill_node()
        host.start_node(die_at=step)
        host.wait_template()
    lives = [Life(host, ledger, seed * 10 + n) for n in range(2)]
    for life in lives:
        life.begin()
    try:
        if step:
            assert host.process.wait(STEP_SECONDS) == -9, f"{step} was not reached"
        else:
            enough = ledger.answers + chance.randint(1, RANDOM_ANSWERS)
            wait_for(lambda: ledger.answers >= enough, "lives go on", STEP_SECONDS)
            time.sleep(chance.uniform(0, RANDOM_SECONDS))
    finally:
        for life in lives:
            life.stop.set()
    return lives


def cuts():
    """(number, what is kept, at which step)"""
    steps = STEPS if IS_LONG else STEPS[:STEPS_IN_CI]
    return [(n, HOW[n % len(HOW)], steps[n] if n < len(steps) else None) for n in range(CUTS)]


def check(host, ledger, chance, begun):
    dark = time.monotonic()
    told = (f"{len(ledger.boxes)} sandboxes, {sum(b.may == {PAUSED} for b in ledger.boxes.values())} of them paused, "
            f"{len(ledger.snapshots)} snapshots")
    check_boxes(host, ledger, chance)
    check_snapshots(host, ledger)
    check_no_more(host, ledger)
    print(f"{told}; cut after {dark - begun:.1f} s, checked in {time.monotonic() - dark:.1f} s")


@pytest.mark.parametrize("how", HOW)
def test_cut_after_one_of_each_was_answered(host, ledger, how):
    begun = time.monotonic()
    life = Life(host, ledger, SEED)
    life.everything()
    life.client.close()
    host.cut(how, SEED)
    check(host, ledger, random.Random(SEED), begun)


def test_cut_and_the_journal_is_gone_too(host, ledger):
    """What is saved describes itself: it is there, and what ended stays ended."""
    begun = time.monotonic()
    life = Life(host, ledger, SEED)
    paused, killed = life.create(), life.create()
    taken, forgotten = life.snapshot(paused), life.snapshot(paused)
    copy = ledger.add(life.client.create(TEAM, template=taken), paused.content)
    for box in (paused, killed, copy):
        life.pause(box)
    life.resume(copy)
    life.kill(killed)
    life.forget(forgotten)
    life.client.close()
    host.cut("none", SEED, journal=False)
    assert "the journal is new and the data folder is not" in host.log()
    check(host, ledger, random.Random(SEED), begun)


@pytest.mark.parametrize("number,how,step", cuts(), ids=lambda v: str(v))
def test_cut(host, ledger, number, how, step):
    chance = random.Random(SEED * 1000 + number)
    begun = time.monotonic()
    lives = live_until(host, ledger, SEED * 1000 + number, chance, step)
    host.cut(how, SEED * 1000 + number)
    for life in lives:
        life.end()
    check(host, ledger, chance, begun)


# --- could this test fail? ---

def test_a_description_that_is_not_synced_is_noticed(host, ledger):
    lost = Ledger()
    life = Life(host, lost, SEED)
    box = life.create()
    host.disk.lie("row.new")
    life.pause(box)
    host.cut("none", journal=False)
    life.client.close()
    with pytest.raises((AssertionError, NodeError)):
        check_boxes(host, lost, None)
    check_no_more(host, ledger)


@pytest.mark.parametrize("name", LIES if IS_LONG else LIES[:LIES_IN_CI])
def test_a_sync_that_is_left_out_is_noticed(host, ledger, name):
    """As if the product forgot one fsync: the disk says yes to it and does nothing."""
    lost = Ledger()
    life = Life(host, lost, SEED)
    box = life.create()
    host.disk.lie(name)
    # on the disk as far as the guest knows, and asked to be durable by nobody but the pause
    life.run(box, "dd if=/dev/urandom of=/root/d bs=4096 count=16 conv=notrunc oflag=direct status=none")
    box.content = life.run(box, "md5sum < /dev/shm/m; md5sum < /root/d")
    life.pause(box)
    assert box.may == {PAUSED}
    host.cut("none")
    life.client.close()
    with pytest.raises((AssertionError, NodeError, Gone)):
        check_boxes(host, lost, None)
    with contextlib.suppress(NodeError):
        host.client.kill(TEAM, box.sandbox.id)
    check_no_more(host, ledger)
