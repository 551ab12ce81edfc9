"""test_pause_cost.py - what a pause and a resume cost, beside bare programs that do no more than they must.

The guest stands still from the moment QEMU is asked to stop it until all that changed is copied (its processes freeze
before, while it runs: that is in the time until durable); the caller waits until all of it is durable (bare_write.c:
the same number of bytes copied, written and synced); a resume is a restore and the pages (bare.c: a restore). Both of a
pair follow each other, so that what else the machine does falls on both alike. Node's log has the steps.

HOTCELL_PAUSE_PAIRS (10) pairs, for each of HOTCELL_CHANGED_MIB (0,64) that the guest writes.
"""

import json
import os
import re
import statistics
import subprocess
import time

import pytest

from server import Server, wait_for
from test_create import Client
from test_restore_latency import Bare
from warden import build_dir

PAIRS = int(os.environ.get("HOTCELL_PAUSE_PAIRS", "10"))
CHANGED_MIB = [int(n) for n in os.environ.get("HOTCELL_CHANGED_MIB", "0,64").split(",")]
PATIENCE = 600
TRIES = 5  # a shared machine has bad moments
WARM = 1
STOPPED_MS, STOPPED_MS_PER_MB, STOPPED_ROOM = 5, 0.3, 1.1
DURABLE_RATIO, DURABLE_MS = 1.2, 20
RESUME_RATIO = 1.15
# What is enforced, as multiples of these targets: two to four times what an emulated guest needs on a quiet machine.
# This finds what gets much worse; docs/specification.md says how far the targets are.
ENFORCED = {"stopped": 3, "durable": 4.5, "resumed": 1.8}
# What of the targets is a time and no multiple of a bare program's is, on a machine that is busy with others, longer by
# as much as a bare restore of an emulated guest takes longer than it did at a load of 10.
CALM_RESTORE_MS = 250

PAUSED = re.compile(r"(\w+) is paused: (?P<bytes>\d+) bytes in (?P<file>\d+), stood still (?P<stopped>\d+) us "
                    r"until copied, copier (?P<copier>\d+) us; begun after (?P<begun>\d+) us, copier there "
                    r"(?P<there>\d+), stop (?P<stop>\d+), copied (?P<copied>\d+), synced (?P<synced>\d+), "
                    r"kept (?P<kept>\d+), durable (?P<durable>\d+)")
RESUMED = re.compile(r"(\w+) is resumed: started after (?P<started>\d+) us, applied (?P<applied>\d+), "
                     r"loaded (?P<loaded>\d+), cont (?P<cont>\d+), identity (?P<identity>\d+), noted (?P<noted>\d+)")


@pytest.fixture(scope="module")
def server():
    with Server(node={"slots": 4}) as s:
        yield s


class BareWrite:
    """tests/performance/bare_write.c: one measurement for each number it is sent."""

    def __init__(self, path):
        self.process = subprocess.Popen([build_dir() / "tests/performance/bare_write", path],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def write(self, size):
        self.process.stdin.write(f"{size}\n")
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(30) == 0


def timed(call, *args):
    begun = time.monotonic()
    call(*args)
    return (time.monotonic() - begun) * 1000


def said(server, box, pattern, count):
    """What node wrote in its log about it the last time, in milliseconds."""
    found = [m for m in pattern.finditer(server.daemons["node"].log()) if m[1] == box["sandboxID"]]
    assert len(found) == count, (pattern, len(found))
    return {name: int(value) / 1000 for name, value in found[-1].groupdict().items()}


def figures(row, pause, write, resume, bare):
    """All of one pair in milliseconds: what it took, what it should have, and the parts."""
    mb, floor = row["bytes"] / 1000, write["total"] / 1000
    slow, stopped_target = max(bare / CALM_RESTORE_MS, 1), (STOPPED_MS + STOPPED_MS_PER_MB * mb) * STOPPED_ROOM
    return {"slow": slow, "stopped_busy": stopped_target * slow,
            "durable_busy": DURABLE_RATIO * floor + DURABLE_MS * slow, "resumed_busy": RESUME_RATIO * bare, "mb": mb,
            "stopped": row["stopped"], "durable": pause, "resumed": resume, "floor": floor, "bare": bare,
            "floor_write": write["written"] / 1000, "floor_sync": write["synced"] / 1000,
            "stopped_target": stopped_target,
            "durable_target": DURABLE_RATIO * floor + DURABLE_MS, "resumed_target": RESUME_RATIO * bare,
            "copier": row["copier"], "state": row["stopped"] - row["copier"], "begun": row["begun"],
            "there": row["there"], "freeze": row["stop"] - row["begun"], "sync": row["synced"] - row["copied"],
            "rename": max(row["kept"] - row["synced"], 0), "row": row["durable"] - max(row["synced"], row["kept"]),
            "answer": pause - row["durable"], "start": row["started"], "apply": row["applied"] - row["started"],
            "load": row["loaded"] - row["applied"], "cont": row["cont"] - row["loaded"],
            "agent": row["identity"] - row["cont"], "answered": resume - row["identity"]}


class Measured:
    """One sandbox, paused and resumed; and the bare programs."""

    def __init__(self, server, changed_mib):
        self.server, self.client, self.rows = server, Client(server), []
        self.box = server.create()
        self.name = f"{changed_mib} MiB written"
        if changed_mib:
            server.run(self.box, f"head -c {changed_mib << 20} /dev/urandom > /dev/shm/changed")
        template = next(path.name for path in (server.warden.state / "templates").iterdir())
        self.bare, self.bare_write = Bare(server.warden, template), BareWrite(server.base / "node/bare")

    def pair(self, n):
        at = f"/sandboxes/{self.box['sandboxID']}"
        pause = timed(self.client.ask, "POST", f"{at}/pause")
        row = said(self.server, self.box, PAUSED, n + 1)
        write = self.bare_write.write(round(row["bytes"] * 1000))
        # a resume that comes at once waits for the end of the VM that was paused: not what is measured here
        vm = self.server.warden.state / "vms" / self.box["sandboxID"]
        wait_for(lambda: not vm.exists(), "its VM is gone", PATIENCE, 0.02)
        wait_for(lambda: self.server.node_status()["slotsReady"] >= 1, "a slot is ready", PATIENCE, 0.02)
        resume = timed(self.client.ask, "POST", f"{at}/connect", {"timeout": 3600})
        row.update(said(self.server, self.box, RESUMED, n + 1))
        bare = self.bare.restore()
        return figures(row, pause, write, resume, bare["total"] / 1000)

    def close(self):
        self.bare.close()
        self.bare_write.close()
        self.client.kill(self.box)


def show(name, m):
    """Prints, and returns what each took as a multiple of its target."""
    def parts(**of):
        return ", ".join(f"{text.replace('_', ' ')} {m[key]:.1f}" for text, key in of.items())

    print(f"\n{name}: {m['mb']:.1f} MB changed; medians of {PAIRS} interleaved pairs, ms; "
          f"the machine is {m['slow']:.1f} times as slow as at a load of 10")
    print(f"  stood still {m['stopped']:.1f} (target {m['stopped_target']:.1f}): "
          + parts(stop_and_device_state="state", copier="copier"))
    print(f"  durable {m['durable']:.1f} (target {m['durable_target']:.1f}; bare {m['floor']:.1f}: copy and write "
          f"{m['floor_write']:.1f}, fdatasync {m['floor_sync']:.1f}): "
          + parts(files_and_socket="begun", copier_there_after="there", freeze_and_first_pass="freeze",
                  stood_still="stopped", synced_and_compared="sync",
                  disk_and_names_later="rename", row="row", answer="answer"))
    print(f"  resumed {m['resumed']:.1f} (target {m['resumed_target']:.1f}; bare {m['bare']:.1f}): "
          + parts(started="start", QEMU_is_up_and_pages_applied="apply", loaded="load", row_and_cont="cont",
                  agent="agent", row_and_answer="answered"))
    return [m[what] / m[f"{what}_busy"] for what in ENFORCED]


@pytest.mark.parametrize("changed_mib", CHANGED_MIB)
def test_a_pause_and_a_resume(server, changed_mib):
    measured = Measured(server, changed_mib)
    n = 0
    try:
        for _ in range(TRIES):
            rows = []
            for _ in range(WARM + PAIRS):
                rows.append(measured.pair(n))
                n += 1
            medians = {name: statistics.median(row[name] for row in rows[WARM:]) for name in rows[0]}
            times = show(measured.name, medians)
            print("  of the targets, by how slow it is: " + ", ".join(
                f"{what} {got:.2f} (limit {most})" for got, (what, most) in zip(times, ENFORCED.items())))
            good = all(got <= most for got, most in zip(times, ENFORCED.values()))
            if good:
                break
    finally:
        measured.close()
    assert good
