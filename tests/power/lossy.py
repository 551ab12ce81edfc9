"""lossy.py - a node whose files are on a disk that loses its power.

    with PowerHost() as host:
        host.client.pause("team", box.id)
        host.cut("none", seed=1)     # every process dies, what was not synced is gone, the next ones start

See lossy.h for what is kept of what was not synced.
"""

import contextlib
import os
import signal
import subprocess

from node import NodeHost
from warden import build_dir, is_alive, wait_for

HOW = ("none", "first", "some")
END_SECONDS = 60


class Disk:
    """A mount of lossy-fs; what a cut leaves is what the next mount begins with."""

    def __init__(self, store, at):
        self.store, self.at, self.process = store, at, None
        store.mkdir()
        at.mkdir()

    def mount(self):
        self.process = subprocess.Popen([build_dir() / "tests/power/lossy-fs", self.store, self.at], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == "mounted\n", "lossy-fs does not mount"

    def order(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def lie(self, name=""):
        """From now on fsync of what has this name does nothing."""
        assert self.order(f"lie {name}") == "lies"

    def cut(self, how, seed):
        assert self.order(f"cut {how} {seed}") == "cut"

    def unmount(self):
        """Whoever still waits for an answer gets an error."""
        if self.process:
            self.process.stdin.close()
            assert self.process.wait(END_SECONDS) == 0
            self.process.stdout.close()
            self.process = None


class PowerHost(NodeHost):
    """A node whose journal, sandboxes and snapshots are on such a disk."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.disk = Disk(self.base / "disk", self.base / "node")
        self.disk.mount()

    def machines(self):
        """The pids of all that runs in a sandbox's control group."""
        found = set()
        for group in self.warden.groups():
            with contextlib.suppress(FileNotFoundError):
                found |= {int(pid) for pid in (group / "cgroup.procs").read_text().split()}
        return found

    def cut(self, how="none", seed=1, journal=True, **settings):
        """Settings are those of the next node, which may find no journal."""
        self.disk.cut(how, seed)
        pids = self.machines() | {p.pid for p in (self.process, self.warden.process, self.egress_process)
                                  if p and p.poll() is None}
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.disk.unmount()
        self.kill_node()
        self.warden.kill()
        self.end_egress()
        wait_for(lambda: not any(map(is_alive, pids)), "all is dark", END_SECONDS)
        self.disk.mount()
        for path in () if journal else (self.base / "node").glob("journal.db*"):
            path.unlink()
        self.warden.start()
        self.start_egress()
        self.start_node(**settings)
        self.wait_template()

    def remove(self):
        self.remove_processes()
        self.disk.unmount()
        self.warden.remove()

    def snapshot_folders(self):
        at = self.base / "node/snapshots"
        return {f.name for f in at.iterdir()} if at.exists() else set()


__all__ = ["Disk", "HOW", "PowerHost"]
