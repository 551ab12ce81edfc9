"""test_restore_latency.py - a restore through warden, beside a bare program that does the same.

Both begin with a network slot made before, use the same QEMU in the same jail, and end with the
agent's first answer after its identity. They take turns, so that what else the machine does falls
on both alike.
"""

import json
import os
import statistics
import subprocess

from engine import TEMPLATE, Engine
from warden import build_dir

PAIRS = int(os.environ.get("HOTCELL_PAIRS", "30"))
RATIO_MAX = 1.10
WARM = 2
STEPS = ("started", "greeting", "loaded", "cont", "clock", "identity", "health")


class Bare:
    """tests/performance/bare.c: one restore for each line it is sent."""

    def __init__(self, warden, template=TEMPLATE):
        self.process = subprocess.Popen(
            [build_dir() / "tests/performance/bare", warden.base / "warden.conf", template],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def restore(self):
        self.process.stdin.write("go\n")
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(30) == 0


def restore_through_warden(engine):
    engine.driver.call("slot")
    box = engine.create()
    engine.stop(box)
    steps = box["steps"]
    begin = steps["slot"]
    parts, last = {}, begin
    for name in STEPS:
        parts[name] = steps[name] - last
        last = steps[name]
    return {"total": steps["health"] - begin, **parts}


def medians(rows):
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


def show(name, row):
    parts = "  ".join(f"{k} {v / 1000:.1f}" for k, v in row.items() if k != "total")
    print(f"{name:8} {row['total'] / 1000:7.1f} ms   {parts}")


def test_a_restore_costs_little_more_than_a_bare_one():
    ours, bares = [], []
    with Engine() as engine:
        bare = Bare(engine.warden)
        for _ in range(WARM):
            restore_through_warden(engine)
            bare.restore()
        for _ in range(PAIRS):
            ours.append(restore_through_warden(engine))
            bares.append(bare.restore())
        bare.close()
    ratios = [a["total"] / b["total"] for a, b in zip(ours, bares)]
    print(f"\nmedians of {PAIRS} interleaved pairs, to the agent's first answer after identity:")
    show("hotcell", medians(ours))
    show("bare", medians(bares))
    ratio = medians(ours)["total"] / medians(bares)["total"]
    print(f"ratio of medians {ratio:.3f}, median of ratios {statistics.median(ratios):.3f} "
          f"(limit {RATIO_MAX})")
    assert ratio <= RATIO_MAX
