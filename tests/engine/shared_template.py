"""shared_template.py - one template for all tests of a run that would otherwise each build the same one.

    shared = SharedTemplate(warden, [kernel, disk], sizes)
    shared.take()       # warden runs, node does not yet: what another test left is put where node looks
    ...                 # node says whether it fits, as ever, and builds one if not
    shared.give(name)   # it is ready: for the next test

HOTCELL_TEMPLATES names the folder; without it every test builds its own, as do tests of building. Nothing is taken
on trust: node compares the manifest and sums up every file. What is shared is made of the same kernel, disk and
settings; with an injector its authority is a part of that, so its keys are shared, too.

Files are linked, not copied: a published template is root's, read-only, and never changed again.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess

from warden import wait_for

WAIT_SECONDS = 300  # for another test that builds it; then we build one, too
GIVE_SECONDS = 5    # for others to look, when what was there did not fit
# Settings of warden that are each test's own, and say nothing about the machine
OF_THIS_TEST = {"state_dir", "run_dir", "cgroup", "uid_base", "vms_max", "copier", "firmware_dirs", "client_uid",
                "client_gid", "allow_emulation"}


def link_or_copy(source, to):
    try:
        os.link(source, to)
    except OSError:  # another file system
        subprocess.run(["cp", "--sparse=always", "--reflink=auto", "--preserve=mode", source, to], check=True)


def copy_folder(source, to, copy):
    """Whole or not at all."""
    fresh = to.with_name(f".{to.name}.{os.getpid()}")
    fresh.mkdir(mode=0o755)
    for file in source.iterdir():
        if file.is_file():
            copy(file, fresh / file.name)
    fresh.rename(to)


class SharedTemplate:
    def __init__(self, warden, files, sizes, injector=None):
        """`files`: what it is made of; `injector`: the state folder of one. No files: it is not shared."""
        self.templates, self.injector = warden.state / "templates", injector
        self.lock, self.taken, self.at = None, None, None
        folder = os.environ.get("HOTCELL_TEMPLATES")
        if not folder or not files:
            return
        words = self.words(warden, files, sizes, injector is not None)
        self.at = pathlib.Path(folder) / hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()[:16]

    @staticmethod
    def words(warden, files, sizes, injector):
        """Templates are of use to each other's tests if these are the same."""
        stats = [(str(f), s.st_size, s.st_mtime_ns) for f in files for s in [os.stat(f)]]
        machine = {k: str(v) for k, v in warden.settings.items() if k not in OF_THIS_TEST}
        return [stats, machine, sizes, injector, os.environ.get("HOTCELL_USR")]

    def take(self):
        if not self.at:
            return
        self.at.mkdir(parents=True, exist_ok=True)
        self.hold(WAIT_SECONDS)
        for template in self.at.glob("base-*") if self.lock else ():
            for key in (self.at / "injector").iterdir() if self.injector else ():
                shutil.copy2(key, self.injector)
            copy_folder(template, self.templates / template.name, link_or_copy)
            self.taken = template.name
            self.release()

    def give(self, name):
        """`name`: what node uses."""
        if self.at and name != self.taken:
            if not self.lock:
                self.hold(GIVE_SECONDS)
            if self.lock:
                self.store(name)
        self.taken = name
        self.release()

    def store(self, name):
        for old in self.at.iterdir():
            if old.is_dir():
                shutil.rmtree(old)
        if self.injector:
            copy_folder(self.injector, self.at / "injector", shutil.copy2)
        copy_folder(self.templates / name, self.at / name, link_or_copy)

    # --- one at a time: who builds holds it, so that the others wait ---

    def hold(self, seconds):
        self.lock = open(self.at / "lock", "w")
        try:
            wait_for(self.try_lock, "nobody else builds it", seconds, 0.2)
        except AssertionError:
            self.release()

    def try_lock(self):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    def release(self):
        if self.lock:
            self.lock.close()
            self.lock = None
