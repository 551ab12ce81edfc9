"""test_density.py - many sandboxes alive at once: each answers, and none costs much memory.

HOTCELL_ALIVE is how many (100); the long suite asks for 500.
"""

import collections
import os
import pathlib
import re
import statistics
import time

from engine import Engine, available_kib

ALIVE = int(os.environ.get("HOTCELL_ALIVE", "100"))
IDLE_MB_MAX = 25
CGROUPS = pathlib.Path("/sys/fs/cgroup")
PRIMED = 3  # sandboxes made and stopped before counting, so that every cache is warm
SETTLE_SECONDS = 3
TRIES = 3  # the host's memory is what others take meanwhile, too


def print_breakdown(pid):
    """What is private to one QEMU, by what it is, in MB."""
    parts, name = collections.Counter(), None
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        head = re.match(r"[0-9a-f]+-[0-9a-f]+ (\S+) \S+ \S+ \S+ *(.*)", line)
        if head:
            mode, path = head.groups()
            name = ("guest memory" if path == "/memory" else
                    "QEMU's heap" if path == "[heap]" else
                    "QEMU's programs and libraries" if path.startswith("/") else
                    "translated guest code" if "x" in mode else "other anonymous")
        elif line.startswith("Private_Dirty:"):
            parts[name] += int(line.split()[1]) * 1024 / 1e6
    print("  of one: " + ", ".join(f"{k} {v:.1f}" for k, v in parts.most_common()))


def charged_mb(pid):
    """What the VM's control group is charged with, the kernel's part included."""
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        path = line.split(":", 2)[2].lstrip("/")
        for file in (CGROUPS / "memory" / path / "memory.usage_in_bytes", CGROUPS / path / "memory.current"):
            if path and file.exists():
                return int(file.read_text()) / 1e6
    raise AssertionError(f"no control group of process {pid} counts memory")


def fill(engine):
    """ALIVE sandboxes, each answering: what each costs the host, in MB."""
    before = available_kib()
    begun = time.monotonic()
    boxes = engine.create_many(ALIVE, checkHealth=False)  # all are asked below
    took = time.monotonic() - begun
    time.sleep(SETTLE_SECONDS)  # what the guests do after they were given their identity
    used_mb = (before - available_kib()) * 1024 / 1e6 / ALIVE
    charged = statistics.mean(charged_mb(box["pid"]) for box in boxes)
    answers = [engine.driver.submit("health", sandbox=box["sandbox"]) for box in boxes]
    for answer in answers:
        answer.wait()
    assert len({box["machine_id"] for box in boxes}) == ALIVE
    assert len({box["uid"] for box in boxes}) == ALIVE
    print(f"\n{ALIVE} alive, {used_mb:.1f} MB each (limit {IDLE_MB_MAX}; their groups are charged {charged:.1f}), "
          f"{ALIVE / took:.1f} created per second, 8 at once")
    print_breakdown(boxes[-1]["pid"])
    return used_mb, boxes


def test_sandboxes_alive_at_once():
    with Engine(vms_max=ALIVE + 16) as engine:
        for box in engine.create_many(PRIMED):
            engine.stop(box)
        for left in reversed(range(TRIES)):
            used_mb, boxes = fill(engine)
            if used_mb <= IDLE_MB_MAX or not left:
                break
            for box in boxes:
                engine.stop(box)
        assert used_mb <= IDLE_MB_MAX
