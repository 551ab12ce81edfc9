"""Pause and resume at the engine's level: a sandbox goes through files and is the same, byte for byte.

HOTCELL_PAUSE_CYCLES (3) and HOTCELL_PAUSE_MIB (16) set how often and how much, HOTCELL_APART_S (3) the longest pause. Figures are
printed.
"""

import contextlib
import hashlib
import os
import pathlib
import shutil
import tempfile
import time

import pytest

from driver import DriverError
from engine import Engine

CYCLES = int(os.environ.get("HOTCELL_PAUSE_CYCLES", "3"))
MIB = int(os.environ.get("HOTCELL_PAUSE_MIB", "16"))
SKEW_US = 100_000  # the promise; what cannot be known better than that is not held against it
FILE_BYTES = 700_000

# Holds random bytes in its memory, counts, and answers on a port: with what it counted and the hash of the bytes.
SERVER = r"""
import hashlib, os, socket, threading, time
held = bytearray(os.urandom(%d << 20))
first = hashlib.sha256(held).hexdigest()
count = 0
def beat():
    global count
    while True:
        count += 1
        time.sleep(0.05)
threading.Thread(target=beat, daemon=True).start()
listening = socket.create_server(("127.0.0.1", 7777))
open("/tmp/server-ready", "w").write(first)
while True:
    conn, _ = listening.accept()
    with conn:
        conn.sendall(f"{os.getpid()} {count} {first} {hashlib.sha256(held).hexdigest()}".encode())
"""
ASK = ("import socket; s = socket.create_connection(('127.0.0.1', 7777)); "
       "print(b''.join(iter(lambda: s.recv(4096), b'')).decode())")
# A shell that keeps a variable and says it whenever it finds a line in its FIFO.
SHELL = ("mkfifo /tmp/ask; secret=$(cat /proc/sys/kernel/random/uuid); echo $secret > /tmp/secret; n=0; "
         "while read line < /tmp/ask; do n=$((n+1)); echo $secret $n > /tmp/told.new; "
         "mv /tmp/told.new /tmp/told; done")
# Looks at both clocks all the time. When the real one jumps by seconds it writes down when it looked last, when it
# saw that, and how many times it saw that were neither those of before nor those of after. A look in whose middle the
# machine did something else says nothing.
CLOCKS = r"""
import time
def look():
    while True:
        at = time.monotonic()
        off = time.time() - at
        if time.monotonic() - at < 0.02:
            return at, off
last, old = look()
open("/tmp/looking", "w").close()
seen = [look()]
while seen[-1][1] - old < 1:
    last, off = seen[-1]
    seen = [s for s in seen if abs(s[1] - old) > 0.1][:100] + [look()]
new = seen[-1][1]
seen += [look() for _ in range(1000)]
wrong = sum(min(abs(off - old), abs(off - new)) > 0.1 for at, off in seen)
open("/tmp/jumped.new", "w").write(f"{last} {seen[-1001][0]} {new - old} {wrong}")
import os
os.rename("/tmp/jumped.new", "/tmp/jumped")
"""
APART_SECONDS = float(os.environ.get("HOTCELL_APART_S", "3"))
ALONE_SECONDS = 2
TRIES = 3


@pytest.fixture(scope="module")
def engine():
    with Engine() as e:
        yield e


@pytest.fixture
def folder():
    path = pathlib.Path(tempfile.mkdtemp(prefix="hotcell-pause-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def box(engine):
    b = engine.create()
    yield b
    with contextlib.suppress(DriverError):
        engine.stop(b)


def detached(engine, box, command, **args):
    engine.driver.call("exec", sandbox=box["sandbox"], cmd=command, detach=True, **args)


def wait_for(engine, box, condition):
    """Until a command succeeds in the sandbox, which waits itself."""
    engine.run(box, f"for i in $(seq 600); do {condition} && exit 0; sleep 0.1; done; exit 1")


class Files:
    def __init__(self, folder, name):
        self.pages, self.state = str(folder / f"{name}.pages"), str(folder / f"{name}.state")

    def args(self):
        return {"pages": self.pages, "state": self.state}


def pause(engine, box, files, **args):
    return engine.driver.call("pause", sandbox=box["sandbox"], **files.args(), **args)


def resume(engine, box, files, **args):
    return engine.driver.call("resume", sandbox=box["sandbox"], **files.args(), **args)


def clock(engine, box):
    """How far the guest's clock is off for sure, in microseconds: the least it can be."""
    c = engine.driver.call("clock", sandbox=box["sandbox"])
    return max(0, abs(c["skew_us"]) - c["uncertainty_us"])


def show(name, saved, resumed):
    s, r = saved["steps"], resumed["steps"]
    print(f"\n{name}: frozen {saved['frozen']}, stopped {saved['stopped_us'] / 1000:.1f} ms "
          f"(state {(s['state'] - s['stopped']) / 1000:.1f}, copier {saved['copier_us'] / 1000:.1f}), "
          f"{saved['pages']} pages + {saved['zero_pages']} zero, {saved['pages_bytes'] / 1e6:.1f} MB, "
          f"state {saved['state_bytes']} B, durable after {s['durable'] / 1000:.0f} ms; resumed in "
          f"{max(r.values()) / 1000:.0f} ms (applied {r['applied'] / 1000:.0f}, "
          f"loaded {r['loaded'] / 1000:.0f}, identity {r['identity'] / 1000:.0f})")


def ask_server(engine, box):
    pid, count, first, now = engine.run(box, f'python3 -c "{ASK}"').split()
    return int(pid), int(count), first, now


def tell_shell(engine, box):
    engine.run(box, "rm -f /tmp/told; echo tell > /tmp/ask")
    wait_for(engine, box, "test -e /tmp/told")
    return engine.run(box, "cat /tmp/told").split()


def make_file(engine, box):
    """A file of random bytes, made in the guest; what is in it."""
    engine.run(box, f"head -c {FILE_BYTES} /dev/urandom > /home/user/kept")
    return read_kept(engine, box)


def read_kept(engine, box):
    content = engine.driver.read_file(box["sandbox"], "/home/user/kept")
    assert len(content) == FILE_BYTES
    return content


def write_server(engine, box):
    engine.driver.write_file(box["sandbox"], "/home/user/server.py", (SERVER % MIB).encode())
    detached(engine, box, "python3 /home/user/server.py")
    wait_for(engine, box, "test -s /tmp/server-ready")


def test_it_is_the_same_after_each_of_many_pauses(engine, box, folder):
    write_server(engine, box)
    detached(engine, box, SHELL)
    wait_for(engine, box, "test -s /tmp/secret && test -p /tmp/ask")
    content = make_file(engine, box)
    secret = engine.run(box, "cat /tmp/secret")
    names = engine.run(box, "hostname; cat /etc/machine-id /proc/sys/kernel/random/boot_id")
    pid, count, held, _ = ask_server(engine, box)
    template = hashlib.sha256(pathlib.Path(
        engine.warden.state, "templates", box["template"], "memory").read_bytes()).digest()
    frozen = []
    for cycle in range(1, CYCLES + 1):
        files = Files(folder, str(cycle))
        saved = pause(engine, box, files)
        assert saved["pages_bytes"] == os.path.getsize(files.pages)
        assert saved["state_bytes"] == os.path.getsize(files.state)
        assert box["sandbox"] not in [s["sandbox"] for s in engine.driver.call("list")["sandboxes"]]
        frozen.append(saved["frozen"])
        resumed = resume(engine, box, files)
        show(f"cycle {cycle}", saved, resumed)
        assert clock(engine, box) < SKEW_US
        pid_now, count_now, first, held_now = ask_server(engine, box)
        assert (pid_now, first, held_now) == (pid, held, held)
        assert count_now > count
        count = count_now
        assert tell_shell(engine, box) == [secret, str(cycle)]
        assert read_kept(engine, box) == content
        engine.run(box, f"echo {cycle} >> /home/user/cycles")
        assert engine.run(box, "cat /home/user/cycles").split() == [str(i + 1) for i in range(cycle)]
        assert engine.run(
            box, "hostname; cat /etc/machine-id /proc/sys/kernel/random/boot_id") == names
        os.unlink(files.pages)
        os.unlink(files.state)
    assert any(frozen)
    # what was free or unchanged takes no room
    assert saved["pages_bytes"] < (MIB + 160) << 20
    assert hashlib.sha256(pathlib.Path(
        engine.warden.state, "templates", box["template"], "memory").read_bytes()).digest() == template


def test_no_user_process_sees_a_wrong_time(engine, box, folder):
    engine.driver.write_file(box["sandbox"], "/home/user/clocks.py", CLOCKS.encode())
    for _ in range(TRIES):  # a guest that does not freeze in time is stopped all the same
        engine.run(box, "rm -f /tmp/looking /tmp/jumped")
        detached(engine, box, "exec python3 /home/user/clocks.py")
        wait_for(engine, box, "test -e /tmp/looking")
        files = Files(folder, "time")
        frozen = pause(engine, box, files)["frozen"]
        time.sleep(APART_SECONDS)  # what is measured is that so much time is missing
        resume(engine, box, files, waitMs=ALONE_SECONDS * 1000)
        wait_for(engine, box, "test -e /tmp/jumped")
        last, first, jump, wrong = map(float, engine.run(box, "cat /tmp/jumped").split())
        if frozen:
            break
    assert frozen, f"in {TRIES} tries it never froze in time"
    assert jump > APART_SECONDS and wrong == 0
    assert clock(engine, box) < SKEW_US
    # from `cont` until its clock was right it ran without any process of the user's
    assert first - last > 0.9 * ALONE_SECONDS


def test_when_a_save_is_not_wanted_it_goes_on(engine, box, folder):
    write_server(engine, box)
    before = ask_server(engine, box)
    files = Files(folder, "on")
    saved = pause(engine, box, files, goOn=True)
    assert saved["steps"]["cont"] > saved["steps"]["copied"]
    after = ask_server(engine, box)
    assert (after[0], after[2], after[3]) == (before[0], before[2], before[3])
    assert after[1] > before[1]
    assert clock(engine, box) < SKEW_US
    # and what was saved meanwhile is good, too
    files = Files(folder, "again")
    show("after it went on", pause(engine, box, files), resume(engine, box, files))
    assert ask_server(engine, box)[0] == before[0]


def test_broken_pages_are_refused(engine, box, folder):
    files = Files(folder, "broken")
    pause(engine, box, files)
    with open(files.pages, "r+b") as f:
        f.seek(4096 * 3 + 17)
        byte = f.read(1)
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte[0] ^ 0x40]))
    with pytest.raises(DriverError):
        resume(engine, box, files)


def test_without_memory_it_boots_from_its_disk(engine, box, folder):
    content = make_file(engine, box)  # and no sync
    detached(engine, box, "sleep 100000")
    old = engine.run(box, "cat /proc/sys/kernel/random/boot_id; cat /proc/uptime").split()
    saved = engine.driver.call("pause", sandbox=box["sandbox"], diskOnly=True)
    assert saved["frozen"] and saved["pages"] == 0
    booted = engine.driver.call("resume", sandbox=box["sandbox"], boot=True, seconds=300)
    print(f"\nbooted in {max(booted['steps'].values()) / 1e6:.1f} s")
    assert read_kept(engine, box) == content
    assert engine.run(box, "hostname") == box["hostname"]
    assert engine.run(box, "cat /etc/machine-id") == box["machine_id"]
    assert clock(engine, box) < SKEW_US
    assert engine.run(box, "pgrep -c sleep || true") == "0", "a process that was not there"
    assert engine.run(box, "cut -d' ' -f1 /proc/uptime") != old[1]
