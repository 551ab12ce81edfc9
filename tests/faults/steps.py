"""steps.py - the named steps of the daemons, read from their sources, and the operations of node that pass them.

A step that is in the source and in no operation here, or the other way round, fails a test: whoever adds one says what
leads to it, and test_node_faults.py lets node die there. With HOTCELL_FAULTS set each operation is tried at each of its
steps, else those that pass the same ones as another at some of them.
"""

import os
import pathlib
import re

ALL = "HOTCELL_FAULTS" in os.environ  # else of what repeats another operation's steps every third
SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src"


def steps_of(folder):
    """The named steps of a daemon, but for those of builds."""
    return [name for name in every_step_of(folder) if not name.startswith("build.")]


def build_steps():
    """Those of builds, which test_build_deaths.py leads node to."""
    return [name for name in every_step_of("node") if name.startswith("build.")]


def every_step_of(folder):
    found = {name for path in (SOURCES / folder).rglob("*.c")
             for call in re.findall(r'\bstep\(([^;]*"[^;]*)\);', path.read_text())
             for name in re.findall(r'"([\w.]+)"', call)}
    shared = {name for name in found if "." not in name}  # STEP_OF: on the way of each of these
    ways = [(way, name) for name in shared for way in ("create", "pool")]
    ways += [("resume", name) for name in shared & {"slot", "restore"}]  # it has a row and files
    return sorted(found - shared | {f"{way}.{name}" for way, name in ways})


def named(way, names):
    return [f"{way}.{name}" for name in names.split()]


CREATE = named("create", "journal files slot restore identity running answer")
POOL = named("pool", "journal files slot restore ready")
KILL = named("kill", "journal slot stop files row answer")
PAUSE = named("pause", "asked copier copied synced renamed row answer stop")
RESUME = named("resume", "slot restore applied waking identity row answer")
SNAPSHOT = named("snapshot", "copied disk synced renamed row")
FORK = named("fork", "snapshot child")
FORGET = named("forget", "row")

# Each is a way of test_node_faults.py to lead node to these steps.
OPERATIONS = {
    "create": CREATE,
    "create from a snapshot": CREATE,
    "fill the pool": POOL,
    "kill": KILL,
    "kill a paused one": named("kill", "journal files row answer"),
    "deadline": KILL,
    "pause": PAUSE,
    "pause the disk alone": named("pause", "asked copied synced row"),
    "pause at the deadline": PAUSE,
    "resume": RESUME,
    "resume the disk alone": named("resume", "restore waking identity row"),
    "snapshot": SNAPSHOT,
    "snapshot of a paused one": SNAPSHOT[1:],  # nothing is copied behind it
    "fork": SNAPSHOT + FORK,
    "forget a snapshot": FORGET,
    "fill the pool of a snapshot": POOL,
    "forget a snapshot with a pool": named("kill", "slot stop files row") + FORGET,
}
REPEATS = {"create from a snapshot", "fill the pool of a snapshot", "forget a snapshot with a pool", "deadline",
           "pause at the deadline", "snapshot of a paused one"}


def steps_to_try(operation):
    steps = OPERATIONS[operation]
    return steps[1::3] if operation in REPEATS and not ALL else steps
