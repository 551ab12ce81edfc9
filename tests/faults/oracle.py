"""oracle.py - what a server answered as saved, kept outside of it, and how it is looked for afterwards.

    oracle = Oracle(server, random.Random(seed))
    oracle.begin()            # two templates; paused sandboxes on both, a snapshot, one that runs
    ...                       # something terrible
    oracle.check_files()      # nothing of it was deleted
    oracle.first_answer(s)    # it is there to the byte, or the answer says why not

Of what is saved it knows what its guest showed (a file on its disk, one in its memory, which boot it is) and the bytes
of its folder. It asks as a client does, and mends as docs/operations.md tells an operator.
"""

import contextlib
import hashlib
import http.client
import json
import os
import shutil
import sqlite3
import subprocess
import urllib.parse

from server import wait_for
from warden import build_dir

ASK_SECONDS = 120
AGAIN_SECONDS = 40  # node reads a template that was damaged again after a while
BLOCK = 1 << 20
WRITE = ("head -c 303104 /dev/urandom > /home/user/disk; head -c 1000000 /dev/urandom > /dev/shm/memory; "
         "chmod a+r /home/user/disk /dev/shm/memory; sync; ")
# The disk's file comes from the disk, not from what the guest remembers of it.
SEE = ("dd if=/home/user/disk iflag=direct bs=4096 status=none | md5sum; md5sum < /dev/shm/memory; "
       "cat /proc/sys/kernel/random/boot_id")
TOLD_BY_DOCTOR = ("server", "journal", "vms", "saved", "templates")


class Saved:
    """A paused sandbox or a snapshot: `seen` is what a guest of it must show."""

    def __init__(self, kind, name, seen, template, box=None, of=None):
        self.kind, self.id, self.seen, self.template, self.box = kind, name, seen, template, box
        self.of = of        # the snapshot it is made of
        self.anchor = False  # it keeps its template from being dropped
        self.files = {}

    def __str__(self):
        return f"{self.kind} {self.id[-6:]}"


class Bytes:
    """Sums of files. One that has the same inode, length and times as before was not written to."""

    def __init__(self):
        self.known = {}

    def of(self, path):
        st = os.stat(path)
        sign = (st.st_ino, st.st_size, st.st_mtime_ns, st.st_ctime_ns)
        if self.known.get(path, (None,))[0] != sign:
            self.known[path] = sign, sum_of(path)
        return self.known[path][1]


def data_of(f):
    """The stretches of a file that are not holes."""
    size, at = os.fstat(f.fileno()).st_size, 0
    while at < size:
        try:
            at = os.lseek(f.fileno(), at, os.SEEK_DATA)
        except OSError:
            return
        end = os.lseek(f.fileno(), at, os.SEEK_HOLE)
        yield at, end
        at = end


def sum_of(path):
    """The same for zeros and for a hole."""
    total, zeros = hashlib.blake2b(), bytes(BLOCK)
    with open(path, "rb") as f:
        for at, end in data_of(f):
            at -= at % BLOCK
            while at < end:
                block = os.pread(f.fileno(), BLOCK, at)
                if block != zeros[:len(block)]:
                    total.update(b"%d %d " % (at, len(block)) + block)
                at += BLOCK
        total.update(b"%d" % os.fstat(f.fileno()).st_size)
    return total.hexdigest()


class Oracle:
    def __init__(self, server, chance):
        self.server, self.chance, self.bytes = server, chance, Bytes()
        self.aside = server.base / "aside"
        self.aside.mkdir()
        self.n_aside = 0
        self.templates = server.warden.state / "templates"
        self.paused, self.snapshots, self.runs = [], [], None
        self.journals = []  # of days before

    @property
    def saved(self):
        return self.paused + self.snapshots

    def place(self):
        """A new name in a folder of ours, on the same file system."""
        self.n_aside += 1
        return self.aside / str(self.n_aside)

    # --- the herd ---

    def begin(self):
        self.copy_journal()
        self.new_paused(anchor=True)
        self.add_twin()
        self.restart()
        self.server.wait_template()
        self.new_paused(anchor=True)
        self.new_running()
        self.take_snapshot()
        self.new_paused(of=self.snapshots[0])
        assert len({s.template for s in self.paused}) == 2, "both templates are used"

    def add_twin(self):
        """Another build of the same, newer: whatever happens to one, new sandboxes have the other."""
        first = self.server.admin("GET", "/admin/templates").json[0]["templateID"]
        twin = self.templates / (first[:17] + "-testtwin")
        twin.mkdir(mode=0o755)
        for f in (self.templates / first).iterdir():
            if f.name != "manifest":
                os.link(f, twin / f.name)
        manifest = json.loads((self.templates / first / "manifest").read_text())
        manifest.update(template=twin.name, created="2099-01-01T00:00:00Z")
        (twin / "manifest").write_text(json.dumps(manifest))

    def see(self, box):
        return self.server.run(box, SEE, user="root")

    def write(self, box):
        return self.server.run(box, WRITE + SEE, user="root")

    def target(self, name, what=""):
        return f"/sandboxes/{name}{what}"

    def create(self, of=None):
        return self.server.create(secure=True, **({"templateID": of} if of else {}))

    def new_running(self):
        self.runs = self.create()
        self.runs["seen"] = self.write(self.runs)
        self.runs["pid"] = self.server.vm_pid(self.runs)

    def new_paused(self, anchor=False, of=None):
        box = self.create(of and of.id)
        s = Saved("sandbox", box["sandboxID"], self.write(box), of.template if of else box["templateID"], box, of)
        s.anchor = anchor
        self.pause(s)
        self.paused.append(s)
        return s

    def pause(self, s):
        answer = self.server.api("POST", self.target(s.id, "/pause"), {}, seconds=ASK_SECONDS)
        assert answer.status == 204, f"pause of {s}: {answer.status} {answer.raw}"
        self.note(s)

    def take_snapshot(self):
        said = self.server.must("POST", self.target(self.runs["sandboxID"], "/snapshots"), {}, seconds=ASK_SECONDS)
        s = Saved("snapshot", said["snapshotID"].split(":")[0], self.runs["seen"], self.runs["templateID"])
        self.note(s)
        self.snapshots.append(s)

    def forget(self, s):
        """Its owner deletes it: then it is gone, and stays so."""
        if s.kind == "sandbox":
            status = self.server.api("DELETE", self.target(s.id)).status
            self.paused.remove(s)
        else:
            status = self.server.api("DELETE", f"/templates/{urllib.parse.quote(s.id, safe='')}").status
            self.snapshots.remove(s)
        assert status == 204, f"delete of {s}: {status}"

    # --- its files ---

    def folder(self, s):
        """Where node has it, or has set it aside."""
        here = self.server.data / ("sandboxes" if s.kind == "sandbox" else "snapshots") / s.id
        if here.is_dir():
            return here
        found = sorted((self.server.data / "lost").glob(f"*-{s.kind}-{s.id}"))
        assert found, f"{s}: its folder was deleted"
        return found[-1]

    def note(self, s):
        """`row` may be written again; all else of what is saved is not."""
        s.files = {f.name: self.bytes.of(f) for f in self.folder(s).iterdir() if f.name != "row"}

    def check_files(self, but=None):
        """Of everything that was answered as saved; `but`: a path that was changed by us."""
        for s in self.saved:
            folder = self.folder(s)
            for name, total in s.files.items():
                if folder / name != but:
                    assert (folder / name).exists(), f"{s}: {name} was deleted"
                    assert self.bytes.of(folder / name) == total, f"{s}: {name} was changed"

    # --- asking for it ---

    def ask(self, s):
        """The first answer about it. One that succeeded has `box`."""
        if s.kind == "sandbox":
            answer = self.server.api("POST", self.target(s.id, "/connect"), {"timeout": 3600}, seconds=ASK_SECONDS)
        else:
            answer = self.server.api("POST", "/sandboxes", {"templateID": s.id, "timeout": 3600, "secure": True},
                                     seconds=ASK_SECONDS)
        answer.box = answer.json if answer.status in (200, 201) else None
        return answer

    def look(self, s, answer):
        """It is there: is it what it was? Then it is as it was before."""
        if s.kind == "snapshot":
            seen = self.see(answer.box).splitlines()[:2]
            assert self.server.delete(answer.box) == 204
            assert seen == s.seen.splitlines()[:2], f"{s} is not what it was, and nobody says so"
            return
        seen = self.see(s.box)
        assert seen == s.seen, f"{s} is not what it was, and nobody says so: {seen!r}, was {s.seen!r}"
        if self.chance.random() < 0.3:
            s.seen = self.write(s.box)
        self.pause(s)

    def check_whole(self, s):
        answer = self.ask(s)
        assert answer.box, f"{s} is mended and not there: {answer.status} {answer.raw}"
        self.look(s, answer)

    def first_answer(self, s):
        """True: it is there, to the byte. False: it is not, and that was said, to the client and by doctor."""
        answer = self.ask(s)
        if answer.box:
            self.look(s, answer)
            return True
        assert answer.status >= 400 and answer.json.get("message"), f"{s}: {answer.status} {answer.raw}"
        self.check_doctor(s, answer)
        if answer.status == 404:  # no row: then it was set aside
            wait_for(lambda: any(e["id"] == s.id for e in self.lost()), f"{s} is in the list of what is lost", 30, 0.2)
        return False

    def check_told(self, s, *words):
        """It is not there now; the answer has these words, doctor says something, and nothing is deleted."""
        answer = self.ask(s)
        assert not answer.box, f"{s} is there, which cannot be"
        text = answer.raw.decode()
        assert answer.status >= 400 and all(word in text for word in words), f"{s}: {answer.status} {text}, not {words}"
        self.check_doctor(s, answer)

    def check_doctor(self, s, answer):
        """What is in folders is counted by a thread, so it may take a moment."""
        wait_for(self.doctor, f"doctor finds something: the answer about {s} is {answer.raw}", 30, 0.2)

    def check_running(self):
        """It goes on in the same machine."""
        assert self.see(self.runs) == self.runs["seen"], "what runs is another"
        assert self.server.vm_pid(self.runs) == self.runs["pid"]

    def check_all(self):
        self.check_files()
        for s in self.saved:
            self.check_whole(s)
        self.check_running()

    # --- what an operator has ---

    def hotcell(self, *words):
        return subprocess.run([build_dir() / "src/cli/hotcell", "--socket", self.server.admin_socket, *words],
                              capture_output=True, text=True, check=False, timeout=ASK_SECONDS)

    def doctor(self):
        """What it finds wrong with what is saved."""
        found = json.loads(self.hotcell("--json", "doctor").stdout)
        return [f"{c['check']}: {c['found']}" for c in found if c["check"] in TOLD_BY_DOCTOR and c["verdict"] != "ok"]

    def lost(self):
        """What was set aside; restore is asked in this order."""
        done = self.hotcell("--json", "lost", "list")
        assert done.returncode == 0, done
        return sorted(json.loads(done.stdout), key=lambda e: e["kind"] != "snapshot")

    def start(self, **changes):
        self.server.start("node", **changes)
        self.server.wait_up()

    def restart(self):
        self.server.kill("node")
        self.start()

    def move_journal(self):
        to = self.place()
        to.mkdir()
        for path in self.server.data.glob("journal.db*"):
            path.rename(to / path.name)
        return to

    def own(self, path):
        os.chown(path, self.server.users["node"], self.server.users["node"])

    def copy_journal(self):
        """For another day."""
        alive = self.server.daemons["node"].process
        if alive:
            self.server.kill("node")
        self.journals.append(self.place())
        with contextlib.closing(sqlite3.connect(self.server.data / "journal.db")) as here, \
                contextlib.closing(sqlite3.connect(self.journals[-1])) as there:
            here.backup(there)
        for path in self.server.data.glob("journal.db*"):
            self.own(path)
        if alive:
            self.start()

    def rebuild(self):
        """What it says; all that is saved must be in it. One that ran has no description, which is 3."""
        program = build_dir() / "src/node/hotcell-node"
        done = subprocess.run([program, "--rebuild", self.server.base / "node.conf"], capture_output=True, text=True,
                              check=False, timeout=ASK_SECONDS)
        assert done.returncode in (0, 3), done
        return done.stdout

    def check_rebuilt(self, said):
        counts = f"{len(self.paused)} paused sandboxes and {len(self.snapshots)} snapshots are in the journal again; 0 could"
        assert counts in said, (counts, said)

    def rebuild_journal(self):
        """As docs/operations.md says. Node is stopped before, and runs afterwards."""
        self.server.kill("node")
        self.move_journal()
        self.check_rebuilt(self.rebuild())
        self.start()

    def part_with_running(self):
        """After a journal was lost: its disk was set aside, or a reason is said. Or it goes on."""
        if not self.runs:
            return
        name = self.runs["sandboxID"]
        answer = self.server.api("GET", self.target(name))
        if answer.status == 200 and answer.json["state"] == "running":
            self.check_running()
            return
        if answer.status == 200:  # that journal knew it as paused, which it was then
            assert self.server.delete(self.runs) == 204
        else:
            assert answer.status == 404, (answer.status, answer.raw)
            wait_for(lambda: answer.json.get("reason") or any(e["id"] == name for e in self.lost()),
                     f"the disk of {name} is set aside, or a reason is said", 30, 0.1)
        self.runs = None

    def settle_lost(self):
        """What is ours is brought back, what nobody was told is saved goes."""
        mine = {s.id for s in self.saved}
        for entry in self.lost():
            assert entry["described"] or entry["id"] not in mine, entry
            done = self.hotcell("lost", "restore" if entry["id"] in mine else "drop", entry["id"])
            assert done.returncode == 0, (entry, done)

    def after_rebuild(self):
        self.part_with_running()
        self.settle_lost()
        if not self.runs:
            self.new_running()

    def mend_journal(self):
        """After a start with a journal that was not the last: what was set aside is brought back, then the journal is
        made again, of all that is saved."""
        self.part_with_running()
        self.settle_lost()
        self.rebuild_journal()
        self.after_rebuild()

    def end(self):
        """Everything is deleted by its owner."""
        for s in list(self.paused) + list(self.snapshots):
            self.forget(s)
        assert self.server.delete(self.runs) == 204
        self.settle_lost()
        shutil.rmtree(self.aside)


def without_answer(ask, *args):
    """A request that may meet a daemon that dies; None: no answer."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        return ask(*args)
    return None
