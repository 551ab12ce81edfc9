"""oracle.py - what a server answered as saved, kept outside of it, and how it is looked for afterwards.

    oracle = Oracle(server, random.Random(seed))
    oracle.begin()            # two templates; paused sandboxes on both, a snapshot, one that runs
    ...                       # something terrible
    oracle.check_files()      # nothing of it was deleted
    oracle.first_answer(s)    # it is there to the byte, or the answer says why not

Of what is saved it knows what its guest showed (a file on its disk, one in its memory, which boot it is), what the API
said of it, and the bytes of its folder; and the bytes of the templates that it differs from. It asks as a client does,
and mends as docs/operations.md tells an operator.
"""

import contextlib
import hashlib
import http.client
import json
import os
import re
import shutil
import sqlite3
import subprocess
import urllib.parse

from server import wait_for
from warden import build_dir

ASK_SECONDS = 120
AGAIN_SECONDS = 40  # node reads a template that was damaged again after a while
BLOCK = 1 << 20
# Few programs, for each costs an emulated guest a tenth of a second.
WRITE = ("head -c 131072 /dev/urandom > /home/user/disk; head -c 500000 /dev/urandom > /dev/shm/memory; "
         "sync /home/user/disk; ")
# The disk's file comes from the disk, not from what the guest remembers of it.
SEE = ("dd if=/home/user/disk iflag=direct bs=128k status=none | md5sum - /dev/shm/memory; "
       "read boot < /proc/sys/kernel/random/boot_id; echo $boot")
SHELL = ("/bin/sh", "-c")  # no profile
FACTS = ("templateID", "alias", "state", "metadata", "cpuCount", "memoryMB", "diskSizeMB")  # of a sandbox, that stay


class Saved:
    """A paused sandbox or a snapshot: `seen` is what a guest of it must show."""

    def __init__(self, kind, name, seen, template, box=None, of=None):
        self.kind, self.id, self.seen, self.template, self.box = kind, name, seen, template, box
        self.of = of        # the snapshot it is made of
        self.anchor = False  # it keeps its template from being dropped
        self.files, self.facts = {}, None

    def __str__(self):
        return f"{self.kind} {self.id[-6:]}"


def sign_of(path):
    """Another one if it was written to or is another file; not if it was only moved."""
    st = os.stat(path)
    return st.st_ino, st.st_size, st.st_mtime_ns


class Bytes:
    """Sums of files. One that has the same signs as before was not written to."""

    def __init__(self):
        self.known = {}

    def of(self, path):
        sign = sign_of(path), os.stat(path).st_ctime_ns
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
        self.server, self.chance, self.bytes, self.decks = server, chance, Bytes(), {}
        self.aside = server.base / "aside"
        self.aside.mkdir()
        self.n_aside = 0
        self.templates = server.warden.state / "templates"
        self.paused, self.snapshots, self.runs = [], [], None
        self.journals = []  # of days before
        self.base_files = {}  # of the templates
        self.unanswered = 0  # snapshots

    @property
    def saved(self):
        return self.paused + self.snapshots

    def place(self):
        """A new name in a folder of ours, on the same file system."""
        self.n_aside += 1
        return self.aside / str(self.n_aside)

    def deal(self, *cards):
        """One of them, drawn; none comes again before all others did."""
        deck = self.decks.get(cards) or self.chance.sample(cards, len(cards))
        self.decks[cards] = deck[1:]
        return deck[0]

    # --- the herd ---

    def begin(self):
        self.new_paused(anchor=True)
        self.server.kill("node")
        self.copy_journal()
        self.add_twin()
        self.start()
        self.server.wait_template()
        self.new_paused(anchor=True)
        self.new_running()
        self.take_snapshot()
        self.new_paused(of=self.snapshots[0])
        assert len({s.template for s in self.paused}) == 2, "both templates are used"
        self.base_files = {f: sign_of(f) for f in self.templates.glob("*/*")}

    def add_twin(self):
        """Another build of the same, newer: whatever happens to one, new sandboxes have the other."""
        first = self.paused[0].template
        twin = self.templates / (first[:17] + "-testtwin")
        twin.mkdir(mode=0o755)
        for f in (self.templates / first).iterdir():
            if f.name != "manifest":
                os.link(f, twin / f.name)
        manifest = json.loads((self.templates / first / "manifest").read_text())
        manifest.update(template=twin.name, created="2099-01-01T00:00:00Z")
        (twin / "manifest").write_text(json.dumps(manifest))

    def see(self, box):
        return self.server.run(box, SEE, user="root", shell=SHELL)

    def write(self, box):
        return self.server.run(box, WRITE + SEE, user="root", shell=SHELL)

    def target(self, name, what=""):
        return f"/sandboxes/{name}{what}"

    def create(self, of=None):
        return self.server.create(secure=True, metadata={"drawn": str(self.chance.random())},
                                  **({"templateID": of} if of else {}))

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
        s.facts = s.facts or self.facts_of(s)

    def ask_for_snapshot(self, box=None):
        name = (box or self.runs)["sandboxID"]
        return self.server.api("POST", self.target(name, "/snapshots"), {}, seconds=ASK_SECONDS)

    def layered(self):
        """A snapshot whose disk has layers below its own; taken, if there is none."""
        for s in self.snapshots:
            if len(list(self.folder(s).glob("layer*"))) > 1:
                return s
        below = self.snapshots[-1]
        box = self.create(below.id)
        box.update(seen=self.write(box), templateID=below.template)
        s = self.take_snapshot(box=box)
        assert self.server.delete(box) == 204
        return s

    def take_snapshot(self, answer=None, box=None):
        answer, box = answer or self.ask_for_snapshot(box), box or self.runs
        assert answer.status == 201, f"snapshot: {answer.status} {answer.raw}"
        s = Saved("snapshot", id_of(answer.json), box["seen"], box["templateID"])
        self.note(s)
        self.snapshots.append(s)
        s.facts = self.facts_of(s)
        return s

    def forget(self, s):
        """Its owner deletes it: then it is gone, and stays so."""
        if s.kind == "sandbox":
            status = self.server.api("DELETE", self.target(s.id)).status
            self.paused.remove(s)
        else:
            status = self.delete_snapshot(s.id)
            self.snapshots.remove(s)
        assert status == 204, f"delete of {s}: {status}"

    def delete_snapshot(self, name):
        return self.server.api("DELETE", f"/templates/{urllib.parse.quote(name, safe='')}").status

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
        """Of everything that was answered as saved, and of what it differs from; `but`: a path that was changed by us."""
        saved = {self.folder(s) / name: total for s in self.saved for name, total in s.files.items()}
        for known, look in ((self.base_files, sign_of), (saved, self.bytes.of)):
            for path, before in known.items():
                if but not in (path, path.parent):
                    assert path.exists(), f"{path} was deleted"
                    assert look(path) == before, f"{path} was changed"

    # --- its row ---

    def facts_of(self, s):
        """What is said of it, of what does not change with time."""
        if s.kind == "sandbox":
            said = self.server.must("GET", self.target(s.id))
            return {name: said.get(name) for name in FACTS}
        mine = [e for e in self.listed() if id_of(e) == s.id]
        assert len(mine) == 1, f"{s}: {mine}"
        return mine[0]

    def check_rows(self):
        """All of it is there again, and nothing else is."""
        for s in self.saved:
            facts = self.facts_of(s)
            assert facts == s.facts, f"{s} is described as {facts}, was {s.facts}"
        known = {s.id for s in self.paused} | {self.runs["sandboxID"]}
        assert self.server.ids() == known, (self.server.ids(), known)
        self.drop_unanswered()
        assert {id_of(e) for e in self.listed()} == {s.id for s in self.snapshots}

    def listed(self):
        return self.server.must("GET", "/snapshots?limit=100")

    def drop_unanswered(self):
        """Snapshots that were asked for and never answered may be there, at once or later. Nobody wants them."""
        for name in {id_of(e) for e in self.listed()} - {s.id for s in self.snapshots}:
            self.unanswered -= 1
            assert self.unanswered >= 0, f"{name}: whose is it?"
            assert self.delete_snapshot(name) == 204

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
        assert answer.status != 404 or answer.json.get("reason"), f"{s}: {answer.raw}"
        if answer.status == 404 or "in no row" in answer.json["message"]:
            wait_for(lambda: any(e["id"] == s.id for e in self.lost()), f"{s} is in the list of what is lost", 30, 0.2)
        return False

    def check_told(self, s, *words):
        """It is not there now; the answer has these words, and doctor says it, too."""
        answer = self.ask(s)
        assert not answer.box, f"{s} is there, which cannot be"
        text = answer.raw.decode()
        assert answer.status >= 400 and all(word in text for word in words), f"{s}: {answer.status} {text}, not {words}"
        self.check_doctor(s, answer)

    def check_doctor(self, s, answer):
        """It says what is lost and why. What is in folders is counted by a thread, so it may take a moment."""
        reason = answer.json.get("reason")
        if reason == "base_lost":
            wanted = [("templates", s.template)]
        elif reason == "files_missing":
            wanted = [("saved", "are not there")]
        elif answer.status == 404:
            wanted = [("vms", "of another installation")]
        elif "in no row" in answer.json["message"]:
            wanted = [("saved", "are set aside")]
        else:
            wanted = [("saved", s.id), ("journal", s.id), ("templates", s.template)]

        def is_told():
            found = self.doctor()
            return any(word in found.get(check, "") for check, word in wanted)

        wait_for(is_told, f"doctor says {wanted}: the answer about {s} is {answer.raw}", 30, 0.2)

    def check_running(self):
        """It goes on in the same machine."""
        assert self.see(self.runs) == self.runs["seen"], "what runs is another"
        assert self.server.vm_pid(self.runs) == self.runs["pid"]

    def check_all(self):
        self.check_files()
        self.check_rows()
        for s in self.saved:
            self.check_whole(s)
        self.check_running()

    # --- what an operator has ---

    def hotcell(self, *words):
        return subprocess.run([build_dir() / "src/cli/hotcell", "--socket", self.server.admin_socket, *words],
                              capture_output=True, text=True, check=False, timeout=ASK_SECONDS)

    def doctor(self):
        """What it finds wrong."""
        found = json.loads(self.hotcell("--json", "doctor").stdout)
        return {c["check"]: c["found"] for c in found if c["verdict"] != "ok"}

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
        """For another day; node is stopped."""
        self.journals.append(self.place())
        with contextlib.closing(sqlite3.connect(self.server.data / "journal.db")) as here, \
                contextlib.closing(sqlite3.connect(self.journals[-1])) as there:
            here.backup(there)
        for path in self.server.data.glob("journal.db*"):
            self.own(path)

    def rebuild(self):
        """What it says; all that is saved must be in it. One that ran has no description, which is 3."""
        program = build_dir() / "src/node/hotcell-node"
        done = subprocess.run([program, "--rebuild", self.server.base / "node.conf"], capture_output=True, text=True,
                              check=False, timeout=ASK_SECONDS)
        assert done.returncode in (0, 3), done
        return done.stdout

    def check_rebuilt(self, said):
        """Besides, there may be what a fork was made of, which goes; check_rows() sees that nobody is shown it."""
        lines = said.splitlines()
        assert "; 0 could not be read" in lines[-1], said
        for s in self.saved:
            assert f"{s.kind} {s.id}" in lines, (str(s), said)

    def rebuild_journal(self):
        """As docs/operations.md says. Node is stopped before, and runs afterwards."""
        self.server.kill("node")
        self.move_journal()
        self.check_rebuilt(self.rebuild())
        self.copy_journal()
        self.start()

    def part_with_running(self):
        """After a journal was lost: its disk was set aside, or a reason is said. Or it goes on. It was never saved."""
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
            assert answer.status in (404, 503), (answer.status, answer.raw)
            # a journal that knows no more of it than that it was being made: nobody was told of it then
            unborn = f"{name} ends: not finished when node ended"
            wait_for(lambda: answer.json.get("reason") or any(e["id"] == name for e in self.lost()) or
                     unborn in self.server.daemons["node"].log(),
                     f"the disk of {name} is set aside, or a reason is said", 30, 0.1)
        self.runs = None

    def settle_lost(self):
        """What is ours is brought back, what nobody was told is saved goes."""
        mine = {s.id for s in self.saved}
        for entry in self.lost():
            if entry["id"] in mine:
                assert entry["described"], entry
                self.restore_lost(entry["id"])
        for entry in self.lost():
            done = self.hotcell("lost", "drop", entry["id"])
            assert done.returncode == 0, (entry, done)

    def restore_lost(self, name):
        """As an operator does: what it was made of first, if that is lost, too."""
        done = self.hotcell("lost", "restore", name)
        below = re.search(r"the snapshot it was made of, (\w+), is not there: restore it first", done.stderr)
        if below:
            self.restore_lost(below.group(1))
            done = self.hotcell("lost", "restore", name)
        gone = "nothing lost has the id" in done.stderr  # it was brought back for another
        assert done.returncode == 0 or gone, (name, done)

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


def id_of(snapshot):
    return snapshot["snapshotID"].split(":")[0]


def without_answer(ask, *args):
    """A request that may meet a daemon that dies; None: no answer."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        return ask(*args)
    return None
