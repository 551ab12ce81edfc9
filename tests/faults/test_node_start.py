"""test_node_start.py - node starts, whatever its journal holds: as many rows as are legal, texts as large as they may
be, few descriptors, rows that make no sense to this version, folders that it may not remove.

Confined as in production; the warden is a stand-in, for no VM is needed to read a journal.
"""

import contextlib
import os
import pathlib
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

import pytest

import refused_calls
from fake_warden import FakeWarden
from node_client import Gone, NodeClient, NodeError, value
from warden import build_dir, wait_for

NODE_UID = 64321  # nobody's
START_SECONDS = 10  # the promise
TEAM, BASE = "team", "base-0123456789ab"
PAUSED, SNAPSHOTS = 20_000, 10_000  # the default of paused_max, and SNAPSHOTS_MAX
FEW_DESCRIPTORS = 128
TEXT_MAX = 48 * 1024
RUNNING_ROW, PAUSED_ROW = 2, 4  # enum journal_state


class Books:
    """A folder with a journal, a node, and a warden that has no VMs."""

    def __init__(self, base, warden):
        self.base, self.warden = base, warden
        self.data = base / "node"
        self.process, self.client = None, None
        self.start()  # it makes the journal
        self.stop()

    def start(self, descriptors=None, seconds=60):
        """How long it takes until it answers."""
        config = self.base / "node.conf"
        config.write_text(f"data_dir = {self.data}\nstate_dir = {self.base / 'state'}\nsocket = {self.base}/node.sock\n"
                          f"warden_socket = {self.warden.path}\negress_socket =\nuser = {NODE_UID}\nslots = 0\n")

        def limit():
            if descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

        began = time.monotonic()
        with open(self.base / "node.log", "wb") as out:
            self.process = subprocess.Popen([build_dir() / "src/node/hotcell-node", config], stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=out, preexec_fn=limit,
                                            env=refused_calls.environment())
        self.client = wait_for(self.attempt, "node answers", seconds)
        return time.monotonic() - began

    def attempt(self):
        assert self.process.poll() is None, f"node ended: {self.log()[-2000:]}"
        with contextlib.suppress(OSError, Gone):
            client = NodeClient(self.base / "node.sock")
            client.status()
            return client

    def stop(self):
        if self.client:
            self.client.close()
            self.client = None
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
            self.process = None

    def log(self):
        return (self.base / "node.log").read_text()

    def sql(self):
        return contextlib.closing(sqlite3.connect(self.data / "journal.db", isolation_level=None))

    def put(self, table, rows, folders=True):
        with self.sql() as db:
            info = {name: kind for _, name, kind, *_ in db.execute(f"pragma table_info({table})")}
            blank = {name: "" if kind == "TEXT" else 0 for name, kind in info.items()}
            db.execute("begin")
            db.executemany(f"insert into {table} values ({','.join('?' * len(info))})",
                           (list({**blank, "known": None, **row}.values()) for row in rows))
            db.execute("commit")
        for row in rows if folders else ():
            self.make(("sandboxes" if table == "sandbox" else "snapshots") + "/" + row["id"])

    def make(self, name):
        path = self.data / name
        path.mkdir(mode=0o700)
        os.chown(path, NODE_UID, NODE_UID)
        return path

    def rows(self, table="sandbox"):
        with self.sql() as db:
            return {row[0]: row for row in db.execute(f"select * from {table}")}

    def is_there(self, name):
        return (self.data / name).is_dir()


@pytest.fixture
def books():
    # in memory: thousands of folders are made and removed, which is not what is measured
    base = pathlib.Path(tempfile.mkdtemp(prefix="hotcell-start-", dir="/dev/shm"))
    os.chmod(base, 0o755)
    (base / "state/templates").mkdir(parents=True)
    with FakeWarden(base / "warden.sock") as warden:
        it = None
        try:
            it = Books(base, warden)
            yield it
            it.stop()
            refused_calls.check("node", it.log())
        finally:
            if it:
                it.stop()
            shutil.rmtree(base)


def paused(i, **more):
    return {"id": f"ia{i:020d}", "team": TEAM, "template_id": BASE, "alias": "base", "access_token": "t" * 40,
            "control_token": "c" * 40, "started_ns": 10**18 + i, "end_ns": 10**18, "vcpus": 1, "memory_mib": 512,
            "disk_mib": 2048, "node_state": value("NODE_PAUSED"), "generation": 2, "ended_ns": 10**18,
            "state": PAUSED_ROW, "slot": 2**32 - 1, "key_id": "key", "saved_bytes": 1,
            "text": '{"metadata":{"user":"%d"}}' % i, **more}


def snapshot(i, **more):
    return {"id": f"s{i:019d}", "team": TEAM, "base_id": BASE, "parent": BASE, "source": "ia0", "tag": "default",
            "control_token": "c" * 40, "created_ns": 10**18 + i, "memory_bytes": 1, "disk_bytes": 1, "vcpus": 1,
            "memory_mib": 512, "disk_mib": 2048, "layers": 1, **more}


def ids(rows):
    return [row["id"] for row in rows]


def ids_of(entries):
    return [box.id for box, _ in entries]


@pytest.mark.parametrize("descriptors", [None, FEW_DESCRIPTORS])
def test_it_starts_with_all_the_paused_ones_there_may_be(books, descriptors, capsys):
    books.put("snapshot", [snapshot(i) for i in range(SNAPSHOTS)])
    rows = [paused(i, template_id=f"s{i % SNAPSHOTS:019d}", base_id=BASE) if i % 2 else paused(i) for i in range(PAUSED)]
    books.put("sandbox", rows)
    left = [books.data / "sandboxes" / rows[i]["id"] / "pages.new" for i in (0, PAUSED - 1)]
    for path in left:
        path.touch()
    seconds = books.start(descriptors)
    with capsys.disabled():
        print(f"\n{PAUSED} paused sandboxes, {SNAPSHOTS} snapshots, {descriptors or 'usual'} descriptors: "
              f"node answers after {seconds:.2f} s")
    assert seconds <= START_SECONDS
    status = books.client.status()
    assert (status["paused"], status["quarantined"]) == (PAUSED, 0)
    for row in (rows[0], rows[-1]):
        assert books.client.get(TEAM, row["id"]).sandbox.started_ns == row["started_ns"]
    assert books.client.kill(TEAM, rows[1]["id"]).sandbox.id == rows[1]["id"]
    assert set(books.warden.stopped) <= {rows[1]["id"]}  # one that is paused has no VM: warden is not asked for each
    # what was being saved when the node before it died goes in the background
    wait_for(lambda: not any(p.exists() for p in left), "they are tidied", 60, every=0.1)
    assert "Too many open files" not in books.log()


def test_it_starts_with_texts_as_large_as_they_may_be(books, capsys):
    rows = [paused(i, text='{"metadata":{"k":"%s"}}' % ("x" * (TEXT_MAX - 21))) for i in range(100)]
    assert len(rows[0]["text"]) == TEXT_MAX
    books.put("sandbox", rows)
    seconds = books.start()
    with capsys.disabled():
        print(f"\n100 rows with texts of {TEXT_MAX} bytes: node answers after {seconds:.2f} s")
    assert seconds <= START_SECONDS
    assert len(books.client.list(TEAM)) == 100


ODD = {
    "a reason of a later version": {"reason": 99},
    "a state of a later version": {"state": 99},
    "host lines that are cut off": {"text": "{}\n\nQEMU 1"},
    "a team that is too long": {"team": "x" * 200},
    "no team": {"team": ""},
    "an id that is no name of a folder": {"id": "../snapshots"},
}


def test_rows_that_make_no_sense_are_set_aside_and_kept(books):
    good, odd = [paused(i) for i in range(3)], [paused(100 + i, **more) for i, more in enumerate(ODD.values())]
    runs = paused(200, state=RUNNING_ROW, node_state=value("NODE_RUNNING"), slot=7, reason=99)
    books.put("sandbox", [*good, *odd, runs], folders=False)
    kept = [row["id"] for row in (*good, *odd, runs) if "/" not in row["id"]]
    for i in kept:
        books.make(f"sandboxes/{i}")
    books.warden.cells = {runs["id"]: 7, **{row["id"]: 8 + at for at, row in enumerate(good)}}
    before = {i: books.rows()[i] for i in ids([*odd, runs])}
    for _ in range(2):  # it stays so
        books.start()
        status = books.client.status()
        assert status["paused"] == len(good)
        assert status["quarantined"] == len(before)
        assert sorted(q["id"] for q in status["quarantine"]) == sorted(before)
        assert all(q["why"] and q["kind"] == "sandbox" for q in status["quarantine"])
        assert len(books.client.list(TEAM)) == len(good)
        wait_for(lambda: sorted(books.warden.stopped) == ids(good), "only VMs of paused ones are removed", 30)
        books.stop()
        assert {i: books.rows()[i] for i in before} == before
        assert all(books.is_there(f"sandboxes/{i}") for i in kept)
    with books.sql() as db:
        db.execute("update sandbox set reason = 0 where id = ?", [odd[0]["id"]])
    books.start()  # what makes sense again is there again
    assert books.client.get(TEAM, odd[0]["id"]).sandbox.state == value("NODE_PAUSED")
    books.client.kill("", runs["id"])  # an operator gives one up
    assert runs["id"] in books.warden.stopped and not books.is_there(f"sandboxes/{runs['id']}")
    assert runs["id"] not in books.rows()
    assert sorted(q["id"] for q in books.client.status()["quarantine"]) == sorted(ids(odd[1:]))


def test_a_snapshot_that_makes_no_sense_is_kept_and_what_was_made_of_it(books):
    odd, good = snapshot(1, team="x" * 200), snapshot(2, hidden=1)  # hidden: it goes with the last that needs it
    books.put("snapshot", [odd, good])
    of_odd = paused(1, template_id=odd["id"], base_id=BASE)
    of_good = paused(2, template_id=good["id"], base_id=BASE, reason=99)
    books.put("sandbox", [of_odd, of_good])
    before = books.rows(), books.rows("snapshot")
    for _ in range(2):
        books.start()
        found = {q["id"]: q["kind"] for q in books.client.status()["quarantine"]}
        assert found == {odd["id"]: "snapshot", of_good["id"]: "sandbox"}
        assert ids_of(books.client.list(TEAM)) == [of_odd["id"]]
        books.stop()
        assert (books.rows(), books.rows("snapshot")) == before
        assert books.is_there(f"snapshots/{odd['id']}") and books.is_there(f"snapshots/{good['id']}")


def test_a_folder_that_it_may_not_remove_keeps_it_from_nothing(books):
    books.put("sandbox", [paused(1)])
    for name in ("snapshots/lost+found", "sandboxes/lost+found"):
        (books.data / name).mkdir(mode=0o700)  # root's
        (books.data / name / "file").touch()
    books.start()
    assert books.client.status()["paused"] == 1
    assert re.search("lost.found", books.log())


def test_who_asks_for_one_that_was_set_aside_is_told(books):
    odd = paused(1, reason=99)
    books.put("sandbox", [odd])
    books.start()
    for team, code in ((TEAM, "unavailable"), ("strangers", "not_found")):
        for ask in (books.client.get, books.client.kill):
            with pytest.raises(NodeError) as e:
                ask(team, odd["id"])
            assert e.value.code == code
    assert odd["id"] in books.rows()
