"""test_node_pause.py - a sandbox is paused, forgotten by all but its files, and resumed as it was."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from node import NodeError, NodeHost, wait_for
from node_client import value

TEAM = "team-one"
PAUSED, RUNNING = "NODE_PAUSED", "NODE_RUNNING"


@pytest.fixture(scope="module")
def host():
    with NodeHost(pool=0) as h:
        h.wait_template()
        yield h


@pytest.fixture
def box(host):
    b = host.client.create(TEAM, text={"metadata": {"k": "v"}, "envVars": {"FROM": "create"}})
    yield b
    kill(host, b)
    assert host.rows() == [] and not host.warden.list() and host.folders() == {}


def kill(host, b):
    try:
        host.client.kill(TEAM, b.id)
    except NodeError as e:
        assert e.code == "not_found"


def refused(code, call, *args, **kw):
    with pytest.raises(NodeError) as e:
        call(*args, **kw)
    assert e.value.code == code, e.value
    return e.value.msg


def state(host, b):
    return host.client.get(TEAM, b.id).sandbox.state


def lives(b):
    return round((b.end_ns - b.started_ns) / 10**9)


def answers(host, *tags):
    """For each: its reply, or the name of the error."""
    def one(tag):
        try:
            return host.client.receive(tag)
        except NodeError as e:
            return e.code

    return [one(t) for t in tags]


def send(host, verb, b, **more):
    return host.client.send(verb, team=TEAM, id=b.id, **more)


def mark(host, b):
    """Something on its disk, something in its memory, something that runs."""
    host.run(b, "head -c 300000 /dev/urandom > /root/on-disk; head -c 3000000 /dev/urandom > /dev/shm/in-memory;"
                " setsid sleep 100000 > /dev/null 2>&1 & echo $! > /root/pid")
    return see(host, b)


def see(host, b):
    return host.run(b, "md5sum < /root/on-disk; md5sum < /dev/shm/in-memory; cat /root/pid;"
                       " kill -0 $(cat /root/pid) && cat /proc/sys/kernel/random/boot_id /etc/machine-id; hostname")


def test_it_is_resumed_as_it_was(host, box):
    before = mark(host, box)
    paused = host.client.pause(TEAM, box.id).sandbox
    assert paused.state == value(PAUSED) and paused.generation == box.generation + 1
    assert abs(paused.end_ns - time.time_ns()) < 60 * 10**9
    host.client.wait_event(box.id)
    wait_for(lambda: not host.warden.list(), "its VM is gone")
    assert host.folders() == {box.id: ["disk", "pages", "row", "state"]}
    got = host.client.get(TEAM, box.id)
    assert got.sandbox.state == value(PAUSED) and got.text == {"metadata": {"k": "v"}}
    assert [s.state for s, _ in host.client.list(TEAM)] == [value(PAUSED)]
    refused("not_found", host.client.sockets, box.id)
    refused("exists", host.client.pause, TEAM, box.id)
    refused("exists", host.client.timeout, TEAM, box.id, 60)
    reply = host.client.connect(TEAM, box.id, 200)
    again = reply.sandbox
    assert reply.resumed == 1 and reply.text == {"metadata": {"k": "v"}} and again.state == value(RUNNING)
    assert again.access_token == box.access_token and again.generation == paused.generation
    assert again.started_ns > box.started_ns and lives(again) == 200
    assert see(host, again) == before
    assert abs(int(host.run(again, "date +%s")) - time.time()) < 3
    wait_for(lambda: host.folders() == {box.id: ["disk"]}, "what was saved is gone")
    assert refused("exists", host.client.resume, TEAM, box.id)
    assert host.client.connect(TEAM, box.id, 10).resumed == 0
    for _ in range(2):  # what was resumed can be paused
        host.client.pause(TEAM, box.id)
        assert host.client.resume(TEAM, box.id).resumed == 1
        assert see(host, again) == before


def test_its_disk_alone(host, box):
    before = mark(host, box).splitlines()
    host.client.pause(TEAM, box.id, flags=["NO_MEMORY"])
    wait_for(lambda: not host.warden.list(), "its VM is gone")
    assert host.folders() == {box.id: ["disk", "row"]}
    again = host.client.connect(TEAM, box.id, 300).sandbox
    after = host.run(again, "md5sum < /root/on-disk; cat /proc/sys/kernel/random/boot_id /etc/machine-id;"
                            " hostname; echo $FROM; ls /dev/shm").splitlines()
    assert after[0] == before[0]
    assert after[1] != before[3], "it has booted"
    assert after[2:] == [before[4], before[5], "create"]
    wait_for(lambda: host.folders() == {box.id: ["disk"]}, "it is not described any more")
    # and one that has its memory may be booted all the same
    host.client.pause(TEAM, box.id)
    third = host.client.connect(TEAM, box.id, 300, flags=["NO_MEMORY"]).sandbox
    assert host.run(third, "md5sum < /root/on-disk; cat /proc/sys/kernel/random/boot_id").split() \
        == [before[0].split()[0], "-", host.run(third, "cat /proc/sys/kernel/random/boot_id")]
    assert host.run(third, "cat /proc/sys/kernel/random/boot_id") != after[1]


def disk_sum(host, b):
    """As its row has it."""
    with contextlib.closing(sqlite3.connect(f"file:{host.base / 'node/journal.db'}?mode=ro", uri=True)) as db:
        return db.execute("select disk_crc from sandbox where id = ?", (b.id,)).fetchone()[0]


def flip(path, at):
    with open(path, "r+b") as f:
        byte = os.pread(f.fileno(), 1, at)[0]
        os.pwrite(f.fileno(), bytes([byte ^ 1]), at)


@contextlib.contextmanager
def slow_reads(host, path):
    """Of node's: whatever else happens meanwhile, reading this file is over last."""
    node = host.process.pid
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(node), "-P", path, "-e", "trace=pread64",
                               "-e", "inject=pread64:delay_enter=300000"])
    try:
        wait_for(lambda: f"TracerPid:\t{tracer.pid}\n" in Path(f"/proc/{node}/status").read_text(), "node is traced")
        yield
    finally:
        tracer.terminate()
        tracer.wait(30)


DISK_PLACES = {"its magic, by which QEMU knows it": 0, "whether QEMU should repair it": 79, "what it holds": -1}


def test_a_bit_of_its_disk_flips(host, box):
    """Nobody gets anything of it, nobody writes to it, and it is as it was when the bit is back."""
    before, disk = mark(host, box), host.base / "node/sandboxes" / box.id / "disk"
    host.client.pause(TEAM, box.id)
    was = disk.read_bytes()
    assert disk_sum(host, box) != 0
    for place, at in DISK_PLACES.items():
        at %= len(was)
        flip(disk, at)
        damaged = disk.read_bytes()
        asks = {"connect": (host.client.connect, (300,), []), "connect, read slowly": (host.client.connect, (300,), []),
                "copy": (host.client.snapshot, (), ["ALSO_PAUSED"]), "boot": (host.client.connect, (300,), ["NO_MEMORY"])}
        for name, (ask, args, flags) in asks.items():
            with slow_reads(host, disk) if "slowly" in name else contextlib.nullcontext():
                why = refused("internal", ask, TEAM, box.id, *args, flags=flags)
            assert "the saved disk is damaged" in why, (place, name, why)
            told = [(u["id"], u["why"]) for u in host.client.status()["unloaded"]]
            assert len(told) == 1 and told[0][0] == box.id and "disk is damaged" in told[0][1], (place, name, told)
            wait_for(lambda: state(host, box) == value(PAUSED) and not host.warden.list(), "it is paused")
            assert disk.read_bytes() == damaged, (place, name)
            assert host.folders() == {box.id: ["disk", "pages", "row", "state"]}
        flip(disk, at)
    assert disk.read_bytes() == was
    with slow_reads(host, disk):
        again = host.client.connect(TEAM, box.id, 300).sandbox
    assert see(host, again) == before and host.client.status()["unloaded"] == [] and disk_sum(host, box) == 0


def test_a_sum_is_never_of_a_disk_that_was_written_since(host, box):
    """The disk alone is kept, and boots: it is still paused in its row, for it may not come up."""
    mark(host, box)
    folder = host.base / "node/sandboxes" / box.id
    host.client.pause(TEAM, box.id, flags=["NO_MEMORY"])
    assert disk_sum(host, box) != 0
    written = (folder / "disk").stat().st_mtime_ns
    send(host, "CONNECT", box, timeout_s=300)
    wait_for(lambda: (folder / "disk").stat().st_mtime_ns != written, "its guest writes", 120, every=0.01)
    assert disk_sum(host, box) == 0 and "\ndisk_crc 1 0\n" in (folder / "row").read_text()
    host.kill_node()
    host.start_node()
    host.wait_template()
    assert state(host, box) == value(PAUSED)
    again = host.client.connect(TEAM, box.id, 300).sandbox
    assert host.run(again, "wc -c < /root/on-disk") == "300000"


def test_what_lacks_its_description_may_have_run_since(host, box):
    """As an older journal may say that it is paused. Also the way to what is left of a disk that is damaged."""
    before, folder = mark(host, box), host.base / "node/sandboxes" / box.id
    host.client.pause(TEAM, box.id)
    host.stop_node()
    (folder / "row").unlink()
    host.start_node()
    host.wait_template()
    wait_for(lambda: (folder / "row").exists() and disk_sum(host, box) == 0, "it is described again")
    again = host.client.connect(TEAM, box.id, 300).sandbox
    assert see(host, again) == before


def test_when_its_time_is_over_and_when_somebody_comes(host):
    b = host.client.create(TEAM, timeout_s=300, flags=["AUTO_PAUSE", "AUTO_RESUME"])
    before = mark(host, b)
    host.client.timeout(TEAM, b.id, 1)
    wait_for(lambda: state(host, b) == value(PAUSED), "it is paused", 60)
    wait_for(lambda: not host.warden.list(), "its VM is gone")
    refused("not_found", host.client.sockets, b.id, flags=[])  # nobody waits for them
    refused("denied", host.client.sockets, b.id, flags=["AUTO_RESUME", "TO_AGENT"])
    refused("denied", host.client.sockets, b.id, flags=["AUTO_RESUME", "TO_AGENT"], token=b.access_token[:-1])
    assert state(host, b) == value(PAUSED)
    for sock in host.client.sockets(b.id, flags=["AUTO_RESUME", "TO_AGENT"], token=b.access_token):
        sock.close()
    assert see(host, b) == before
    found = host.client.get(TEAM, b.id).sandbox
    assert found.state == value(RUNNING) and lives(found) == 300
    host.client.kill(TEAM, b.id)
    assert host.folders() == {}


def test_a_paused_one_is_killed(host, box):
    host.client.pause(TEAM, box.id)
    host.client.kill(TEAM, box.id)
    assert host.rows() == [] and host.folders() == {}
    refused("not_found", host.client.connect, TEAM, box.id, 60)


def test_two_who_pause(host, box):
    first, second = answers(host, send(host, "PAUSE", box), send(host, "PAUSE", box))
    assert first.code == 0 and second == "exists"
    assert state(host, box) == value(PAUSED)


def test_two_who_resume(host, box):
    host.client.pause(TEAM, box.id)
    found = answers(host, send(host, "CONNECT", box, timeout_s=100), send(host, "RESUME", box, timeout_s=400),
                    send(host, "CONNECT", box, timeout_s=50))
    assert [r.resumed for r in found] == [1, 1, 1]
    assert len({r.sandbox.end_ns for r in found}) == 1
    assert lives(found[0].sandbox) == 400
    assert host.alive(box)


def test_a_pause_and_a_connect(host, box):
    before = mark(host, box)
    paused, connected, sockets = answers(host, send(host, "PAUSE", box), send(host, "CONNECT", box, timeout_s=100),
                                         send(host, "SOCKETS", box, count=1))
    assert paused.code == 0 and connected.resumed == 1
    assert sockets == "not_found" or sockets.count == 1
    for fd in getattr(sockets, "fds", []):
        os.close(fd)
    assert see(host, box) == before
    host.client.pause(TEAM, box.id)
    resumed, paused = answers(host, send(host, "CONNECT", box, timeout_s=100), send(host, "PAUSE", box))
    assert resumed.resumed == 1 and paused.code == 0
    assert state(host, box) == value(PAUSED)


@pytest.mark.parametrize("delay", [0, 0.1, 0.4])
def test_a_kill_wins(host, delay):
    b = host.client.create(TEAM)
    pause = send(host, "PAUSE", b)
    time.sleep(delay)
    pause, killed = answers(host, pause, send(host, "KILL", b))
    assert killed.code == 0 and (pause == "not_found" or pause.code == 0)
    assert host.rows() == [] and not host.warden.list() and host.folders() == {}
    b = host.client.create(TEAM)
    host.client.pause(TEAM, b.id)
    resume = send(host, "RESUME", b, timeout_s=60)
    time.sleep(delay)
    resume, killed = answers(host, resume, send(host, "KILL", b))
    assert killed.code == 0 and (resume == "not_found" or resume.resumed == 1)
    assert host.rows() == [] and not host.warden.list() and host.folders() == {}


def test_many_at_once(host):
    boxes = [host.client.create(TEAM) for _ in range(4)]
    marks = [mark(host, b) for b in boxes]
    for verb, more in (("PAUSE", {}), ("RESUME", {"timeout_s": 300})):
        found = answers(host, *[send(host, verb, b, **more) for b in boxes])
        assert [getattr(r, "code", r) for r in found] == [0] * len(boxes)
    assert [see(host, b) for b in boxes] == marks
    for b in boxes:
        host.client.kill(TEAM, b.id)


def test_it_survives_its_node_paused(host, box):
    before = mark(host, box)
    host.client.pause(TEAM, box.id)
    host.kill_node()
    host.start_node()
    host.wait_template()
    got = host.client.get(TEAM, box.id)
    assert got.sandbox.state == value(PAUSED) and got.text == {"metadata": {"k": "v"}}
    host.stop_node()
    host.start_node()
    host.wait_template()
    again = host.client.connect(TEAM, box.id, 100).sandbox
    assert see(host, again) == before


def test_without_room_it_runs_on(host, box):
    before = mark(host, box)
    host.kill_node()
    host.start_node(disk_reserve_mib=1024 * 1024 * 1024)
    host.wait_template()
    assert "disk is full" in refused("no_space", host.client.pause, TEAM, box.id)
    assert "disk is full" in refused("no_space", host.client.create, TEAM)
    assert state(host, box) == value(RUNNING) and see(host, box) == before
    host.kill_node()
    host.start_node()
    host.wait_template()
    assert host.folders() == {box.id: ["disk"]}
    host.client.pause(TEAM, box.id)


def test_a_copier_that_dies_leaves_it_running(host, box):
    before = mark(host, box)
    for _ in range(3):
        tag = send(host, "PAUSE", box)
        copier = wait_for(lambda: copiers(host, box), "a copier", 30, every=0.001)
        try:
            os.kill(copier[0], signal.SIGKILL)
        except ProcessLookupError:
            pass
        (paused,) = answers(host, tag)
        if isinstance(paused, str):
            break
        host.client.connect(TEAM, box.id, 300)
    else:
        pytest.skip("the copier was always quicker")
    assert state(host, box) == value(RUNNING) and see(host, box) == before
    host.client.pause(TEAM, box.id)
    host.client.connect(TEAM, box.id, 300)
    assert see(host, box) == before


def copiers(host, box):
    """The processes that copy: those of its VM's user that are not its VM."""
    cell = host.warden.list().get(box.id)
    found = []
    for pid in (int(p) for p in os.listdir("/proc") if p.isdigit()):
        try:
            with open(f"/proc/{pid}/comm") as f:
                if f.read().startswith("hotcell-copier") and cell and os.stat(f"/proc/{pid}").st_uid == cell.uid:
                    found.append(pid)
        except OSError:
            continue
    return found


# --- a disk that fills ---

ROOM_MIB, MORE_MIB = 64, 700


class SmallHost(NodeHost):
    """Its sandboxes' disks lie on a file system of their own, which is small."""

    def __init__(self):
        super().__init__(pool=0, disk_reserve_mib=4)
        self.disk = self.base / "node"
        self.disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM_MIB}m", "tmpfs", self.disk], check=True)

    def resize(self, mib):
        subprocess.run(["mount", "-o", f"remount,size={mib}m", self.disk], check=True)

    def remove(self):
        self.kill_node()
        self.warden.stop_all()
        subprocess.run(["umount", "-l", self.disk], check=True)
        super().remove()


@pytest.fixture
def small():
    with SmallHost() as h:
        h.wait_template()
        yield h


def test_a_writer_waits_for_room_and_the_others_do_not(small):
    host = small
    writer, other = host.client.create(TEAM), host.client.create(TEAM)
    host.run(writer, f"setsid head -c {ROOM_MIB * 2}M /dev/urandom > /root/big 2> /dev/null & echo $! > /root/pid")
    wait_for(lambda: f"{writer.id} stands still" in host.log(), "it stands still", 120)
    assert state(host, writer) == value(RUNNING) and host.alive(other)
    assert "disk is full" in refused("no_space", host.client.pause, TEAM, writer.id)
    assert "disk is full" in refused("no_space", host.client.create, TEAM)
    host.resize(MORE_MIB)
    done = "while kill -0 $(cat /root/pid) 2> /dev/null; do sleep 0.1; done; sync; stat -c %s /root/big"
    assert host.run(writer, done) == str(ROOM_MIB * 2 * 1024 * 1024)
    assert host.run(writer, "dmesg | grep -c 'I/O error' || :") == "0"
    before = mark(host, writer)
    host.client.pause(TEAM, writer.id)
    host.client.connect(TEAM, writer.id, 300)
    assert see(host, writer) == before
    for b in (writer, other):
        host.client.kill(TEAM, b.id)
