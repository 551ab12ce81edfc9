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
