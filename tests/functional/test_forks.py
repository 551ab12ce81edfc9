"""test_forks.py - many copies of a running sandbox at once: each is reached, each is itself, the parent goes on.

HOTCELL_FORKS (16) is how many at once, HOTCELL_FORKS_MIB (10,200) how much memory was changed. Printed: when the
first and the last copy run, and what they take of the host's memory.

A copy's processes are the parent's, to the last byte: what a process made of chance before the fork is the same in
all of them. Python's `random` is such a thing, and so is any generator of numbers inside a process. What the kernel
gives (getrandom, /dev/urandom, and with it `secrets`, `uuid4`, `random.SystemRandom`) is each copy's own.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import time

import pytest

from copies import own_mib, ran_at
from engine import available_kib
from server import Server, wait_for

FORKS = int(os.environ.get("HOTCELL_FORKS", "16"))
SIZES = [int(mib) for mib in os.environ.get("HOTCELL_FORKS_MIB", "10,200").split(",")]
FORK_SECONDS = 1800
AT_ONCE = 4

# Holds random bytes, counts, has drawn from Python's `random`; answers in a file when a file asks. Of every page it
# held some bytes are looked at: all of them, emulated, in many sandboxes at once, would take minutes.
HOLDER = r"""
import json, os, random, secrets, time, uuid, zlib
piece = os.urandom(1 << 20)
held = bytearray().join(bytes([i & 255]) + piece[1:] for i in range(%d))
for at in range(0, len(held), 4096):
    held[at:at + 4] = (at >> 12).to_bytes(4, "big")
digest = lambda: zlib.crc32(bytes(held[::128]))
first = random.random()
os.chdir("/tmp")
def write(name, what):
    with open(name + ".new", "w") as f:
        f.write(json.dumps(what))
    os.rename(name + ".new", name)
write("holder-ready", digest())
count = 0
while True:
    count += 1
    if os.path.exists("ask"):
        os.remove("ask")
        write("told", {"pid": os.getpid(), "count": count, "held": digest(), "first": first,
                       "random": random.random(), "getrandom": os.getrandom(16).hex(),
                       "secrets": secrets.token_hex(16), "uuid4": str(uuid.uuid4()),
                       "system": random.SystemRandom().random()})
    time.sleep(0.1)
"""
OF_THE_KERNEL = ("getrandom", "secrets", "uuid4", "system")  # in a process that was running
WHO = ("machine-id", "hostname", "boot_id", "uuid", "urandom", "file")
ASK_WHO = ("cat /etc/machine-id; hostname; cat /proc/sys/kernel/random/boot_id /proc/sys/kernel/random/uuid; "
           "head -c 16 /dev/urandom | od -An -tx1; cat /home/user/file")


@pytest.fixture(scope="module")
def server():
    with Server(node={"pool": 0, "starts_max": 4}) as s:
        yield s


def hold(server, box, mib):
    server.write(box, "/tmp/holder.py", (HOLDER % mib).encode())
    server.run(box, "setsid python3 /tmp/holder.py >/dev/null 2>&1 </dev/null & "
                    "for i in $(seq 3000); do [ -e /tmp/holder-ready ] && exit; sleep 0.1; done; exit 1", FORK_SECONDS)
    return json.loads(server.read(box, "/tmp/holder-ready"))


def told(server, box):
    server.run(box, "rm -f /tmp/told; touch /tmp/ask; "
                    "for i in $(seq 3000); do [ -e /tmp/told ] && exit; sleep 0.1; done; exit 1", FORK_SECONDS)
    return json.loads(server.read(box, "/tmp/told"))


def ask(server, box):
    """All it says of itself."""
    return {**told(server, box), **dict(zip(WHO, server.run(box, ASK_WHO, FORK_SECONDS).split("\n"), strict=True))}


def memory_inode(server, box):
    """Of the file that its guest's memory is a private mapping of."""
    maps = pathlib.Path(f"/proc/{server.vm_pid(box)}/maps").read_text()
    return {int(inode) for inode in re.findall(r"^\S+ rw-p \S+ \S+ (\d+) +/memory", maps, re.M)}


def folders(server):
    return sorted(os.listdir(server.base / "node/snapshots"))


def why(server):
    """What keeps the one snapshot there is, as an operator is told."""
    [snapshot] = server.admin("GET", "/admin/snapshots").json
    [same] = server.admin("GET", f"/admin/snapshots?name={snapshot['snapshotID']}").json
    assert snapshot == same and snapshot["hidden"]
    return snapshot["why"]


def each(do, boxes):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(do, boxes))


def fork(server, box):
    """The copies, and a line about what they took."""
    before, begun = available_kib(), time.time()
    answers = server.must("POST", f"/sandboxes/{box['sandboxID']}/fork", {"count": FORKS, "timeout": 3600},
                          seconds=FORK_SECONDS)
    host = (before - available_kib()) / 1024
    assert [a for a in answers if "sandbox" not in a] == [] and len(answers) == FORKS
    copies = [a["sandbox"] for a in answers]
    times = sorted(ran_at(server, c) - begun for c in copies)
    own = each(lambda c: own_mib(server, c), copies)
    return copies, (f"the first after {times[0]:.2f} s, the last after {times[-1]:.2f} s; {sum(own) / FORKS:.1f} MiB of "
                    f"its own each, {max(own):.1f} at most; the host had {host:.0f} MiB less available")


def check_shared(server, copies):
    """One memory file, read by all."""
    [name] = folders(server)
    memory = os.stat(server.base / "node/snapshots" / name / "memory")
    assert {frozenset(memory_inode(server, c)) for c in copies} == {frozenset([memory.st_ino])}
    return memory.st_blocks * 512 / (1 << 20)


def check_different(server, everybody, answers):
    for what in ("machine-id", "hostname", "boot_id", "urandom", "uuid", *OF_THE_KERNEL):
        seen = [a[what] for a in answers]
        assert len(set(seen)) == len(answers), (what, seen)
    assert len({b["envdAccessToken"] for b in everybody}) == len(everybody)
    assert len({b["sandboxID"] for b in everybody}) == len(everybody)
    assert [a["hostname"] for a in answers] == [b["sandboxID"] for b in everybody]
    stranger, *others = everybody
    for b in others:  # another's token is nobody's
        said = server.agent({**b, "envdAccessToken": stranger["envdAccessToken"]}, "GET",
                            "/files?path=/etc/hostname&username=user")
        assert said.status == 401


@pytest.mark.parametrize("mib", SIZES)
def test_all_are_reached_all_are_different(server, mib):
    box = server.create(secure=True, metadata={"who": "parent"})
    server.write(box, "/home/user/file", b"of the parent")
    held = hold(server, box, mib)
    copies, took = fork(server, box)
    shared = check_shared(server, copies)
    print(f"\n{FORKS} forks, {mib} MiB changed: {took}; {shared:.0f} MiB in the one memory file")

    answers = each(lambda b: ask(server, b), [box, *copies])
    check_different(server, [box, *copies], answers)
    # a process that was running: the same memory, the same `random`
    for same in ("pid", "held", "first", "random", "file"):
        assert len({a[same] for a in answers}) == 1, (same, [a[same] for a in answers])
    assert answers[0]["held"] == held

    # the parent goes on; what one writes is nobody else's
    each(lambda c: server.write(c, "/home/user/file", c["sandboxID"].encode()), copies)
    assert server.read(box, "/home/user/file") == b"of the parent"
    again = told(server, box)
    assert again["pid"] == answers[0]["pid"] and again["count"] > answers[0]["count"] and again["held"] == held
    assert again["random"] != answers[0]["random"]
    details = server.must("GET", f"/sandboxes/{box['sandboxID']}")
    assert details["state"] == "running" and details["metadata"] == {"who": "parent"}
    assert each(lambda c: server.read(c, "/home/user/file").decode(), copies) == [c["sandboxID"] for c in copies]

    # all of it is kept by the last of them, running or paused, and goes with it
    last = copies[-1]["sandboxID"]
    for c in copies[:-1]:
        assert server.delete(c) == 204
    assert len(folders(server)) == 1 and told(server, copies[-1])["held"] == held
    wait_for(lambda: why(server) == [f"sandbox {last}, made of it, runs"], "node says what keeps it")
    assert server.api("POST", f"/sandboxes/{last}/pause").status == 204
    wait_for(lambda: why(server) == [f"sandbox {last}, made of it, is paused"], "node says what keeps it")
    assert len(folders(server)) == 1
    assert server.delete(copies[-1]) == 204
    wait_for(lambda: folders(server) == [], "it went with the last of them")
    assert told(server, box)["held"] == held
    assert server.delete(box) == 204
