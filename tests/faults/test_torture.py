"""test_torture.py - whatever happens to a host, what was answered as saved is there to the byte, or the first answer
about it and `hotcell doctor` say what is lost and why; and nothing of it is deleted.

HOTCELL_ACTS (40) acts are drawn by HOTCELL_SEED, each kind at least once; each is a line of the output, so that one that
failed can be found again. The fault of an act is mended as docs/operations.md says; what it could have touched is looked
at after each, and all files and rows. Between acts sandboxes lead an ordinary life; what nothing has touched since long is
seen in the end. The oracle is oracle.py.

A bit flips while node is stopped, for it reads a template and a snapshot once in its life.
"""

import collections
import contextlib
import os
import random
import shutil
import sqlite3
import subprocess
import threading
import time

import pytest

from daemon import Daemon
from oracle import AGAIN_SECONDS, Oracle, data_of, without_answer
from server import DAEMONS, Server, wait_for

ACTS = int(os.environ.get("HOTCELL_ACTS", "40"))
SEED = int(os.environ.get("HOTCELL_SEED", "1"))
ALL_EVERY, LIVE_EVERY = 25, 2  # acts
LAST_SECONDS = 30  # for a node that cannot start to say so
SILENT_SECONDS = 3  # for one that cannot even be asked
FEW = (12, 100)    # descriptors


@pytest.fixture(scope="module")
def server():
    with Server(node={"pool": 0, "pool_each_max": 1, "pool_unused_s": 10}) as s:
        yield s


# --- ordinary life ---


def live(o):
    """One thing that clients do."""
    what = o.deal("cycle", "snapshot", "fork", "new")
    if what == "cycle":
        o.check_whole(o.chance.choice(o.paused))
    elif what == "snapshot":
        o.take_snapshot()
        for s in o.snapshots[:-2]:
            if not any(p.of is s for p in o.paused):
                o.forget(s)
    elif what == "fork":
        copies = o.server.must("POST", o.target(o.runs["sandboxID"], "/fork"), {"count": 1, "timeout": 3600})
        assert o.see(copies[0]["sandbox"]).splitlines()[:2] == o.runs["seen"].splitlines()[:2]
        assert o.server.delete(copies[0]["sandbox"]) == 204
    else:
        for s in [s for s in o.paused if not s.anchor]:
            o.forget(s)
        o.new_paused(of=o.chance.choice((None, o.snapshots[-1])))
    return what


# --- a daemon dies ---


def kill(o):
    """Any of them, in the middle of something at times."""
    first = o.deal(*DAEMONS)
    victims = [first, *o.chance.sample([d for d in DAEMONS if d != first], o.chance.choice((0, 0, 1, 3)))]
    amid = o.deal("nothing", "a pause", "a resume", "a snapshot")
    return f"{' '.join(victims)} amid {amid}" + KILLS_AMID[amid](o, victims)


def kill_amid(o, victims, ask, *args):
    """The answer, or None."""
    answers = []
    client = threading.Thread(target=lambda: answers.append(without_answer(ask, *args)))
    client.start()
    time.sleep(o.chance.uniform(0, 0.8))  # any instant
    o.server.kill(*victims)
    o.server.start(*victims)
    o.server.wait_up()
    client.join()
    return answers[0]


def kill_amid_nothing(o, victims):
    o.server.kill(*victims)
    if "node" in victims:
        o.copy_journal()
    o.server.start(*victims)
    o.server.wait_up()
    o.check_running()
    return ""


def kill_amid_pause(o, victims):
    """It runs or it is paused, as it was answered; and it is whole."""
    name = o.runs["sandboxID"]
    answer = kill_amid(o, victims, o.server.api, "POST", o.target(name, "/pause"), {})
    state = o.server.must("GET", o.target(name))["state"]
    assert not answer or answer.status != 204 or state == "paused", f"{name}: its pause was answered, and it is {state}"
    o.server.must("POST", o.target(name, "/connect"), {"timeout": 3600})
    o.runs["pid"] = o.server.vm_pid(o.runs)
    o.check_running()
    return f", answered {answer and answer.status}"


def kill_amid_resume(o, victims):
    s = o.chance.choice(o.paused)
    answer = kill_amid(o, victims, o.ask, s)
    o.check_whole(s)
    return f", answered {answer and answer.status}"


def kill_amid_snapshot(o, victims):
    """One that was answered is there."""
    answer = kill_amid(o, victims, o.ask_for_snapshot)
    o.check_running()
    if answer and answer.status == 201:
        o.check_whole(o.take_snapshot(answer))
    else:
        o.unanswered += 1
    return f", answered {answer and answer.status}"


KILLS_AMID = {"nothing": kill_amid_nothing, "a pause": kill_amid_pause, "a resume": kill_amid_resume,
              "a snapshot": kill_amid_snapshot}


# --- the journal ---


def journal_gone(o):
    how = o.deal("moved back", "made again", "made by the next node")
    o.server.kill("node")
    away = o.move_journal()
    if how == "moved back":
        for path in away.iterdir():
            path.rename(o.server.data / path.name)
    elif how == "made again":
        o.check_rebuilt(o.rebuild())
    o.start()
    if how == "moved back":
        o.check_running()
    else:
        o.after_rebuild()
    o.check_whole(o.chance.choice(o.saved))
    return how


def journal_of_yesterday(o):
    n = o.chance.randrange(len(o.journals))
    o.server.kill("node")
    o.move_journal()
    shutil.copy(o.journals[n], o.server.data / "journal.db")
    o.own(o.server.data / "journal.db")
    return f"copy {n} of {len(o.journals) - 1}: " + with_older_journal(o)


def flip_in_log(o):
    """From there on SQLite takes nothing of its log: the journal is one of before."""
    o.server.kill("node")
    path = o.server.data / "journal.db-wal"
    if not path.exists() or path.stat().st_size == 0:
        o.start()
        return "it is empty"
    Flip(o, path)
    return with_older_journal(o)


def with_older_journal(o):
    o.start()
    if o.chance.random() < 0.5:
        o.restart()  # what was set aside needs its template all the same
    asked = o.chance.sample(o.saved, 2)
    there = [o.first_answer(s) for s in asked]
    o.check_files()
    o.mend_journal()
    for s, was_there in zip(asked, there):
        if not was_there:
            o.check_whole(s)
    return ", ".join(f"{s} is {'there' if t else 'set aside'}" for s, t in zip(asked, there))


# --- a disk that is not mounted ---


def unmounted(o):
    name, how = o.deal("sandboxes", "snapshots"), o.deal("an empty folder", "no folder")
    at = o.server.data / name
    s = o.chance.choice(o.paused if name == "sandboxes" else o.snapshots)
    o.server.kill("node")
    away = at.rename(o.place())
    if how == "an empty folder":
        at.mkdir(mode=0o700)
        o.own(at)
    o.start()
    o.check_told(s, "files_missing", "mounted?")
    o.check_running()
    o.server.kill("node")
    at.rmdir()  # nobody made anything there
    away.rename(at)
    o.start()
    o.check_running()
    o.check_whole(s)
    return f"{name}: {how}, {s}"


# --- a bit flips ---


class Flip:
    """In a copy under its name: a file may be a link to one that others have."""

    def __init__(self, o, path):
        self.path, self.aside = path, o.place()
        path.rename(self.aside)
        subprocess.run(["cp", "--sparse=always", "--preserve=mode,ownership", self.aside, path], check=True)
        mode = path.stat().st_mode & 0o7777
        path.chmod(0o600)
        with open(path, "r+b") as f:
            start, end = o.chance.choice(list(data_of(f)))
            at = o.chance.randrange(start, end)
            byte = os.pread(f.fileno(), 1, at)[0]
            os.pwrite(f.fileno(), bytes([byte ^ 1 << o.chance.randrange(8)]), at)
        path.chmod(mode)

    def put_back(self):
        self.aside.replace(self.path)


def flip_in_sandbox(o):
    s = o.chance.choice(o.paused)
    name = o.deal("pages", "state", "disk", "row")
    o.server.kill("node")
    flip = Flip(o, o.folder(s) / name)
    o.start()
    if name == "row":  # its journal is whole
        o.check_whole(s)
        return f"row of {s}"
    o.check_told(s, "damaged")
    assert o.server.must("GET", o.target(s.id))["state"] == "paused"
    o.check_files(but=flip.path)
    flip.put_back()
    o.check_whole(s)
    return f"{name} of {s}"


def flip_in_row_without_journal(o):
    s = o.chance.choice(o.saved)
    o.server.kill("node")
    flip = Flip(o, o.folder(s) / "row")
    o.move_journal()
    said = o.rebuild()
    assert f"{s.id}: not brought back: its description is damaged" in said and "; 1 could not be read" in said, said
    flip.put_back()
    o.rebuild_journal()
    o.after_rebuild()
    o.check_whole(s)
    return f"row of {s}"


def flip_in_snapshot(o):
    name = o.deal("lowest layer", "memory", "state", "highest layer", "manifest", "row")
    s = o.layered() if name == "lowest layer" else o.chance.choice(o.snapshots)
    layers = sorted(f.name for f in o.folder(s).glob("layer*"))
    name = {"lowest layer": layers[0], "highest layer": layers[-1]}.get(name, name)
    o.server.kill("node")
    flip = Flip(o, o.folder(s) / name)
    o.start()
    if name in ("manifest", "row"):  # when it was made is in it, too
        o.first_answer(s)
    else:
        o.check_told(s, s.id, "damaged")
    o.check_files(but=flip.path)
    flip.put_back()
    o.restart()
    o.check_whole(s)
    return f"{name} of {s}"


def flip_in_template(o):
    s = o.chance.choice([s for s in o.paused if s.of is None])
    folder = o.templates / s.template
    name = o.deal(*(f.name for f in sorted(folder.iterdir())))
    o.server.kill("node")
    flip = Flip(o, folder / name)
    o.start()
    if name in ("memory", "disk"):
        o.check_told(s, "base_lost", s.template)
    else:  # it may need none of it
        o.first_answer(s)
    o.check_files(but=flip.path)
    o.server.wait_template()
    flip.put_back()
    o.restart()
    o.check_whole(s)
    return f"{name} of {s.template}"


def flip_in_journal(o):
    """Of its pages: what is in them is looked at when node starts, or told when something is to be written there."""
    o.server.kill("node")
    path = o.server.data / "journal.db"
    with contextlib.closing(sqlite3.connect(path)) as db:  # all of it is in one file
        db.execute("pragma wal_checkpoint(truncate)")
        size, = db.execute("pragma page_size").fetchone()
        roots = [row[0] for row in db.execute("select rootpage from sqlite_schema where rootpage > 0")]
    page = o.chance.choice([1, *roots])
    at = (page - 1) * size + (o.chance.randrange(16) if page == 1 else 0)
    with open(path, "r+b") as f:
        byte = os.pread(f.fileno(), 1, at)[0]
        os.pwrite(f.fileno(), bytes([byte ^ 1 << o.chance.randrange(8)]), at)
    for p in o.server.data.glob("journal.db*"):
        o.own(p)
    started = starts(o, "hotcell-node --rebuild")
    if started:  # SQLite finds no fault with the root of an index that holds nothing
        check_journal_fails(o)
    o.check_files()
    o.rebuild_journal()
    o.after_rebuild()
    o.check_whole(o.chance.choice(o.saved))
    return f"byte {at}, {'told' if started else 'refused'}"


def check_journal_fails(o):
    o.server.wait_up()
    without_answer(lambda: o.server.api("POST", o.target(o.runs["sandboxID"], "/snapshots"), {}, seconds=10))
    o.unanswered += 1
    without_answer(lambda: o.server.api("DELETE", o.target(o.runs["sandboxID"]), seconds=5))
    o.runs = None
    wait_for(lambda: "could not be written" in o.doctor().get("journal", ""), "doctor says it", LAST_SECONDS, 0.2)


def flip_in_installation(o):
    o.server.kill("node")
    flip = Flip(o, o.server.data / "installation")
    assert not starts(o, "remove")
    flip.path.unlink()  # as it says
    o.start()
    assert flip.path.read_bytes() == flip.aside.read_bytes()
    o.check_running()
    o.check_whole(o.chance.choice(o.saved))
    return "it was written again"


def starts(o, word):
    """False: node does not, and says what to do."""
    node = o.server.daemons["node"]
    before = len(node.log())
    node.launch()
    if opens(node, before, LAST_SECONDS):
        return True
    assert node.process.poll() == 1 and word in node.log()[before:], node.log()[before:]
    node.process = None
    return False


def opens(node, before, seconds):
    """Has node read its journal? False: it ended, or is silent. Its socket says less, and the gateway waits for it."""
    until = time.monotonic() + seconds
    while node.process.poll() is None and time.monotonic() < until:
        if "sandboxes in the journal" in node.log()[before:]:
            return True
        time.sleep(0.05)
    return False


# --- the template is not there ---


def template_gone(o):
    s = o.chance.choice([s for s in o.paused if s.of is None])
    folder = o.templates / s.template
    o.server.kill("node")
    away = folder.rename(o.place())
    o.start()
    o.check_told(s, "base_lost", s.template)
    o.check_files(but=folder)
    away.rename(folder)

    def is_back():
        answer = o.ask(s)
        assert answer.box or answer.json.get("reason") == "base_lost", (answer.status, answer.raw)
        return answer.box and answer

    o.look(s, wait_for(is_back, f"{s} is resumed", AGAIN_SECONDS, 0.5))
    return s.template


# --- calls that fail ---


@contextlib.contextmanager
def started_by(o, *words):
    """A node behind these words, which may end at once: does it serve? Then an ordinary one."""
    node = o.server.daemons["node"]
    before, node.where = node.where, [*node.where, *words]
    o.server.kill("node")
    try:
        said = len(node.log())
        o.server.launch("node")
        yield opens(node, said, SILENT_SECONDS) and o.server.node_is_up()
    finally:
        o.server.kill("node")
        node.where = before
    o.start()


def few_descriptors(o):
    limit, s = o.chance.randrange(*FEW), o.chance.choice(o.saved)
    with started_by(o, "prlimit", f"--nofile={limit}:{limit}") as served:
        answer = without_answer(o.ask, s) if served else None
        assert not answer or answer.box or (answer.status >= 400 and answer.json.get("message")), answer.raw
        if answer and answer.box and s.kind == "snapshot":
            without_answer(o.server.delete, answer.box)
    copies = o.server.ids() - {p.id for p in o.paused} - {o.runs["sandboxID"]}
    for name in copies if s.kind == "snapshot" else ():
        assert o.server.admin("DELETE", f"/admin/sandboxes/{name}").status in (204, 404)
    o.check_running()
    o.check_whole(s)
    return f"{limit}, {s}: " + (f"answered {answer and answer.status}" if served else "did not start")


def unreadable(o):
    """A disk that says EIO when this file is read."""
    s = o.chance.choice(o.saved)
    path = {"state": o.folder(s) / "state", "row": o.folder(s) / "row", "journal": o.server.data / "journal.db",
            "memory": o.templates / s.template / "memory",
            "disk": o.templates / s.template / "disk"}[o.deal("state", "row", "journal", "memory", "disk")]
    calls = "read,pread64"
    with started_by(o, "strace", "-D", "-f", "-qq", "-o", "/dev/null", "-P", path, "-e", f"trace={calls}",
                    "-e", f"inject={calls}:error=EIO") as served:
        there = served and o.first_answer(s)
    o.check_files()
    o.check_running()
    o.check_whole(s)
    return f"{path.parent.name}/{path.name}, {s}: " + ("there" if there else "told" if served else "did not start")


# --- mistakes ---


def another_node(o):
    """A second one. Its folder is its own."""
    folder = o.place()
    folder.mkdir(mode=0o755)
    o.own(folder)
    first = o.server.daemons["node"]
    return Daemon("node", folder, {**first.settings, "socket": folder / "node.sock"}, first.where)


def second_node(o):
    same = o.deal(True, False)
    second = another_node(o)
    if not same:
        second.settings["data_dir"] = second.base
    second.launch()
    try:
        if same:
            assert second.process.wait(LAST_SECONDS) == 1
            assert "another node uses" in second.log(), second.log()
        else:
            wait_for(lambda: "another installation" in second.log() or second.process.poll() is not None,
                     f"it has seen the others' VMs; {second.log()}", LAST_SECONDS, 0.05)
    finally:
        second.kill()
    o.server.wait_up()
    o.check_running()
    o.check_whole(o.chance.choice(o.saved))
    return "the same data_dir" if same else "another data_dir"


def wrong_data_dir(o):
    wrong = o.place()
    wrong.mkdir(mode=0o755)
    o.own(wrong)
    s = o.chance.choice(o.saved)
    o.server.kill("node")
    o.start(data_dir=wrong)
    wait_for(lambda: o.server.node_status().get("vmsOfOthers"), "it has seen what runs", LAST_SECONDS, 0.05)
    o.check_told(s)
    o.restart()
    o.check_running()
    o.check_whole(s)
    return str(s)


ACT_WEIGHTS = {kill: 4, journal_gone: 2, journal_of_yesterday: 2, unmounted: 2, flip_in_sandbox: 3,
               flip_in_row_without_journal: 1, flip_in_snapshot: 2, flip_in_template: 2, flip_in_journal: 1,
               flip_in_log: 1, flip_in_installation: 1, template_gone: 1, few_descriptors: 2, unreadable: 2,
               second_node: 2, wrong_data_dir: 1}


def drawn(chance, n):
    """Each of them at least once, if there are enough; the order is drawn, too."""
    acts = list(ACT_WEIGHTS)
    acts += chance.choices(acts, ACT_WEIGHTS.values(), k=max(0, n - len(acts)))
    chance.shuffle(acts)
    return acts[:n]


def test_what_was_saved_is_there_or_it_is_said(server):
    print(f"HOTCELL_SEED={SEED} HOTCELL_ACTS={ACTS}")
    try:
        torture(server)
    except BaseException:
        server.print_logs()
        raise


def torture(server):
    o, took = Oracle(server, random.Random(SEED)), collections.defaultdict(list)
    o.begin()
    for n, act in enumerate(drawn(random.Random(SEED), ACTS), 1):
        begun = time.monotonic()
        print(f"{n:3} {act.__name__}", end="", flush=True)
        print(f": {act(o)}", end="", flush=True)
        o.check_files()
        o.check_rows()
        if n % ALL_EVERY == 0:
            o.check_all()
        took[act.__name__].append(time.monotonic() - begun)
        print(f"; {took[act.__name__][-1]:.1f} s", flush=True)
        if n % LIVE_EVERY == 0:
            begun = time.monotonic()
            what = "life: " + live(o)
            took[what].append(time.monotonic() - begun)
            print(f"    {what}; {took[what][-1]:.1f} s", flush=True)
    o.check_all()
    o.end()
    for name, seconds in sorted(took.items(), key=lambda item: -sum(item[1])):
        print(f"{name:28} {len(seconds):3} times, {sum(seconds) / len(seconds):5.1f} s each, {sum(seconds):6.1f} s")
    assert ACTS < len(ACT_WEIGHTS) or all(act.__name__ in took for act in ACT_WEIGHTS), "an act was never drawn"
