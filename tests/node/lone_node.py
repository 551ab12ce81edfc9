"""lone_node.py - a node without VMs, confined as in production: a journal that a test may write, a stand-in warden.

    with LoneNode() as node:
        node.put(running(1))       # a row, and its folder
        node.warden.cells = ...    # what warden's list shows
        node.start()
"""

import contextlib
import os
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile
import time

import refused_calls
from fake_warden import FakeWarden
from node_client import Gone, NodeClient, value
from warden import build_dir, wait_for

NODE_UID = 64321  # nobody's
TEAM, BASE = "team", "base-0123456789ab"
POOLED_ROW, RUNNING_ROW, KILLING_ROW, WAKING_ROW = 1, 2, 3, 5  # enum journal_state


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def running(i, seconds=3600, **more):
    """The row of one that runs for so many seconds."""
    return {"id": f"ia{i:020d}", "team": TEAM, "template_id": BASE, "alias": "base", "control_token": "c" * 40,
            "started_ns": time.time_ns(), "end_ns": time.time_ns() + seconds * 10**9, "vcpus": 1, "memory_mib": 512,
            "disk_mib": 2048, "node_state": value("NODE_RUNNING"), "generation": 1, "state": RUNNING_ROW, "slot": i,
            "run_boot_ns": boot_ns(), "end_boot_ns": boot_ns() + seconds * 10**9, **more}


class LoneNode:
    def __init__(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="hotcell-lone-", dir=os.environ.get("HOTCELL_TEST_DIR")))
        os.chmod(self.base, 0o755)
        (self.base / "state/templates").mkdir(parents=True)
        self.data = self.base / "node"
        self.warden = FakeWarden(self.base / "warden.sock")
        self.process, self.client = None, None

    def __enter__(self):
        self.warden.__enter__()
        self.start()  # it makes the journal
        self.kill()
        return self

    def __exit__(self, *exc):
        self.kill()
        self.warden.__exit__()
        try:
            if not exc[0]:
                refused_calls.check("node", self.log())
        finally:
            shutil.rmtree(self.base)

    # --- the daemon ---

    def launch(self, **settings):
        config = self.base / "node.conf"
        all_settings = {"data_dir": self.data, "state_dir": self.base / "state", "socket": self.base / "node.sock",
                        "warden_socket": self.warden.path, "egress_socket": "", "user": NODE_UID, "slots": 0,
                        **settings}
        config.write_text("".join(f"{k} = {v}\n" for k, v in all_settings.items()))
        with open(self.base / "node.log", "ab") as out:
            self.process = subprocess.Popen([build_dir() / "src/node/hotcell-node", config], stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=out, env=refused_calls.environment())

    def start(self, **settings):
        self.launch(**settings)
        self.client = wait_for(self.attempt, "node answers")
        wait_for(lambda: self.client.status()["warden"], "node has looked at warden")

    def attempt(self):
        assert self.process.poll() is None, f"node ended: {self.log()[-2000:]}"
        with contextlib.suppress(OSError, Gone):
            return NodeClient(self.base / "node.sock")

    def kill(self):
        if self.client:
            self.client.close()
            self.client = None
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def log(self):
        return (self.base / "node.log").read_text()

    # --- what it keeps ---

    def sql(self, statement, *values, data=None):
        path = (data or self.data) / "journal.db"
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            return db.execute(statement, values).fetchall()

    def put(self, *rows):
        info = {name: kind for _, name, kind, *_ in self.sql("pragma table_info(sandbox)")}
        blank = {name: "" if kind == "TEXT" else 0 for name, kind in info.items()}
        for row in rows:
            full = {**blank, "text": None, "known": None, **row}
            self.sql(f"insert into sandbox values ({','.join('?' * len(info))})", *full.values())
            folder = self.folder(row["id"])
            folder.mkdir(mode=0o700)
            (folder / "disk").write_bytes(b"a disk")
            for path in (folder, folder / "disk"):
                os.chown(path, NODE_UID, NODE_UID)

    def folder(self, sandbox):
        return self.data / "sandboxes" / sandbox

    def meta(self, name, data=None):
        return dict(self.sql("select name, value from meta", data=data)).get(name)
