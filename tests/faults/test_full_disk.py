"""test_full_disk.py - node's disk fills while sandboxes run, are paused, and are wanted.

node's data_dir is a small ext4 file system of the test's own. What takes the room is a file beside the sandboxes, so
that the test decides when there is some again.
"""

import hashlib
import os
import pathlib
import signal
import subprocess

import pytest

from server import ApiError, Server, wait_for
from warden import build_dir

DISK_MIB = int(os.environ.get("HOTCELL_FULL_DISK_MIB", "400"))
RESERVE_MIB = 16
WRITTEN_MIB = 48  # by a guest into a disk with less room than that
LEFT_MIB = 24     # for it to begin with
TRIMMED_MIB = 100
STALL_SECONDS = 180
MIB = 1 << 20


class SmallServer(Server):
    """Its sandboxes, snapshots and journal have a disk of their own, which is small."""

    def make_folders(self):
        super().make_folders()
        self.mount, image = self.base / "node", self.base / "disk.img"
        with open(image, "wb") as f:
            f.truncate(DISK_MIB * MIB)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096", "-E", "lazy_itable_init=0", image], check=True)
        subprocess.run(["mount", "-o", "loop,discard", image, self.mount], check=True)
        os.chown(self.mount, self.users["node"], self.users["node"])
        self.ballast = self.mount / "ballast"

    def free(self):
        v = os.statvfs(self.mount)
        return v.f_bavail * v.f_frsize

    def fill(self, leave_mib):
        """Until so much is left. What was freed a moment ago comes late: the journal of ext4."""
        os.sync()
        with open(self.ballast, "ab") as f:
            size = os.fstat(f.fileno()).st_size
            want = self.free() - leave_mib * MIB
            if want > 0:
                os.posix_fallocate(f.fileno(), size, want)
        assert self.free() <= (leave_mib + 1) * MIB

    def fill_all(self):
        """Not one block is left."""
        self.fill(1)
        with open(self.ballast, "ab", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(4096))
            except OSError:
                os.sync()
        assert self.free() < 4096

    def make_room(self):
        self.ballast.unlink(missing_ok=True)
        os.sync()

    def check_clean(self):
        self.make_room()
        super().check_clean()

    def remove(self):
        self.daemons["node"].kill()
        with_vms = super().remove
        subprocess.run(["umount", "-l", self.mount], check=True)
        with_vms()

    def hotcell(self, *words):
        command = [build_dir() / "src/cli/hotcell", "--socket", self.admin_socket, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout

    def disk_of(self, box):
        return self.mount / "sandboxes" / box["sandboxID"] / "disk"


@pytest.fixture(scope="module")
def server():
    with SmallServer(node={"disk_reserve_mib": RESERVE_MIB}) as s:
        yield s


@pytest.fixture
def boxes(server):
    made = []

    def make(**more):
        made.append(server.create(**more))
        return made[-1]

    yield make
    server.make_room()
    for box in made:
        server.delete(box)


def info(server, box):
    return server.must("GET", f"/sandboxes/{box['sandboxID']}")


def pause(server, box, **body):
    return server.must("POST", f"/sandboxes/{box['sandboxID']}/pause", body)


def connect(server, box, timeout=600):
    return server.must("POST", f"/sandboxes/{box['sandboxID']}/connect", {"timeout": timeout})


def refused(server, what, *args, **more):
    """It is for want of room: 507, and the message says where and how much."""
    with pytest.raises(ApiError) as failed:
        what(*args, **more)
    assert failed.value.status == 507, failed.value
    assert str(server.mount) in failed.value.body and "disk is full" in failed.value.body, failed.value.body
    return failed.value.body


def mark(server, box):
    """Something on its disk, something in its memory, and a process that is there afterwards."""
    name = box["sandboxID"]
    data = hashlib.sha256(name.encode()).digest() * 4096
    server.write(box, "/home/user/mark", data)
    server.run(box, f"echo {name} > /dev/shm/mark; setsid sleep 100000 > /dev/null 2>&1 & echo $! > /home/user/pid; sync")
    return data


def check_mark(server, box, data):
    assert server.read(box, "/home/user/mark") == data
    assert server.run(box, "cat /dev/shm/mark && kill -0 $(cat /home/user/pid)") == box["sandboxID"]


def begin_writing(server, box, mib=WRITTEN_MIB):
    """In the background, more than there is room for."""
    server.run(box, f"setsid sh -c 'head -c {mib}M /dev/urandom | tee /home/user/big | sha256sum > /home/user/sum; "
                    "sync; touch /home/user/done' > /dev/null 2>&1 &")


def wait_stalled(server, box):
    wait_for(lambda: info(server, box).get("stalled") == "disk_full", "it stands still", STALL_SECONDS, 0.25)


# --- nobody new, nobody harmed ------------------------------------------------------------------------


def test_on_a_full_disk_nothing_begins_and_nobody_is_harmed(server, boxes):
    runs, rests = boxes(), boxes()
    marks = {id(box): mark(server, box) for box in (runs, rests)}
    pause(server, rests)
    server.fill(RESERVE_MIB // 2)

    assert f"{RESERVE_MIB} are needed" in refused(server, server.create)
    refused(server, pause, server, runs)
    refused(server, pause, server, runs, memory=False)
    refused(server, server.must, "POST", f"/sandboxes/{runs['sandboxID']}/snapshots", {})
    refused(server, server.must, "POST", f"/sandboxes/{runs['sandboxID']}/fork", {"count": 2})
    assert info(server, runs)["state"] == "running" and info(server, rests)["state"] == "paused"
    check_mark(server, runs, marks[id(runs)])
    connect(server, rests)  # what is there needs no more room to run
    check_mark(server, rests, marks[id(rests)])
    assert server.leaks() == []
    assert [f.name for f in (server.mount / "sandboxes" / runs["sandboxID"]).iterdir()] == ["disk"]
    assert list((server.mount / "snapshots").iterdir()) == []

    server.make_room()
    third = boxes()
    for box in (runs, rests, third):
        data = marks.get(id(box)) or mark(server, box)
        pause(server, box)
        connect(server, box)
        check_mark(server, box, data)


def test_the_room_for_its_memory_is_looked_for_first(server, boxes):
    """More than the reserve is free, but not what this one would take."""
    box = boxes()
    data = mark(server, box)
    server.run(box, "head -c 64M /dev/urandom > /dev/shm/much")
    server.fill(RESERVE_MIB + 32)
    refused(server, pause, server, box)
    check_mark(server, box, data)
    server.make_room()
    pause(server, box)
    connect(server, box)
    check_mark(server, box, data)


# --- one that writes ----------------------------------------------------------------------------------


def test_a_writer_stands_still_says_so_and_goes_on(server, boxes):
    writer, other = boxes(), boxes()
    data = mark(server, other)
    server.fill(LEFT_MIB)
    begin_writing(server, writer)
    wait_stalled(server, writer)
    name = writer["sandboxID"]
    row = next(line for line in server.hotcell("ps").splitlines() if name in line)
    assert "stalled: disk_full" in row and "disk is full" in server.hotcell("why", name)
    logs = server.must("GET", f"/v2/sandboxes/{name}/logs")["logs"]
    assert any("disk is full" in entry["message"] for entry in logs), logs
    assert info(server, writer)["state"] == "running"
    assert "stalled" not in info(server, other)
    check_mark(server, other, data)
    refused(server, pause, server, writer)
    refused(server, server.create)

    server.make_room()
    wait_for(lambda: "stalled" not in info(server, writer), "it goes on", 60, 0.25)
    server.run(writer, "while ! test -e /home/user/done; do sleep 0.2; done")
    assert server.run(writer, "sha256sum < /home/user/big") == server.run(writer, "cat /home/user/sum")
    assert server.run(writer, "dmesg | grep -c 'I/O error' || :", user="root") == "0"
    pause(server, writer)
    connect(server, writer)
    assert server.run(writer, "sha256sum < /home/user/big") == server.run(writer, "cat /home/user/sum")


def test_a_writer_stands_still_for_the_next_node_too(server, boxes):
    writer = boxes()
    server.fill(LEFT_MIB)
    begin_writing(server, writer)
    wait_stalled(server, writer)
    server.restart("node")
    server.wait_up()
    wait_stalled(server, writer)
    server.make_room()
    server.run(writer, "while ! test -e /home/user/done; do sleep 0.2; done")
    assert server.run(writer, "sha256sum < /home/user/big") == server.run(writer, "cat /home/user/sum")


def test_what_it_holds_does_not_fit_when_its_disk_is_to_be_kept_alone(server, boxes):
    """The guest has written nothing back yet: it is told to, there is no room, and it is not lost."""
    box = boxes()
    data = mark(server, box)
    server.run(box, "sysctl -q -w vm.dirty_expire_centisecs=360000 vm.dirty_writeback_centisecs=0 "
                    "vm.dirty_background_ratio=90 vm.dirty_ratio=95", user="root")
    server.run(box, f"head -c {WRITTEN_MIB}M /dev/urandom > /home/user/held")
    server.fill(RESERVE_MIB + 8)
    refused(server, pause, server, box, memory=False)
    server.make_room()
    wait_for(lambda: "stalled" not in info(server, box), "it goes on", 60, 0.25)
    check_mark(server, box, data)
    server.run(box, "sync")
    assert server.run(box, "stat -c %s /home/user/held") == str(WRITTEN_MIB * MIB)


def test_no_room_until_its_time_is_over_is_its_own_reason(server, boxes):
    writer = boxes()
    server.fill(LEFT_MIB)
    begin_writing(server, writer)
    wait_stalled(server, writer)
    name = writer["sandboxID"]
    server.must("POST", f"/sandboxes/{name}/timeout", {"timeout": 1})
    wait_for(lambda: server.api("GET", f"/sandboxes/{name}").status == 404, "it ends", 60, 0.25)
    assert server.api("GET", f"/sandboxes/{name}").json["reason"] == "disk_full"
    assert "disk_full" in server.hotcell("why", name)


# --- node itself --------------------------------------------------------------------------------------


def test_not_one_block_is_left_and_every_end_is_noted(server, boxes):
    """The journal is on that disk, too: what happens is written, and found by the next node."""
    runs, rests, killed = boxes(), boxes(), boxes()
    marks = {id(box): mark(server, box) for box in (runs, rests)}
    pause(server, rests)
    server.fill_all()
    for how in (signal.SIGKILL, signal.SIGTERM):
        server.must("POST", f"/sandboxes/{runs['sandboxID']}/timeout", {"timeout": 3000})
        server.kill("node", how=how)
        (server.mount / "journal.db-shm").unlink()  # and what it took is gone to others
        server.fill_all()
        server.start("node")
        server.wait_up()
        server.wait_template()
        assert info(server, runs)["state"] == "running" and info(server, rests)["state"] == "paused"
    assert server.delete(killed) == 204
    assert server.api("GET", f"/sandboxes/{killed['sandboxID']}").json["reason"] == "killed"
    server.fill_all()
    connect(server, rests)
    for box in (runs, rests):
        check_mark(server, box, marks[id(box)])


# --- what a sandbox takes of it -----------------------------------------------------------------------


def blocks(server, box):
    return server.disk_of(box).stat().st_blocks * 512


def test_what_is_deleted_or_zero_takes_no_room(server, boxes):
    box = boxes()
    server.run(box, "fstrim / ; sync", user="root")
    before = blocks(server, box)
    server.run(box, f"head -c {TRIMMED_MIB}M /dev/urandom > /home/user/big; sync")
    full = blocks(server, box)
    assert full - before > TRIMMED_MIB * MIB * 0.9
    server.run(box, "rm /home/user/big; sync; fstrim /", user="root")
    wait_for(lambda: blocks(server, box) < before + TRIMMED_MIB * MIB * 0.2, "the host has its room again", 60)
    trimmed = blocks(server, box)
    server.run(box, f"head -c {TRIMMED_MIB}M /dev/zero > /home/user/zeros; sync")
    assert blocks(server, box) - trimmed < TRIMMED_MIB * MIB * 0.2
    assert server.run(box, "sha256sum < /home/user/zeros").split()[0] == \
        hashlib.sha256(bytes(TRIMMED_MIB * MIB)).hexdigest()


def test_no_more_than_its_size_however_often_it_writes(server, boxes):
    box = boxes()
    limits = pathlib.Path(f"/proc/{server.vm_pid(box)}/limits").read_text()
    size = info(server, box)["diskSizeMB"] * MIB
    (line,) = [text for text in limits.splitlines() if text.startswith("Max file size")]
    assert size <= int(line.split()[3]) <= size * 105 // 100 + 64 * MIB
    before = blocks(server, box)
    for _ in range(3):  # the same place on the disk again and again
        server.run(box, "head -c 16M /dev/urandom | dd of=/home/user/again bs=1M conv=notrunc,fsync iflag=fullblock status=none")
    assert blocks(server, box) - before < 32 * MIB
