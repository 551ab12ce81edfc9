"""test_saved.py - what was answered as saved is there to the byte, whatever became of the journal or a mount."""

import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import urllib.parse

import pytest

from server import Server, wait_for
from warden import build_dir

CALL_SECONDS = 300


@pytest.fixture(scope="module")
def server():
    with Server(node={"pool": 0, "starts_max": 4, "lost_settle_s": 0}) as s:
        yield s


@pytest.fixture
def box(server):
    """One with something on its disk and something in its memory."""
    b = server.create(metadata={"who": "me"}, secure=True)
    server.run(b, "head -c 300000 /dev/urandom > /home/user/disk; head -c 3000000 /dev/urandom > /dev/shm/memory")
    b["seen"] = see(server, b)
    yield b
    server.delete(b)


def see(server, b):
    return server.run(b, "md5sum < /home/user/disk; md5sum < /dev/shm/memory; cat /proc/sys/kernel/random/boot_id")


def pause(server, b):
    assert server.api("POST", f"/sandboxes/{b['sandboxID']}/pause", seconds=CALL_SECONDS).status == 204


def connect(server, b, key=True):
    return server.api("POST", f"/sandboxes/{b['sandboxID']}/connect", {"timeout": 600}, key=key, seconds=CALL_SECONDS)


def is_whole(server, b):
    """It goes on where it was, with what it had."""
    status = connect(server, b).status
    assert status in (200, 201), status
    assert see(server, b) == b["seen"]


def take(server, b):
    said = server.must("POST", f"/sandboxes/{b['sandboxID']}/snapshots", {}, seconds=CALL_SECONDS)
    return said["snapshotID"].split(":")[0]


def drop(server, snapshot):
    return server.api("DELETE", f"/templates/{urllib.parse.quote(snapshot, safe='')}").status


def is_made_of(server, snapshot, b):
    copy = server.create(templateID=snapshot, secure=True)
    assert see(server, copy).splitlines()[:2] == b["seen"].splitlines()[:2]
    server.delete(copy)


def journal(server):
    return server.base / "node/journal.db"


def move_away(server, to):
    to.mkdir()
    for path in (server.base / "node").glob("journal.db*"):
        shutil.move(path, to / path.name)


def rebuild(server):
    program = build_dir() / "src/node/hotcell-node"
    return subprocess.run([program, "--rebuild", server.base / "node.conf"], capture_output=True, text=True, check=False)


def hotcell(server, *args, status=0):
    done = subprocess.run([build_dir() / "src/cli/hotcell", "--socket", server.admin_socket, *args],
                          capture_output=True, text=True, check=False)
    assert done.returncode == status, (args, done.stdout, done.stderr)
    return done.stdout


def start(server):
    server.start("node")
    server.wait_up()


@contextlib.contextmanager
def asked(server, method, target):
    """While somebody waits for the answer, from whichever node it comes."""
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        threads.submit(server.api, method, target, seconds=60)
        yield


def lost_of(server, sandbox):
    """Its entry in the list of what is lost; the sweep is done on a thread."""
    def found():
        server.daemons["node"].check_alive()
        return next((e for e in json.loads(hotcell(server, "--json", "lost", "list")) if e["id"] == sandbox), None)

    return wait_for(found, f"{sandbox} is lost; {server.daemons['node'].log()[-1500:]}", 30, 0.1)


def test_a_damaged_journal_is_made_again(server, box, tmp_path):
    snapshot = take(server, box)
    pause(server, box)
    assert oct((server.base / "node/sandboxes" / box["sandboxID"] / "row").stat().st_mode)[-3:] == "600"
    server.kill("node")
    with open(journal(server), "r+b") as f:  # the schema's page
        f.write(os.urandom(4096))
    server.launch("node")
    assert server.daemons["node"].process.wait(30) == 1
    server.daemons["node"].process = None
    assert "is damaged: move it away (and its -wal) and run hotcell-node --rebuild" in server.daemons["node"].log()
    refused = rebuild(server)
    assert refused.returncode == 1 and "damaged" in refused.stderr, refused
    before = journal(server).read_bytes()
    move_away(server, tmp_path / "old")
    done = rebuild(server)
    assert done.returncode == 0, done
    assert f"sandbox {box['sandboxID']}\n" in done.stdout and f"snapshot {snapshot}\n" in done.stdout
    assert "1 paused sandboxes and 1 snapshots are in the journal again" in done.stdout
    assert (tmp_path / "old/journal.db").read_bytes() == before
    assert rebuild(server).returncode == 1  # it holds rows now
    start(server)
    again = rebuild(server)
    assert again.returncode == 1 and "another node uses" in again.stderr, again
    is_whole(server, box)
    assert not (server.base / "node/sandboxes" / box["sandboxID"] / "row").exists()
    is_made_of(server, snapshot, box)
    assert drop(server, snapshot) == 204


def test_a_journal_that_was_moved_away_is_made_by_the_next_node(server, box, tmp_path):
    pause(server, box)
    server.kill("node")
    move_away(server, tmp_path / "old")
    start(server)
    assert re.search(r"the journal is new and the data folder is not: 1 paused sandboxes and 0 snapshots are brought "
                     "back", server.daemons["node"].log())
    assert not (server.base / "node/lost").exists() or not list((server.base / "node/lost").iterdir())
    is_whole(server, box)


def answers_until(server, b, words):
    """What its owner is told, from node's first answer on, until it has these words."""
    answers = []

    def is_said():
        answers.append(connect(server, b))
        return words in answers[-1].json.get("message", "")

    wait_for(is_said, words, 30, 0)
    return answers


def test_a_journal_of_before_loses_nothing(server, box, tmp_path):
    """One that ran then and one that was not there are both paused now."""
    server.kill("node")
    with sqlite3.connect(journal(server)) as old, sqlite3.connect(tmp_path / "older.db") as copy:
        old.backup(copy)
    start(server)
    later = server.create(secure=True)
    snapshot = take(server, box)
    pause(server, later)
    pause(server, box)
    wait_for(lambda: not list((server.warden.state / "vms").iterdir()), "their VMs are gone", 30, 0.1)
    server.kill("node")  # else an older journal would find them running
    move_away(server, tmp_path / "newer")
    with sqlite3.connect(tmp_path / "older.db") as old, sqlite3.connect(journal(server)) as copy:
        old.backup(copy)
    user = (server.base / "node").stat()
    os.chown(journal(server), user.st_uid, user.st_gid)
    for path in (server.base / "node").glob("journal.db-*"):
        path.unlink()
    with concurrent.futures.ThreadPoolExecutor(2) as threads:  # they wait for node
        told = [threads.submit(answers_until, server, b, "its files are set aside") for b in (box, later)]
        start(server)
        for answer in [answer for answers in told for answer in answers.result()]:
            assert answer.status == 503, (answer.status, answer.raw)  # never that it is no more
    for sandbox, kind in ((box["sandboxID"], "sandbox"), (later["sandboxID"], "sandbox"), (snapshot, "snapshot")):
        entry = lost_of(server, sandbox)
        assert entry["kind"] == kind and entry["described"] and entry["bytes"] > 0, entry
    wait_for(lambda: server.node_status()["lost"] == 3, "status counts them", 30, 0.1)
    assert server.node_status()["lostBytes"] > 0
    _, other = server.new_team("other")
    for ask in (lambda **key: connect(server, later, **key), lambda **key: connect(server, box, **key),
                lambda **key: server.api("POST", "/sandboxes", {"templateID": snapshot}, **key)):
        said = ask()
        assert said.status == 503 and "its files are set aside" in said.json["message"], (said.status, said.raw)
        assert ask(key=other).status == 404  # whose it is not learns nothing
    doctor = {c["check"]: c for c in json.loads(subprocess.run(
        [build_dir() / "src/cli/hotcell", "--socket", server.admin_socket, "--json", "doctor"],
        capture_output=True, check=False).stdout)}
    assert doctor["saved"]["verdict"] == "warn" and "lost list" in doctor["saved"]["fix"]
    hotcell(server, "lost", "restore", snapshot, box["sandboxID"])
    hotcell(server, "lost", "restore", box["sandboxID"], status=1)  # it is there
    hotcell(server, "lost", "drop", later["sandboxID"])
    hotcell(server, "lost", "restore", later["sandboxID"], status=1)  # it is not
    assert connect(server, later).status == 404
    assert json.loads(hotcell(server, "--json", "lost")) == []
    is_whole(server, box)
    is_made_of(server, snapshot, box)
    assert drop(server, snapshot) == 204


def test_a_mount_that_comes_late_deletes_nothing(server, box):
    snapshot = take(server, box)
    pause(server, box)
    data = server.base / "node"
    server.kill("node")
    for name in ("snapshots", "sandboxes"):
        os.rename(data / name, data / f"{name}.away")
    start(server)
    for said in (server.api("POST", "/sandboxes", {"templateID": snapshot}), connect(server, box),
                 server.api("DELETE", f"/templates/{snapshot}")):
        assert said.status == 503 and said.json["reason"] == "files_missing" and "mounted?" in said.json["message"], said
    (told,) = [s for s in server.admin("GET", "/admin/snapshots").json if s["snapshotID"] == snapshot]
    assert told["missing"] and not told["hidden"]
    wait_for(lambda: server.node_status()["filesMissing"] == 2, "status counts them", 30, 0.1)
    out = hotcell(server, "doctor", status=1)
    assert "the files of 2 paused sandboxes and snapshots are not there" in out
    server.kill("node")
    for name in ("snapshots", "sandboxes"):
        os.rmdir(data / name)
        os.rename(data / f"{name}.away", data / name)
    start(server)
    is_whole(server, box)
    is_made_of(server, snapshot, box)
    assert drop(server, snapshot) == 204


def test_what_is_lost_is_there_for_a_week(server, box):
    """And what is none of ours is left alone."""
    pause(server, box)
    data, lost = server.base / "node", server.base / "node/lost"
    lost.mkdir(exist_ok=True)
    os.chown(lost, data.stat().st_uid, data.stat().st_gid)
    server.kill("node")
    old, young = (lost / f"{day}t000000z-sandbox-ia{day}" for day in ("20260101", "20991231"))
    for folder in (old, young, data / "snapshots/lost+found"):
        folder.mkdir(mode=0o700)
    for folder in (old, young):
        os.chown(folder, data.stat().st_uid, data.stat().st_gid)
    start(server)  # lost+found is root's
    wait_for(lambda: not old.exists(), "it is removed", 30, 0.1)
    assert young.exists() and (data / "snapshots/lost+found").exists()
    wait_for(lambda: "was there for a week: it is removed" in server.daemons["node"].log(), "that is logged", 30, 0.1)
    (data / "snapshots/lost+found").rmdir()
    young.rmdir()
    is_whole(server, box)


def test_the_disk_of_one_that_lost_its_vm_is_there_for_a_day(server, box):
    """As after a reboot warden knows nothing of it. Brought back, it boots from its disk."""
    server.run(box, "sync")
    server.kill("node")
    assert server.warden.serves()
    server.warden.stop(box["sandboxID"])
    server.warden.hang_up()
    start(server)
    wait_for(lambda: connect(server, box).status == 404, "it is gone", 60, 0.1)
    entry = lost_of(server, box["sandboxID"])
    assert entry["kind"] == "disk" and entry["described"] and entry["bytes"] > 0, entry
    wait_for(lambda: server.node_status()["ending"] == 0, "its row is gone, too", 30, 0.1)
    hotcell(server, "lost", "restore", box["sandboxID"])
    told = server.must("GET", f"/sandboxes/{box['sandboxID']}")
    assert told["state"] == "paused" and told["metadata"] == {"who": "me"}
    assert connect(server, box).status == 201
    disk, memory, boot = box["seen"].split(" -")
    assert server.run(box, "md5sum < /home/user/disk").split()[0] == disk.strip()
    assert server.run(box, "cat /proc/sys/kernel/random/boot_id").strip() != boot.strip()
    assert server.run(box, "ls /dev/shm/memory || echo none").strip().endswith("none"), memory
    assert json.loads(hotcell(server, "--json", "lost")) == []


@pytest.mark.parametrize("step", ["kill.journal", "kill.files", "kill.row", "kill.answer"])  # it has no VM to stop
def test_what_was_killed_while_paused_does_not_come_back(server, step):
    b = server.create(secure=True)
    pause(server, b)
    server.kill("node")
    server.start("node", die_at=step)
    server.wait_up()
    with asked(server, "DELETE", f"/sandboxes/{b['sandboxID']}"):
        server.daemons["node"].wait_dead(60)
        start(server)
    wait_for(lambda: connect(server, b).status == 404, "it is gone", 60, 0.1)
    wait_for(lambda: not server.lost_data(), "its folder is gone", 60, 0.1)
    assert b["sandboxID"] not in hotcell(server, "lost", "list")


@pytest.mark.parametrize("step", ["forget.row"])
def test_a_snapshot_that_was_deleted_does_not_come_back(server, box, step):
    snapshot = take(server, box)
    server.kill("node")
    server.start("node", die_at=step)
    server.wait_up()
    with asked(server, "DELETE", f"/templates/{snapshot}"):
        server.daemons["node"].wait_dead(60)
        start(server)
    wait_for(lambda: not server.lost_data(), "its folder is gone", 60, 0.1)
    assert snapshot not in hotcell(server, "lost", "list")


def test_what_was_saved_by_an_earlier_version_is_described(server, box):
    snapshot = take(server, box)
    pause(server, box)
    rows = [server.base / "node/sandboxes" / box["sandboxID"] / "row", server.base / "node/snapshots" / snapshot / "row"]
    server.kill("node")
    for row in rows:
        row.unlink()
    start(server)
    wait_for(lambda: all(row.exists() for row in rows), "both are described", 30, 0.1)
    is_whole(server, box)
    assert drop(server, snapshot) == 204
