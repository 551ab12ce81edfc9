"""test_node_installation.py - whose sandboxes they are, and when one that is not to be seen is lost: a wrong path in a
configuration, a second node at the same warden, a journal of another machine end nobody's sandbox."""

import datetime
import os
import shutil
import time

import pytest

from lone_node import BASE, KILLING_ROW, POOLED_ROW, TEAM, WAKING_ROW, LoneNode, running
from node_client import NodeError, value
from warden import wait_for

AT_ONCE = 8  # ABSENT_AT_ONCE_MAX
MANY = 20


@pytest.fixture
def node():
    with LoneNode() as n:
        yield n


def ids(n, first=0):
    return [f"ia{i:020d}" for i in range(first, first + n)]


def reason_of(node, sandbox):
    """Why it ended. Until node has seen what there is of it, the answer is: ask again."""
    def answer():
        with pytest.raises(NodeError) as e:
            node.client.get(TEAM, sandbox)
        assert e.value.code == "not_found" or (e.value.code == "unavailable" and "ask again" in str(e.value)), e.value
        return e.value if e.value.code == "not_found" else None

    return wait_for(answer, f"{sandbox} is told as ended").reply.sandbox.reason


def is_absent(node, sandbox):
    return bool(node.client.get(TEAM, sandbox).sandbox.flags & value("NODE_ABSENT"))


def looked(node, times=1):
    """Until node has been through warden's list so often since now."""
    before = node.warden.looks
    wait_for(lambda: node.warden.looks >= before + times, "node looks at warden's list", 90)


def listed(node):
    return sorted(box.id for box, _ in node.client.list(TEAM))


# --- whose VMs they are ---


def test_vms_of_another_installation_are_left_alone(node):
    """A typo in data_dir, or two nodes at one warden."""
    node.warden.cells = {name: i for i, name in enumerate(ids(3))}
    node.warden.owners = {name: "0" * 32 for name in ids(3)}
    node.start(data_dir=node.base / "typo")
    wait_for(lambda: node.client.status()["vmsOfOthers"] == 3, "they are told of")
    assert node.warden.stopped == [] and len(node.warden.cells) == 3
    assert node.log().count("are of another installation") == 1
    assert node.client.status()["sandboxes"] == 0


def test_a_vm_in_nobodys_books_is_still_ended(node):
    mine = (node.data / "installation").read_text().strip()
    node.warden.cells = {name: i for i, name in enumerate(ids(3))}
    node.warden.owners = {ids(3)[0]: mine, ids(3)[1]: "0" * 32}  # the third is of a warden before
    node.start()
    wait_for(lambda: sorted(node.warden.stopped) == [ids(3)[0], ids(3)[2]], "they are ended")
    assert list(node.warden.cells) == [ids(3)[1]]


def test_a_row_that_another_installation_has_a_vm_of_does_not_stop_it(node):
    """A copy of the journal in another folder: the VM is the other's."""
    node.put(running(0))
    node.warden.cells, node.warden.owners = {ids(1)[0]: 0}, {ids(1)[0]: "0" * 32}
    node.start()
    wait_for(lambda: ids(1)[0] not in listed(node), "its row is gone")
    assert reason_of(node, ids(1)[0]) == value("NODE_LOST") and list(node.warden.cells) == ids(1)


# --- the journal and its folder ---


def test_one_identity_is_made_and_kept(node):
    mine = (node.data / "installation").read_text().strip()
    assert len(mine) == 32 and node.meta("installation") == mine
    node.start()
    assert node.client.status()["installation"] == mine
    assert os.stat(node.data / "installation").st_mode & 0o077 == 0


def test_a_journal_of_another_machine_is_refused(node):
    node.put(running(0))
    other = "f" * 32
    node.sql("update meta set value = ? where name = 'installation'", other)
    node.launch()
    assert node.process.wait(30) == 1
    said = node.log().splitlines()[-1]
    assert "data_dir" in said and other[:8] in said and "remove the file `installation`" in said, said
    assert node.folder(ids(1)[0]).is_dir() and len(node.sql("select * from sandbox")) == 1
    (node.data / "installation").unlink()  # as it says
    node.start()
    assert (node.data / "installation").read_text().strip() == other


@pytest.mark.parametrize("lost", ["file", "journal", "meta"])
def test_what_one_place_forgot_the_other_knows(node, lost):
    mine = (node.data / "installation").read_text().strip()
    if lost == "file":
        (node.data / "installation").unlink()
    elif lost == "journal":
        for path in node.data.glob("journal.db*"):
            path.unlink()
    else:  # of a version before
        node.sql("delete from meta")
    node.start()
    assert node.meta("installation") == mine == (node.data / "installation").read_text().strip()


# --- sandboxes whose VMs are not to be seen ---


def test_a_warden_that_lists_nothing_ends_nobody(node):
    """Its state_dir is wrong. The sandboxes stay, GET says why, and they go on when it is mended."""
    node.put(*map(running, range(MANY)))
    node.start()
    wait_for(lambda: node.client.status()["vmsAbsent"] == MANY, "they are missed")
    assert listed(node) == ids(MANY) and is_absent(node, ids(1)[0])
    for ask in (lambda: node.client.pause(TEAM, ids(1)[0]), lambda: node.client.sockets(ids(1)[0])):
        with pytest.raises(NodeError) as e:
            ask()
        assert e.value.code == "unavailable" and "kept until" in e.value.msg
    assert all((node.folder(name) / "disk").exists() for name in ids(MANY))
    node.warden.cells = {name: i for i, name in enumerate(ids(MANY))}
    node.warden.hang_up()  # a warden that is started again
    wait_for(lambda: node.client.status()["vmsAbsent"] == 0, "they are seen")
    assert listed(node) == ids(MANY) and not is_absent(node, ids(1)[0]) and node.warden.stopped == []


def test_a_few_are_lost_at_once(node):
    node.put(*map(running, range(AT_ONCE)))
    node.start()
    wait_for(lambda: listed(node) == [], "they are gone")
    assert {reason_of(node, name) for name in ids(AT_ONCE)} == {value("NODE_LOST")}


def test_after_a_boot_of_the_host_nobody_waits(node):
    node.put(*map(running, range(MANY)))
    node.start()
    wait_for(lambda: node.client.status()["vmsAbsent"] == MANY, "they are missed")
    boot = open("/proc/sys/kernel/random/boot_id").read().strip()
    wait_for(lambda: node.meta("boot") == boot, "the boot is noted")
    node.kill()
    node.sql("update meta set value = 'another' where name = 'boot'")
    node.start()
    wait_for(lambda: listed(node) == [], "they are gone")
    assert {reason_of(node, name) for name in ids(MANY)} == {value("NODE_LOST")}
    wait_for(lambda: node.meta("boot") == boot, "the boot is noted")


def kept(node):
    """What is in lost/, by the id."""
    return {entry["id"]: entry for entry in node.client.call("LOST_LIST").text}


def is_for_a_day(entry):
    since, until = (datetime.datetime.fromisoformat(entry[name]) for name in ("since", "until"))
    return entry["kind"] == "disk" and entry["described"] and until - since == datetime.timedelta(days=1)


def test_disks_of_the_lost_are_kept_for_a_day(node):
    """And brought back, paused, with all that their rows knew. What no client was told of is not kept."""
    rows = [running(0, generation=3, alias="its name", text='{"a":1}'), running(1),
            running(2, state=POOLED_ROW, team="", started_ns=0)]
    node.put(*rows)
    (node.base / "state/templates" / BASE).mkdir()
    node.start()
    wait_for(lambda: listed(node) == [], "they are gone")
    wait_for(lambda: not node.folder(ids(3)[2]).exists(), "what was in the pool is gone")
    wait_for(lambda: sorted(kept(node)) == ids(2), "the disks of the others are kept")
    assert all(map(is_for_a_day, kept(node).values())) and not list((node.data / "sandboxes").iterdir())
    wait_for(lambda: node.client.status()["lost"] == 2, "they are counted")
    wait_for(lambda: node.client.status()["ending"] == 0, "their rows are gone, too")
    node.client.call("LOST_RESTORE", id=ids(1)[0])
    back = node.client.get(TEAM, ids(1)[0])
    assert back.sandbox.state == value("NODE_PAUSED") and back.sandbox.reason == 0
    assert back.sandbox.alias == "its name" and back.sandbox.generation == 4 and back.text == {"a": 1}
    assert (node.folder(ids(1)[0]) / "disk").read_bytes() == b"a disk"
    assert [row[0] for row in node.sql("select saved_bytes from sandbox")] == [0]
    node.client.call("LOST_DROP", id=ids(2)[1])
    assert kept(node) == {}
    node.client.kill(TEAM, ids(1)[0])
    assert reason_of(node, ids(1)[0]) == value("NODE_KILLED") and kept(node) == {}


def test_a_node_that_died_meanwhile_left_it_to_the_next(node):
    node.put(running(0, state=KILLING_ROW, reason=value("NODE_LOST"), ended_ns=1, text='{"a":1}'),
             running(1, state=KILLING_ROW, reason=value("NODE_KILLED"), ended_ns=1),
             running(2, state=KILLING_ROW, reason=value("NODE_VMM_CRASH"), ended_ns=1))
    node.start()
    wait_for(lambda: not list((node.data / "sandboxes").iterdir()), "their folders are gone")
    assert list(kept(node)) == ids(1) and is_for_a_day(kept(node)[ids(1)[0]])


def test_after_a_day_it_is_gone(node):
    node.put(running(0))
    node.start()
    wait_for(lambda: list(kept(node)) == ids(1), "it is kept")
    node.kill()
    (folder,) = (node.data / "lost").iterdir()
    yesterday = time.strftime("%Y%m%dt%H%M%Sz", time.gmtime(time.time() - 24 * 3600))
    folder.rename(folder.with_name(f"{yesterday}-disk-{ids(1)[0]}"))
    node.start(lost_settle_s=0)
    wait_for(lambda: not list((node.data / "lost").iterdir()), "it is gone")
    wait_for(lambda: "was there for a day: it is removed" in node.log(), "that is logged")


def test_disks_are_kept_while_there_is_room(node):
    """The whole disk is the reserve: none is."""
    node.put(running(0))
    node.start()
    wait_for(lambda: list(kept(node)) == ids(1), "it is kept")
    node.kill()
    node.put(running(1))
    node.start(disk_reserve_mib=shutil.disk_usage(node.data).total >> 20)
    wait_for(lambda: listed(node) == [] and not list((node.data / "sandboxes").iterdir()), "it is gone")
    wait_for(lambda: kept(node) == {}, "and so is the other's disk")
    assert "its disk is not kept" in node.log() and "is removed: the host's disk is full" in node.log()


def test_an_operator_says_that_they_are_lost(node):
    node.put(*map(running, range(MANY)))
    node.start()
    wait_for(lambda: node.client.status()["vmsAbsent"] == MANY, "they are missed")
    assert node.client.call("CONFIRM_LOST").count == MANY
    wait_for(lambda: listed(node) == [], "they are gone")
    assert node.client.call("CONFIRM_LOST").count == 0


def test_their_time_goes_on(node):
    """A lifetime ends one; an auto-pause, which is not possible, does not."""
    short, waking = running(0, seconds=1), running(2, seconds=1, state=WAKING_ROW)
    keep = running(1, seconds=1, flags=value("NODE_AUTO_PAUSE"))
    node.put(short, keep, waking, *map(running, range(3, MANY)))
    node.start()
    wait_for(lambda: node.client.status()["vmsAbsent"] > AT_ONCE, "they are missed")
    wait_for(lambda: short["id"] not in listed(node), "its time is over")
    node.warden.hang_up()  # of one that never ran again it is asked at the next look
    wait_for(lambda: waking["id"] not in listed(node), "its time is over")
    assert {reason_of(node, row["id"]) for row in (short, waking)} == {value("NODE_LIFETIME")}
    assert is_absent(node, keep["id"]) and (node.folder(keep["id"]) / "disk").exists()
    assert "is paused" not in node.log()
    node.client.kill(TEAM, ids(MANY)[5])
    assert reason_of(node, ids(MANY)[5]) == value("NODE_KILLED")


def test_the_second_look(node):
    """A minute later: more than a tenth of all wait for the operator, fewer are lost."""
    node.put(*map(running, range(100)))
    node.warden.cells = {name: i for i, name in enumerate(ids(100))}
    node.start()
    for name in ids(9):
        del node.warden.cells[name]
    node.warden.hang_up()
    wait_for(lambda: node.client.status()["vmsAbsent"] == 9, "they are missed")
    assert len(listed(node)) == 100
    looked(node)
    # a look that came just before the minute was over leaves it to the next
    wait_for(lambda: node.client.status()["vmsAbsent"] == 0, "they are lost", 150)
    assert listed(node) == ids(91, 9)
    node.warden.cells.clear()
    node.warden.hang_up()
    wait_for(lambda: node.client.status()["vmsAbsent"] == 91, "they are missed")
    wait_for(lambda: node.client.status()["vmsToConfirm"] == 91, "they wait for the operator", 150)
    assert listed(node) == ids(91, 9) and "hotcell confirm-lost" in node.log()
