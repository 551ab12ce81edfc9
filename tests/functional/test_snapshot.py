"""test_snapshot.py - snapshots and forks through the whole server: copies are equal and yet themselves.

HOTCELL_FORK_COUNT (4) and HOTCELL_FORK_MIB (10) set how many copies at once and how much memory was changed,
HOTCELL_SNAPSHOT_DISK_MIB (32) how much of a disk was written. Figures are printed.
"""

import concurrent.futures
import os
import re
import time
import urllib.parse

import pytest

from copies import own_mib, ran_at
from server import Server, wait_for

COUNT = int(os.environ.get("HOTCELL_FORK_COUNT", "4"))
MIB = int(os.environ.get("HOTCELL_FORK_MIB", "10"))
DISK_MIB = int(os.environ.get("HOTCELL_SNAPSHOT_DISK_MIB", "32"))
FORK_SECONDS = 300
LAYERS_MAX = 2  # of a disk, before its layers become one

# Holds random bytes in its memory, counts, and answers in a file when a file asks.
HOLDER = r"""
import hashlib, os, time
held = bytearray(os.urandom(%d << 20))
first = hashlib.sha256(held).hexdigest()
os.chdir("/tmp")
open("holder.new", "w").write(first)
os.rename("holder.new", "holder-ready")
count = 0
while True:
    count += 1
    if os.path.exists("ask"):
        os.remove("ask")
        open("told.new", "w").write(f"{os.getpid()} {count} {hashlib.sha256(held).hexdigest()}")
        os.rename("told.new", "told")
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def server():
    with Server(node={"pool": 0, "starts_max": 4, "layers_max": LAYERS_MAX}) as s:
        yield s


@pytest.fixture
def box(server):
    b = server.create(metadata={"who": "source"}, envVars={"FROM": "create"}, secure=True)
    server.run(b, "true")
    yield b
    server.delete(b)


def target_of(box, what=""):
    return f"/sandboxes/{box['sandboxID']}{what}"


def take(server, box, **body):
    return server.must("POST", target_of(box, "/snapshots"), body, seconds=FORK_SECONDS)


def drop(server, snapshot_id):
    return server.api("DELETE", f"/templates/{urllib.parse.quote(snapshot_id, safe='')}")


def fork(server, box, **body):
    return server.must("POST", target_of(box, "/fork"), body, seconds=FORK_SECONDS)


def hold(server, box):
    """A process with random memory; its hash."""
    server.write(box, "/tmp/holder.py", (HOLDER % MIB).encode())
    server.run(box, "setsid python3 /tmp/holder.py >/dev/null 2>&1 </dev/null & "
                    "while [ ! -e /tmp/holder-ready ]; do sleep 0.1; done")
    return server.read(box, "/tmp/holder-ready").decode()


def told(server, box):
    """pid, count, hash: as that process says now."""
    server.run(box, "rm -f /tmp/told; touch /tmp/ask; while [ ! -e /tmp/told ]; do sleep 0.1; done")
    pid, count, digest = server.read(box, "/tmp/told").decode().split()
    return int(pid), int(count), digest


def who(server, box):
    """What must be its own."""
    return server.run(box, "cat /etc/machine-id; hostname; cat /proc/sys/kernel/random/boot_id; "
                           "head -c 16 /dev/urandom | od -An -tx1; cat /proc/sys/kernel/random/uuid").split("\n")


def snapshots_of(server):
    return server.admin("GET", "/admin/snapshots").json


def folders(server):
    return sorted(os.listdir(server.base / "node/snapshots"))


def test_a_copy_has_all_its_source_had_and_leaves_it_alone(server, box):
    held = hold(server, box)
    data = os.urandom(300_000)
    server.write(box, "/home/user/data", data)
    before = told(server, box)
    begun = time.monotonic()
    snapshot = take(server, box)
    took = time.monotonic() - begun
    assert snapshot["snapshotID"].endswith(":default") and snapshot["names"] == []
    after = told(server, box)
    assert after[0] == before[0] and after[1] > before[1] and after[2] == held
    server.write(box, "/home/user/data", b"changed later")

    begun = time.monotonic()
    copy = server.create(templateID=snapshot["snapshotID"], secure=True)
    created = time.monotonic() - begun
    print(f"\nsnapshot {took * 1000:.0f} ms, create from it {created * 1000:.0f} ms, {MIB} MiB changed")
    assert copy["templateID"] == snapshot["snapshotID"].split(":")[0]
    assert server.read(copy, "/home/user/data") == data
    pid, count, digest = told(server, copy)
    assert pid == before[0] and digest == held and count > before[1]
    mine, its = who(server, box), who(server, copy)
    assert not set(mine[:5]) & set(its[:5]), (mine, its)
    assert its[1] == copy["sandboxID"] and mine[1] == box["sandboxID"]
    assert copy["envdAccessToken"] != box["envdAccessToken"]
    assert server.agent({**copy, "envdAccessToken": box["envdAccessToken"]}, "GET",
                        "/files?path=/etc/hostname&username=user").status == 401
    assert server.read(box, "/home/user/data") == b"changed later"

    # it is in use, running or paused
    assert drop(server, snapshot["snapshotID"]).status == 400
    server.write(copy, "/home/user/more", b"of the copy")
    assert server.api("POST", target_of(copy, "/pause")).status == 204
    assert drop(server, snapshot["snapshotID"]).status == 400
    server.must("POST", target_of(copy, "/connect"), {"timeout": 300})
    again = told(server, copy)
    assert again[0] == pid and again[1] > count and again[2] == held
    assert server.read(copy, "/home/user/more") == b"of the copy" and server.read(copy, "/home/user/data") == data

    # a snapshot of a copy stands by itself
    second = take(server, copy)
    assert server.delete(copy) == 204
    assert drop(server, snapshot["snapshotID"]).status == 204
    assert drop(server, snapshot["snapshotID"]).status == 404
    assert server.api("POST", "/sandboxes", {"templateID": snapshot["snapshotID"]}).status == 404
    third = server.create(templateID=second["snapshotID"])
    assert server.read(third, "/home/user/data") == data and server.read(third, "/home/user/more") == b"of the copy"
    assert told(server, third)[::2] == (pid, held)
    assert server.api("POST", target_of(third, "/pause"), {"memory": False}).status == 204
    server.must("POST", target_of(third, "/connect"), {"timeout": 300})
    assert server.read(third, "/home/user/data") == data
    assert server.delete(third) == 204
    assert drop(server, second["snapshotID"]).status == 204
    assert snapshots_of(server) == []
    wait_for(lambda: folders(server) == [], "no folder is left")


def test_names(server, box):
    slug = "test"
    first = take(server, box, name="Work")
    assert first == {"snapshotID": f"{slug}/work:default", "names": [f"{slug}/work"]}
    tagged = take(server, box, name="work:v1.2")
    assert tagged["snapshotID"] == f"{slug}/work:v1.2"
    listed = server.must("GET", f"/snapshots?sandboxID={box['sandboxID']}")
    assert [s["snapshotID"] for s in listed] == [tagged["snapshotID"], first["snapshotID"]]
    assert server.must("GET", "/snapshots?name=work:v1.2") == [tagged]
    assert server.must("GET", "/snapshots?name=nothing") == []
    page = server.api("GET", "/snapshots?limit=1")
    assert page.json == [tagged]
    token = page.headers["x-next-token"]
    page = server.api("GET", f"/snapshots?limit=1&nextToken={token}")
    assert page.json == [first] and "x-next-token" not in page.headers
    assert server.api("GET", "/snapshots?limit=0").status == 400

    server.write(box, "/home/user/second", b"x")
    assert take(server, box, name="work") == first  # the name is the new one's
    assert len(server.must("GET", "/snapshots")) == 2
    for name in ("work", "work:default", f"{slug}/work", f"{slug}/work:default"):
        copy = server.create(templateID=name)
        assert server.read(copy, "/home/user/second") == b"x"
        assert copy["alias"] == "work"
        assert server.delete(copy) == 204
    for name in ("work:other", "other/work", "nothing"):
        assert server.api("POST", "/sandboxes", {"templateID": name}).status == 404, name
    _, other = server.new_team("stranger")
    assert server.api("POST", "/sandboxes", {"templateID": "work"}, key=other).status == 404
    assert server.must("GET", "/snapshots", key=other) == []
    assert server.api("POST", target_of(box, "/snapshots"), {"name": "a b"}).status == 400
    for one in (first, tagged):
        assert drop(server, one["snapshotID"]).status == 204
    wait_for(lambda: folders(server) == [], "no folder is left")


def test_forks_are_all_there_and_all_different(server, box):
    held = hold(server, box)
    end = server.must("GET", target_of(box))["endAt"]
    begun = time.time()
    answers = fork(server, box, count=COUNT, timeout=600)
    copies = [a["sandbox"] for a in answers]
    assert len(copies) == COUNT
    times = sorted(ran_at(server, c) - begun for c in copies)
    print(f"\n{COUNT} forks with {MIB} MiB changed: the first after {times[0] * 1000:.0f} ms, the last after "
          f"{times[-1] * 1000:.0f} ms, {sum(own_mib(server, c) for c in copies) / COUNT:.1f} MiB of its own each")
    details = [server.must("GET", target_of(c)) for c in copies]
    assert all(d["metadata"] == {"who": "source"} for d in details)
    own = [who(server, b) for b in [box, *copies]]
    for what in zip(*own):
        assert len(set(what)) == COUNT + 1, what
    assert len({c["envdAccessToken"] for c in [box, *copies]}) == COUNT + 1
    for c in copies:
        assert told(server, c)[2] == held
        assert server.run(c, "echo $FROM") == "create"
    assert told(server, box)[2] == held
    assert server.must("GET", target_of(box))["endAt"] == end
    assert server.must("GET", "/snapshots") == []  # nobody sees what they were made of
    assert len(folders(server)) == 1
    for c in copies:
        assert server.delete(c) == 204
    wait_for(lambda: folders(server) == [], "it went with the last of them")


def stood_still_us(server, box):
    """Of each copy of it, as node says."""
    return [int(us) for us in re.findall(rf"{box['sandboxID']} was copied, stood still for (\d+) us",
                                         server.daemons["node"].log())]


def test_layers_become_one(server, box):
    """Snapshots of copies of snapshots: no disk has more layers than it may, none loses what any of them wrote."""
    layers, now, taken = [], box, []
    for generation in range(LAYERS_MAX + 2):
        server.run(now, f"head -c 2M /dev/urandom > /home/user/of{generation}; rm -f /home/user/gone; "
                        f"[ {generation} = 0 ] || rm /home/user/all; head -c 3M /dev/urandom > /home/user/all; sync")
        want = server.run(now, "cat /home/user/of* /home/user/all | sha256sum")
        taken.append(take(server, now)["snapshotID"])
        [row] = server.admin("GET", f"/admin/snapshots?name={taken[-1].split(':')[0]}").json
        layers.append(row["layers"])
        copy = server.create(templateID=taken[-1])
        server.run(copy, "echo 3 | tee /proc/sys/vm/drop_caches >/dev/null 2>&1 || true")
        assert server.run(copy, "cat /home/user/of* /home/user/all | sha256sum") == want
        # from the disk alone: nothing of it can come from memory
        assert server.api("POST", target_of(copy, "/pause"), {"memory": False}).status == 204
        server.must("POST", target_of(copy, "/connect"), {"timeout": 600})
        assert server.run(copy, "cat /home/user/of* /home/user/all | sha256sum") == want
        if now is not box:
            assert server.delete(now) == 204
        now = copy
    assert layers == [*range(1, LAYERS_MAX + 1), 1, 2], layers
    assert server.delete(now) == 204
    for snapshot in taken:
        assert drop(server, snapshot).status == 204
    wait_for(lambda: folders(server) == [], "no folder is left")


def test_it_ends_or_is_paused_while_its_disk_is_copied(server, box):
    server.run(box, f"head -c {DISK_MIB}M /dev/urandom > /home/user/much; sync")
    want = server.run(box, "sha256sum < /home/user/much")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        taking = pool.submit(take, server, box)
        wait_for(lambda: stood_still_us(server, box), "it goes on", 60, 0.001)
        assert server.api("POST", target_of(box, "/pause")).status == 204
        snapshot = taking.result()["snapshotID"]
        copy = server.create(templateID=snapshot)
        assert server.run(copy, "sha256sum < /home/user/much") == want
        server.must("POST", target_of(box, "/connect"), {"timeout": 600})
        assert server.run(box, "sha256sum < /home/user/much") == want

        taking = pool.submit(server.api, "POST", target_of(copy, "/snapshots"), {}, seconds=FORK_SECONDS)
        wait_for(lambda: stood_still_us(server, copy), "it goes on", 60, 0.001)
        assert server.delete(copy) == 204
        assert taking.result().status in (201, 404)  # it may have been in time
    for s in server.must("GET", "/snapshots"):
        assert drop(server, s["snapshotID"]).status == 204
    wait_for(lambda: folders(server) == [], "no folder is left")


# Past the guest's page cache, which is memory and would be copied as such.
WRITE = """python3 - <<'END'
import mmap, os
piece = mmap.mmap(-1, 1 << 20)
fd = os.open("/home/user/much", os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
for i in range(%d):
    piece[:] = os.urandom(1 << 10) * (1 << 10)
    os.write(fd, piece)
os.fsync(fd)
END"""


def test_how_long_it_stands_still(server, box):
    """The disk is copied behind it: it makes no difference how much was written."""
    for written in (1, DISK_MIB):
        server.run(box, WRITE % written, FORK_SECONDS)
        begun = time.monotonic()
        snapshot = take(server, box)["snapshotID"]
        took = time.monotonic() - begun
        copy = server.create(templateID=snapshot)
        last = "stat -c %s /home/user/much; tail -c 1M /home/user/much | sha256sum"
        assert server.run(copy, last) == server.run(box, last)
        assert server.delete(copy) == 204 and drop(server, snapshot).status == 204
        print(f"\n{written} MiB written to its disk: stood still for {stood_still_us(server, box)[-1] / 1000:.1f} ms, "
              f"snapshot in {took * 1000:.0f} ms")
    assert len(stood_still_us(server, box)) == 2


def test_what_cannot_be_forked(server, box):
    assert server.api("POST", target_of(box, "/fork"), {"count": 0}).status == 400
    assert server.api("POST", target_of(box, "/fork"), {"count": 101}).status == 400
    assert server.api("POST", "/sandboxes/inothing/fork", {}).status == 404
    assert server.api("POST", "/sandboxes/inothing/snapshots", {}).status == 404
    assert server.api("POST", target_of(box, "/pause")).status == 204
    assert server.api("POST", target_of(box, "/fork"), {}).status == 409
    assert server.api("POST", target_of(box, "/snapshots"), {}).status == 409


def test_a_paused_one_is_copied_when_that_is_wanted(server, box):
    held = hold(server, box)
    before = told(server, box)
    assert server.api("POST", target_of(box, "/pause")).status == 204
    [copy] = [a["sandbox"] for a in fork(server, box, timeout=600, allowPaused=True)]
    assert server.must("GET", target_of(box))["state"] == "paused"
    pid, count, digest = told(server, copy)
    assert pid == before[0] and count > before[1] and digest == held
    assert who(server, copy)[1] == copy["sandboxID"]
    snapshot = take(server, box, allowPaused=True)["snapshotID"]
    server.must("POST", target_of(box, "/connect"), {"timeout": 300})
    assert told(server, box)[::2] == (pid, held)
    second = server.create(templateID=snapshot)
    assert told(server, second)[::2] == (pid, held)
    for b in (copy, second):
        assert server.delete(b) == 204
    assert drop(server, snapshot).status == 204
    assert server.api("POST", target_of(box, "/pause"), {"memory": False}).status == 204
    assert server.api("POST", target_of(box, "/fork"), {"allowPaused": True}).status == 409


STEPS = ["snapshot.copied", "snapshot.disk", "snapshot.synced", "snapshot.renamed", "snapshot.row", "fork.snapshot", "fork.child"]


@pytest.mark.parametrize("step", STEPS)
def test_node_dies_meanwhile(server, step):
    """Whole or gone, and the source goes on."""
    server.restart("node", die_at=step)
    server.wait_up()
    server.wait_template()
    box = server.create()
    server.write(box, "/home/user/kept", step.encode())
    try:
        if step.startswith("fork"):
            server.api("POST", target_of(box, "/fork"), {"count": 2, "timeout": 600}, seconds=5)
        else:
            server.api("POST", target_of(box, "/snapshots"), {"name": "work"}, seconds=5)
    except OSError:
        pass
    server.daemons["node"].wait_dead()
    server.restart("node", die_at="")
    server.wait_up()
    server.wait_template()
    assert server.read(box, "/home/user/kept") == step.encode()
    wait_for(lambda: server.run(box, "echo alive") == "alive", "it goes on")
    known = {s["snapshotID"] for s in snapshots_of(server)}
    others = [b for b in server.ids() if b != box["sandboxID"]]
    if not others and not known:
        wait_for(lambda: folders(server) == [], "nothing is left")
    for s in server.must("GET", "/snapshots"):
        copy = server.create(templateID=s["snapshotID"])
        assert server.read(copy, "/home/user/kept") == step.encode()
        assert server.delete(copy) == 204
        assert drop(server, s["snapshotID"]).status == 204
    for b in others + [box["sandboxID"]]:
        assert server.api("DELETE", f"/sandboxes/{b}").status in (204, 404)
    wait_for(lambda: folders(server) == [], "nothing is left")
