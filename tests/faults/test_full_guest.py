"""test_full_guest.py - a guest that uses all of its memory is paused, copied and resumed within the limit of its group.

What the copier writes is charged to the VM's control group, where there is little left: it must not be the reason for
which the kernel ends the VM.
"""

import pathlib

import pytest

from server import Server

MEMORY_MIB = 512
LEFT_MIB = 110  # to the guest's own programs, which the agent keeps from all others
FILLER = r"""
import os, random, time, zlib
def available():
    return next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemAvailable")) >> 10
held = []
while available() > %d:
    held.append(bytearray(random.Random(len(held)).randbytes(64) * (1 << 14)))
def digest():
    sum = 0
    for piece in held:
        sum = zlib.crc32(piece, sum)
    return f"{len(held)} {sum:08x}"
open("/dev/shm/sum.new", "w").write(digest())
os.rename("/dev/shm/sum.new", "/dev/shm/sum")
while True:
    time.sleep(0.2)
    if os.path.exists("/dev/shm/again"):
        os.unlink("/dev/shm/again")
        open("/dev/shm/now.new", "w").write(digest())
        os.rename("/dev/shm/now.new", "/dev/shm/now")
""" % LEFT_MIB


@pytest.fixture(scope="module")
def server():
    with Server(node={"memory_mib": MEMORY_MIB}) as s:
        yield s


def group_of(server, box):
    """Where its memory is counted."""
    found = [g for g in server.warden.groups() if g.name == box["sandboxID"] and
             ((g / "memory.max_usage_in_bytes").exists() or (g / "memory.peak").exists())]
    return found[0] if found else None


def peak(group):
    for name in ("memory.peak", "memory.max_usage_in_bytes"):
        if (group / name).exists():
            limit = (group / ("memory.max" if name == "memory.peak" else "memory.limit_in_bytes")).read_text().strip()
            return f"{int((group / name).read_text()) >> 20} of {limit} bytes"
    return "?"


def kills(group):
    for name in ("memory.events", "memory.oom_control"):
        if (group / name).exists():
            return int(dict(line.split() for line in (group / name).read_text().splitlines()).get("oom_kill", 0))
    return 0


def test_a_full_guest_is_paused_copied_and_resumed(server):
    box = server.create()
    server.write(box, "/home/user/fill.py", FILLER.encode())
    server.run(box, "setsid python3 /home/user/fill.py > /dev/null 2>&1 &")
    server.run(box, "while ! test -e /dev/shm/sum; do sleep 0.5; done", 600)
    want = server.run(box, "cat /dev/shm/sum")
    target = f"/sandboxes/{box['sandboxID']}"

    def same():
        return server.run(box, "rm -f /dev/shm/now; touch /dev/shm/again; while ! test -e /dev/shm/now; do sleep 0.2; "
                               "done; cat /dev/shm/now", 600) == want

    assert same()
    for _ in range(2):
        group = group_of(server, box)
        server.must("POST", f"{target}/snapshots", {}, seconds=600)
        print(f"{want.split()[0]} MiB held; memory of the group after a copy: {group and peak(group)}")
        assert not group or kills(group) == 0
        assert same()
        server.must("POST", f"{target}/pause", {}, seconds=600)
        pages = pathlib.Path(server.base) / "node/sandboxes" / box["sandboxID"] / "pages"
        print(f"{pages.stat().st_size >> 20} MiB saved")
        server.must("POST", f"{target}/connect", {"timeout": 3600}, seconds=600)
        assert same()
    for snapshot in server.must("GET", "/snapshots"):
        server.must("DELETE", f"/templates/{snapshot['snapshotID']}")
    assert server.delete(box) == 204
