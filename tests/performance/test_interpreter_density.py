"""test_interpreter_density.py - many idle sandboxes of the code interpreter: what each costs the host, and of what that is made.

HOTCELL_ALIVE (10) is how many; the long suite asks for 50. In each of them one line of Python has run, so that it is not a
copy that nobody ever used.
"""

import collections
import concurrent.futures
import os
import pathlib
import time

from engine import artefact, available_kib
from interpreter_server import interpreter_server
from interpreter_support import InterpreterClient
from test_density import charged_mb, print_breakdown

ALIVE = int(os.environ.get("HOTCELL_ALIVE", "10"))
IDLE_MB_MAX = 120
AT_ONCE = 2
SETTLE_SECONDS = 10  # of nothing, before it is looked


def processes(server):
    """{pid of QEMU: what its maps say of shared and private memory, in MB}"""
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if server.warden.uid_base <= process.stat().st_uid < server.warden.uid_base + server.warden.uids \
                    and "qemu" in os.readlink(process / "exe"):
                found[int(process.name)] = rollup(process)
        except OSError:
            continue  # it ended meanwhile
    return found


def rollup(process):
    parts = collections.Counter()
    for line in (process / "smaps_rollup").read_text().splitlines()[1:]:
        name, value = line.split()[:2]
        parts[name.rstrip(":")] = int(value) * 1024 / 1e6
    return parts


def used(box):
    """What the guest itself says, in MB."""
    lines = dict(line.split(":") for line in box.command("cat /proc/meminfo").splitlines())
    return {name: int(lines[name].split()[0]) * 1024 / 1e6 for name in ("MemTotal", "MemAvailable", "AnonPages", "Cached")}


def mean(rows, name):
    return sum(r[name] for r in rows) / len(rows)


def test_idle_sandboxes_of_the_code_interpreter():
    with interpreter_server(node={"pool": 0, "pool_each_max": 0}) as server, \
            InterpreterClient(server, artefact("sdks")) as client:
        client.create().run("1")  # what all share is in the page cache from now on
        before, there = available_kib(), set(processes(server))

        def one(_):
            box = client.create()
            assert box.run("1 + 1").text == "2"
            return box

        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            boxes = list(pool.map(one, range(ALIVE)))
        time.sleep(SETTLE_SECONDS)
        used_mb = (before - available_kib()) * 1024 / 1e6 / ALIVE
        vms = {pid: parts for pid, parts in processes(server).items() if pid not in there}
        assert len(vms) == ALIVE
        rows = list(vms.values())
        charged = sum(charged_mb(pid) for pid in vms) / ALIVE
        print(f"\n{ALIVE} alive, {used_mb:.1f} MB each (limit {IDLE_MB_MAX}; their groups are charged {charged:.1f}); of a QEMU's "
              f"{mean(rows, 'Rss'):.1f} MB {mean(rows, 'Private_Dirty'):.1f} are its own, {mean(rows, 'Rss') - mean(rows, 'Private_Dirty'):.1f} "
              "are files that all share, the template's memory among them")
        print_breakdown(next(iter(vms)))
        print("  the guest says: " + ", ".join(f"{k} {v:.0f}" for k, v in used(boxes[-1]).items()))
        assert used_mb <= IDLE_MB_MAX
