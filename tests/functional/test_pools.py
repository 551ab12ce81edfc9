"""test_pools.py - a pool for each snapshot that is used: creates are quicker, and nobody is woken before its time.

Emulated or not, figures are printed, and compared within one run only. HOTCELL_POOL_COPIES (20) sets how many
copies of one snapshot are compared with each other, HOTCELL_POOL_SNAPSHOTS (3) how many more share the budget.
"""

import concurrent.futures
import contextlib
import os
import pathlib
import re
import statistics
import time
import urllib.parse

import pytest

from page_cache import resident
from server import Server, wait_for

COPIES = int(os.environ.get("HOTCELL_POOL_COPIES", "20"))
SNAPSHOTS = int(os.environ.get("HOTCELL_POOL_SNAPSHOTS", "3"))
TURNS = 3
EACH_MAX, VMS, VM_MIB = 2, 4, 64
BUDGET_MIB = VMS * VM_MIB  # as long as none takes more than it is counted with
PATIENCE = 60
WAITED_S = 3  # in a pool, before it is looked whether anybody ran there
UNUSED_S = 3

# Says when it runs: a line every 20 ms, with the time.
TICKER = r"""
import time
out = open("/tmp/ticks", "w", buffering=1)
while True:
    out.write(f"{time.time():.3f}\n")
    time.sleep(0.02)
"""


@pytest.fixture(scope="module")
def server():
    with Server(node={"pool": 0, "starts_max": 2, "pool_each_max": EACH_MAX, "pool_unused_s": 3600,
                      "pool_memory_mib": BUDGET_MIB}) as s:
        yield s


@pytest.fixture(scope="module")
def source(server):
    box = server.create()
    server.write(box, "/tmp/ticker.py", TICKER.encode())
    server.run(box, "setsid python3 /tmp/ticker.py >/dev/null 2>&1 </dev/null & "
                    "while [ ! -s /tmp/ticks ]; do sleep 0.1; done")
    yield box
    server.delete(box)


@pytest.fixture(scope="module")
def snapshots(server, source):
    """Two of them, by id."""
    return [take(server, source, name) for name in ("first", "second")]


def take(server, box, name):
    made = server.must("POST", f"/sandboxes/{box['sandboxID']}/snapshots", {"name": name}, seconds=300)
    listed = server.admin("GET", "/admin/snapshots").json
    return next(s["snapshotID"] for s in listed if s["name"] == name and not s["hidden"]), made["snapshotID"]


def drop(server, name):
    return server.api("DELETE", f"/templates/{urllib.parse.quote(name, safe='')}")


def pools(server):
    """{template id: its pool}; the budget must hold whenever it is looked at."""
    status = server.node_status()
    assert status["poolMemoryMB"] <= status["poolMemoryMaxMB"] == BUDGET_MIB, status["pools"]
    return {pool["templateID"]: pool for pool in status["pools"]}


def ready(server, snapshot_id):
    return pools(server).get(snapshot_id, {"ready": 0})["ready"]


def wait_ready(server, *ids, count=1):
    for snapshot_id in ids:
        wait_for(lambda wanted=snapshot_id: ready(server, wanted) >= count, "its pool has a VM", PATIENCE, 0.02)


def mapped(inode):
    """Processes that have the file of that number mapped."""
    found = []
    for maps in pathlib.Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if any(line.split()[4] == str(inode) for line in maps.read_text().splitlines()):
                found.append(maps.parent.name)
    return found


def timed_create(server, template):
    begun = time.monotonic()
    box = server.create(templateID=template)
    return box, time.monotonic() - begun


def test_creates_are_quicker_once_pools_are_filled(server, snapshots):
    cold, warm, most = [], [], 0
    for _, name in snapshots:
        assert not ready(server, name)
        box, took = timed_create(server, name)
        cold.append(took)
        server.delete(box)
    for _ in range(TURNS):
        for snapshot_id, name in snapshots:
            wait_ready(server, snapshot_id)
            waiting = set(server.node_status()["pooledIDs"])
            box, took = timed_create(server, name)
            assert box["sandboxID"] in waiting, "it did not wait in a pool"
            assert server.run(box, "cat /etc/hostname").strip() == box["sandboxID"]
            warm.append(took)
            server.delete(box)
            most = max(most, server.node_status()["poolMemoryMB"])
    ratio = statistics.median(warm) / statistics.median(cold)
    print(f"\ncreates of two snapshots in turn: {statistics.median(cold) * 1000:.0f} ms without a pool, "
          f"{statistics.median(warm) * 1000:.0f} ms of one: {ratio:.2f}; pools took {most} of {BUDGET_MIB} MiB")
    assert ratio < 1


def test_nothing_of_a_snapshot_runs_before_somebody_has_it(server, snapshots):
    snapshot_id, name = snapshots[0]
    server.delete(server.create(templateID=name))
    wait_ready(server, snapshot_id)
    waiting = set(server.node_status()["pooledIDs"])
    since = time.time()
    wait_for(lambda: time.time() > since + WAITED_S, "it waited for a while", PATIENCE, 0.1)
    claimed = time.time()
    box = server.create(templateID=name)
    assert box["sandboxID"] in waiting
    count = "wc -l </tmp/ticks"
    first = int(server.run(box, count))
    wait_for(lambda: int(server.run(box, count)) > first, "it runs on", PATIENCE, 0.05)
    ticks = [float(line) for line in server.read(box, "/tmp/ticks").decode().split("\n")[:-1]]
    server.delete(box)
    early = [t for t in ticks if since < t < claimed - 0.05]  # the clocks of two machines
    late = [t for t in ticks if t >= claimed - 0.05]
    print(f"\nin {claimed - since:.1f} s in the pool its process wrote {len(early)} lines, then {len(late)}")
    assert not early and late


def test_copies_of_a_pool_share_nothing_that_must_be_their_own(server, snapshots):
    snapshot_id, name = snapshots[0]

    def who(box):
        said = server.run(box, "cat /etc/machine-id /etc/hostname /proc/sys/kernel/random/boot_id /proc/sys/kernel/random/uuid; "
                               "od -An -tx1 -N16 /dev/urandom", shell=("/bin/sh", "-c"))
        server.delete(box)
        return [box["sandboxID"], *said.strip().split("\n")]

    seen, pooled = [], 0
    with concurrent.futures.ThreadPoolExecutor(2) as asking:
        answers = []
        for _ in range(COPIES):
            wait_ready(server, snapshot_id)
            waiting = set(server.node_status()["pooledIDs"])
            box = server.create(templateID=name)
            pooled += box["sandboxID"] in waiting
            answers.append(asking.submit(who, box))
        seen = [answer.result() for answer in answers]
    for box_id, _, hostname, *_ in seen:
        assert hostname == box_id
    print(f"\n{pooled} of {COPIES} copies waited in a pool")
    assert pooled == COPIES
    for values in zip(*[own for own in seen]):
        assert len(set(values)) == COPIES, values


def of_pool(server, name):
    """A create: was its VM there already?"""
    wait_for(lambda: sum(p["ready"] for p in pools(server).values()) == VMS, "pools are full", PATIENCE, 0.02)
    waiting = set(server.node_status()["pooledIDs"])
    box = server.create(templateID=name)
    server.delete(box)
    return box["sandboxID"] in waiting


def test_pools_share_the_budget_by_their_use(server, source, snapshots):
    names = [take(server, source, f"many{n}") for n in range(SNAPSHOTS)]
    holders, late = [*snapshots, *names[:VMS - len(snapshots)]], names[VMS - len(snapshots):]
    for snapshot_id, name in holders:
        server.delete(server.create(templateID=name))
        wait_ready(server, snapshot_id)
    for _, name in late:  # used as much as some that have a VM: it stays theirs
        server.delete(server.create(templateID=name))
    wait_for(lambda: all(pools(server)[snapshot_id]["ready"] == 1 for snapshot_id, _ in holders), "one each", PATIENCE, 0.05)
    status, found = server.node_status(), pools(server)
    print(f"\n{status['poolMemoryMB']} of {BUDGET_MIB} MiB: " +
          ", ".join(f"{p['name']} {p['ready']}/{p['wanted']}" for p in found.values()))
    for snapshot_id, _ in late:
        assert not found[snapshot_id]["ready"] and found[snapshot_id]["wanted"]
    found = sum(of_pool(server, name) for _, name in [*holders, *late])
    print(f"{len(holders) + len(late)} in turn: {found} found a VM")
    assert found == VMS
    for _ in range(4):  # now it is used more than twice as much as the least used
        server.delete(server.create(templateID=late[-1][1]))
    wait_ready(server, late[-1][0])
    drop_all(server, dict(names))


def drop_all(server, left):
    """A pool keeps none of them: its VMs are gone when the answer comes."""
    while left:
        snapshot_id = wait_for(lambda: next((i for i in left if ready(server, i)), None), "one has a VM", PATIENCE, 0.05)
        folder = server.base / "node/snapshots" / snapshot_id
        inode = (folder / "memory").stat().st_ino
        assert mapped(inode)
        assert drop(server, left.pop(snapshot_id)).status == 204
        assert snapshot_id not in pools(server) and not mapped(inode)
        wait_for(lambda gone=folder: not gone.exists(), "its folder goes", PATIENCE, 0.05)


def test_a_snapshot_that_loses_its_name_loses_its_pool(server, source):
    old_id, name = take(server, source, "renamed")
    server.delete(server.create(templateID=name))
    wait_ready(server, old_id)
    new_id, _ = take(server, source, "renamed")
    wait_for(lambda: old_id not in {s["snapshotID"] for s in server.admin("GET", "/admin/snapshots").json},
             "nothing keeps it", PATIENCE, 0.05)
    box = server.create(templateID=name)
    assert box["templateID"] == new_id
    server.delete(box)
    assert drop(server, name).status == 204


def test_what_is_not_used_leaves_its_pool_and_the_page_cache(server, snapshots):
    snapshot_id, name = snapshots[1]
    memory = server.base / "node/snapshots" / snapshot_id / "memory"
    before = set(server.node_status()["pooledIDs"])
    server.kill("node")  # what it had pooled is nobody's, and ended by the next
    server.start("node", pool_unused_s=UNUSED_S)
    server.wait_up()
    wait_for(lambda: not before & {vm.name for vm in (server.warden.state / "vms").iterdir()}, "they are gone", PATIENCE, 0.1)
    server.wait_template()
    box = server.create(templateID=name)
    wait_ready(server, snapshot_id)
    used = resident(memory)
    server.delete(box)
    wait_for(lambda: snapshot_id not in pools(server), "its pool ends", PATIENCE, 0.1)
    wait_for(lambda: resident(memory) == 0, "its memory leaves the page cache", PATIENCE, 0.2)
    print(f"\nof its memory {used} pages were in the page cache, now {resident(memory)}")
    assert used > 100
    box = server.create(templateID=name)  # and it can be used again
    assert re.match(r"\d+", server.run(box, "wc -l </tmp/ticks").strip())
    server.delete(box)
