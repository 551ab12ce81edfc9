"""test_density.py - many sandboxes alive at once: each answers, and none costs much memory.

HOTCELL_ALIVE is how many (100); the long suite asks for 500.
"""

import collections
import os
import pathlib
import re
import time

from engine import Engine, available_kib

ALIVE = int(os.environ.get("HOTCELL_ALIVE", "100"))
IDLE_MB_MAX = 25
# The target is not reached under emulation yet: about 11 MB of each process is guest code that QEMU
# has translated, which does not exist with KVM. Until the restored guest executes less, this only
# keeps it from getting worse. docs/specification.md has the breakdown.
EMULATED_MB_MAX = 28
PRIMED = 3  # sandboxes made and stopped before counting, so that every cache is warm
SETTLE_SECONDS = 3


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


def test_sandboxes_alive_at_once():
    with Engine(vms_max=ALIVE + 16) as engine:
        for box in engine.create_many(PRIMED):
            engine.stop(box)
        before = available_kib()
        begun = time.monotonic()
        boxes = engine.create_many(ALIVE, checkHealth=False)  # all are asked below
        took = time.monotonic() - begun
        time.sleep(SETTLE_SECONDS)  # what the guests do after they were given their identity
        used_mb = (before - available_kib()) * 1024 / 1e6 / ALIVE
        answers = [engine.driver.submit("health", sandbox=box["sandbox"]) for box in boxes]
        for answer in answers:
            answer.wait()
        assert len({box["machine_id"] for box in boxes}) == ALIVE
        assert len({box["uid"] for box in boxes}) == ALIVE
        emulated = engine.driver.facts["emulated"]
        limit = EMULATED_MB_MAX if emulated else IDLE_MB_MAX
        print(f"\n{ALIVE} alive, {used_mb:.1f} MB each (target {IDLE_MB_MAX}, limit here {limit}), "
              f"{ALIVE / took:.1f} created per second, 8 at once")
        print_breakdown(boxes[-1]["pid"])
        assert used_mb <= limit
