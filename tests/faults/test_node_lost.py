"""test_node_lost.py - folders that were set aside for want of a row come back with the row: by themselves when node
starts, or when an operator asks. What is not the same save stays where it is, and so does its row.

Confined as in production; the warden is a stand-in, for nothing is started.
"""

import os
import shutil
import time

import pytest

from lone_node import BASE, NODE_UID, TEAM, LoneNode, running
from node_client import NodeError, value
from warden import wait_for

PAUSED_ROW = 4  # enum journal_state
SECONDS = 60    # for a look at what is lost
SNAPSHOT = "s0000000000000000001"


def paused(i):
    return running(i, state=PAUSED_ROW, node_state=value("NODE_PAUSED"), generation=2, slot=2**32 - 1)


@pytest.fixture
def node():
    """Two sandboxes and a snapshot, saved and described; it is stopped."""
    with LoneNode() as n:
        n.boxes = [paused(1)["id"], paused(2)["id"]]
        n.put(paused(1), paused(2))
        put_snapshot(n)
        n.saved = [n.folder(box) for box in n.boxes] + [n.data / "snapshots" / SNAPSHOT]
        n.start()
        wait_for(lambda: all((path / "row").exists() for path in n.saved), "they are described", SECONDS)
        n.kill()
        yield n


def put_snapshot(n):
    info = {name: kind for _, name, kind, *_ in n.sql("pragma table_info(snapshot)")}
    row = {name: "" if kind == "TEXT" else 0 for name, kind in info.items()}
    row |= {"id": SNAPSHOT, "team": TEAM, "base_id": BASE, "parent": BASE, "source": "ia0", "tag": "default",
            "control_token": "c" * 40, "created_ns": 10**18, "layers": 1, "known": None}
    n.sql(f"insert into snapshot values ({','.join('?' * len(row))})", *row.values())
    folder = n.data / "snapshots" / SNAPSHOT
    folder.mkdir(mode=0o700)
    (folder / "manifest").write_bytes(b"a manifest")
    for path in (folder, folder / "manifest"):
        os.chown(path, NODE_UID, NODE_UID)


def aside(n, path):
    """Where node would put it."""
    kind = "snapshot" if path.name == SNAPSHOT else "sandbox"
    return n.data / "lost" / f"{time.strftime('%Y%m%dt%H%M%Sz', time.gmtime())}-{kind}-{path.name}"


def files(path):
    return {f.name: f.read_bytes() for f in path.iterdir()}


def start_and_look(n):
    """Started, and no look under way: something else that is lost was counted."""
    other = aside(n, n.data / "other")
    other.mkdir(mode=0o700, parents=True)
    for path in (other.parent, other):
        os.chown(path, NODE_UID, NODE_UID)
    n.start()
    wait_for(lambda: n.client.status()["lost"] == 1, "node has looked", SECONDS)


def restore(n, path):
    return n.client.call("LOST_RESTORE", id=path.name)


def refused(n, path):
    with pytest.raises(NodeError) as e:
        restore(n, path)
    assert e.value.code == "exists", e.value
    return e.value.msg


def all_rows(n):
    return {table: n.sql(f"select * from {table} order by id") for table in ("sandbox", "snapshot")}


def test_they_come_back_with_their_rows(node):
    rows, gone = all_rows(node), [node.saved[0], node.saved[2]]  # one stays: else the journal is made again
    before = [files(path) for path in gone]
    for path in gone:
        node.sql("delete from sandbox where id = ?", path.name)
        node.sql("delete from snapshot where id = ?", path.name)
    node.start()
    wait_for(lambda: node.client.status()["lost"] == len(gone), "they are set aside", SECONDS)
    node.kill()
    assert not any(path.exists() for path in gone)
    for table, each in rows.items():
        for row in each:
            node.sql(f"insert or replace into {table} values ({','.join('?' * len(row))})", *row)
    node.start()
    wait_for(lambda: all(path.exists() for path in gone), "they are back", SECONDS)
    wait_for(lambda: node.client.status()["filesMissing"] == node.client.status()["lost"] == 0, "it is told", SECONDS)
    assert [files(path) for path in gone] == before
    assert not list((node.data / "lost").iterdir())
    node.kill()
    assert all_rows(node) == rows


@pytest.mark.parametrize(("which", "row"), [(0, None), (1, b"damaged"), (2, None)])
def test_an_operator_brings_back_what_a_row_misses(node, which, row):
    path = node.saved[which]
    if row:  # what is in the journal tells of it all the same
        (path / "row").write_bytes(row)
    was = files(path)
    start_and_look(node)
    path.rename(aside(node, path))
    restore(node, path)
    assert files(path) == was
    assert node.client.get(TEAM, node.boxes[0]).sandbox.state == value("NODE_PAUSED")
    with pytest.raises(NodeError, match="nothing lost"):
        restore(node, path)


@pytest.mark.parametrize(("generation", "word"), [(3, "an older"), (1, "a newer")])
def test_another_save_stays_lost_and_its_row_stays(node, generation, word):
    path = node.saved[0]
    was, at = files(path), aside(node, path)
    path.rename(at)
    node.sql("update sandbox set generation = ? where id = ?", generation, path.name)
    node.start()
    wait_for(lambda: node.client.status()["filesMissing"] == 1, "node has looked", SECONDS)
    assert word in refused(node, path)
    assert files(at) == was and not path.exists()
    assert node.client.get(TEAM, path.name).sandbox.generation == generation


def test_what_is_there_is_not_to_be_deleted_for_a_copy(node):
    start_and_look(node)
    for path in node.saved:
        at, was = aside(node, path), files(path)
        shutil.copytree(path, at)
        said = refused(node, path)
        assert "another copy" in said and "kill" not in said and "delete" not in said, said
        assert files(path) == files(at) == was


def test_what_its_owner_deleted_is_not_described_anew(node):
    """An older journal has its row again. The mark in its folder stays: a journal that is made again leaves it out."""
    deleted = [node.saved[0], node.saved[2]]
    for path in deleted:
        (path / "row").rename(path / "deleted")
    (node.saved[1] / "row").unlink()
    node.start()
    wait_for(lambda: (node.saved[1] / "row").exists(), "what merely lacks it is described", SECONDS)
    node.kill()
    for path in deleted:
        assert (path / "deleted").exists() and not (path / "row").exists(), path


# --- nothing of it goes before its time ---


def put_aside(n, path, seconds_ago=0, name=None):
    """As if node had done it so long ago."""
    kind = "snapshot" if path.name == SNAPSHOT else "sandbox"
    when = name or time.strftime("%Y%m%dt%H%M%Sz", time.gmtime(time.time() - seconds_ago))
    to = n.data / "lost" / f"{when}-{kind}-{path.name}"
    to.parent.mkdir(mode=0o700, exist_ok=True)
    os.chown(to.parent, NODE_UID, NODE_UID)
    path.rename(to)
    return to


def forget(n, path):
    n.sql("delete from sandbox where id = ?", path.name)
    n.sql("delete from snapshot where id = ?", path.name)


def lost(n):
    return sorted(path.name for path in (n.data / "lost").iterdir())


WEEK = 7 * 24 * 3600


def test_a_clock_that_may_be_wrong_removes_nothing(node):
    """After a start it may be: of a host that is told the time later."""
    forget(node, node.saved[0])
    old = put_aside(node, node.saved[0], WEEK + 60)
    node.start()
    wait_for(lambda: node.client.status()["lost"] == 1, "node has looked", SECONDS)
    assert lost(node) == [old.name]
    node.kill()
    node.start(lost_settle_s=0)
    wait_for(lambda: node.client.status()["lost"] == 0, "it is old", SECONDS)
    wait_for(lambda: lost(node) == [], "it is removed", SECONDS)


def test_what_a_clock_of_1970_set_aside_is_counted_from_now_on(node):
    forget(node, node.saved[0])
    put_aside(node, node.saved[0], name="19700101t000501z")
    node.start(lost_settle_s=0)
    today = time.strftime("%Y%m", time.gmtime())
    wait_for(lambda: lost(node) and lost(node)[0].startswith(today), "it has another name", SECONDS)
    wait_for(lambda: node.client.status()["lost"] == 1, "node has looked", SECONDS)


def test_a_snapshot_stays_while_a_sandbox_of_it_is_there(node):
    box, snapshot = node.boxes[0], node.saved[2]
    node.sql("update sandbox set template_id = ?, base_id = ? where id = ?", SNAPSHOT, BASE, box)
    forget(node, snapshot)
    (snapshot / "row").write_bytes(b"damaged")  # else it comes back
    old = put_aside(node, snapshot, WEEK + 60)
    node.start(lost_settle_s=0)
    wait_for(lambda: node.client.status()["lost"] == 1, "node has looked", SECONDS)
    assert lost(node) == [old.name]
    node.kill()
    node.sql("delete from sandbox where id = ?", box)
    shutil.rmtree(node.saved[0])
    node.start(lost_settle_s=0)
    wait_for(lambda: node.client.status()["lost"] == 0, "nobody needs it", SECONDS)


def test_what_was_put_back_after_a_kill_is_set_aside(node):
    path = node.saved[0]
    shutil.copytree(path, node.base / "backup")
    node.start()
    node.client.kill(TEAM, path.name)
    wait_for(lambda: not path.exists(), "it is gone", SECONDS)
    node.kill()
    shutil.copytree(node.base / "backup", path)
    for each in (path, *path.iterdir()):
        os.chown(each, NODE_UID, NODE_UID)
    was = files(path)
    node.start()
    wait_for(lambda: node.client.status()["lost"] == 1, "it is set aside", SECONDS)
    assert files(node.data / "lost" / lost(node)[0]) == was


@pytest.mark.parametrize("good_is_newer", [True, False])
def test_of_two_the_one_that_is_meant(node, good_is_newer):
    path = node.saved[0]
    forget(node, path)
    bad = node.data / "lost" / "bad"
    good = put_aside(node, path, 60 if good_is_newer else 3600)
    bad.mkdir(mode=0o700)
    (bad / "disk").write_bytes(b"another")
    for each in (bad, bad / "disk"):
        os.chown(each, NODE_UID, NODE_UID)
    when = time.strftime("%Y%m%dt%H%M%Sz", time.gmtime(time.time() - (3600 if good_is_newer else 60)))
    bad = bad.rename(bad.with_name(f"{when}-sandbox-{path.name}"))
    node.start()
    wait_for(lambda: node.client.status()["lost"] == 2, "node has looked", SECONDS)
    with pytest.raises(NodeError) as e:
        node.client.call("LOST_DROP", id=path.name)
    assert "name the folder" in e.value.msg
    node.client.call("LOST_DROP", id=bad.name)
    assert lost(node) == [good.name]


def test_the_one_that_is_whole_comes_back(node):
    path = node.saved[0]
    forget(node, path)
    (node.base / "state/templates" / BASE).mkdir(parents=True, exist_ok=True)
    put_aside(node, path, 3600)
    path.mkdir(mode=0o700)
    (path / "disk").write_bytes(b"another")
    for each in (path, path / "disk"):
        os.chown(each, NODE_UID, NODE_UID)
    put_aside(node, path, 60)
    node.start()
    wait_for(lambda: node.client.status()["lost"] == 2, "node has looked", SECONDS)
    restore(node, path)
    assert (path / "row").exists() and len(lost(node)) == 1


def test_a_pause_that_is_newer_than_the_row_stays_described(node):
    """A journal of before writes its row again, durable: for a secret, say."""
    path = node.saved[0]
    newer = (path / "row").read_bytes()
    node.sql("update sandbox set generation = 1 where id = ?", path.name)
    node.start()
    with pytest.raises(NodeError) as e:
        node.client.call("CONNECT", id=path.name, team=TEAM, timeout_s=60)
    assert "the journal is older" in e.value.msg, e.value
    assert (path / "row").read_bytes() == newer
