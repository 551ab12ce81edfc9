"""test_pause_cycles.py - paused and resumed again and again, always in the middle of writing, and no byte is lost.

A program in the guest writes without pause: random bytes at random places, of its memory and of files. All it writes
follows from a seed and the number of writes so far, so that the test knows every byte that must be there. After each
resume the program says how many there were, and sends all it has through the gateway.

    HOTCELL_CYCLES (20)       of one sandbox; with two vCPUs, and pressed into swap, a quarter of it
    HOTCELL_CROWD (4)         sandboxes at once, each
    HOTCELL_CROWD_CYCLES (5)  times
    HOTCELL_KEPT_MIB (16)     random memory in each guest
    HOTCELL_APART_S (5)       the longest pause
"""

import concurrent.futures
import contextlib
import http.client
import inspect
import json
import os
import random
import subprocess
import time

import pytest

from server import CALL_SECONDS, Server, wait_for

CYCLES = int(os.environ.get("HOTCELL_CYCLES", "20"))
FEW = max(5, CYCLES // 4)
CROWD = int(os.environ.get("HOTCELL_CROWD", "4"))
CROWD_CYCLES = int(os.environ.get("HOTCELL_CROWD_CYCLES", "5"))
KEPT_BYTES = int(os.environ.get("HOTCELL_KEPT_MIB", "16")) << 20
APART_S = float(os.environ.get("HOTCELL_APART_S", "5"))
FILES, FILE_BYTES, WRITE_MAX = 4, 1 << 20, 16384
SKEW_S = 0.1
LOOKS_MAX, SURE_S = 20, 0.02  # at the clock: the one with the shortest way counts
PORT = 8000
SWAP_BYTES = 512 << 20
SWAPPED_MIN = 16 << 20


class Kept:
    """Memory and files that follow from a seed: the guest has this class, too."""

    def __init__(self, seed, memory, files, file_bytes, write_max):
        self.random = random.Random(seed)
        self.held = [bytearray(self.random.randbytes(size)) for size in [memory] + [file_bytes] * files]
        self.write_max, self.writes = write_max, 0

    def write(self):
        """The next one: (which, where, bytes)."""
        which = self.random.randrange(len(self.held))
        data = self.random.randbytes(self.random.randrange(1, self.write_max))
        at = self.random.randrange(len(self.held[which]) - len(data))
        self.held[which][at:at + len(data)] = data
        self.writes += 1
        return which, at, data


GUEST = "import http.server, json, os, random, socketserver, threading, time\n" + inspect.getsource(Kept) + r"""
kept = Kept(*%r)
fds = [os.open(f"/home/user/file{n}", os.O_RDWR | os.O_CREAT | os.O_TRUNC) for n in range(1, len(kept.held))]
for fd, data in zip(fds, kept.held[1:]):
    os.pwrite(fd, data, 0)
lock = threading.Lock()

def work():
    while True:
        with lock:
            which, at, data = kept.write()
            if which:
                os.pwrite(fds[which - 1], data, at)
        time.sleep(0.002)

def answer(what):
    if what == "stop":
        lock.acquire()
        return json.dumps({"writes": kept.writes, "pid": os.getpid()}).encode()
    if what == "go":
        lock.release()
        return b""
    if what == "clock":
        return str(time.time_ns()).encode()
    n = int(what)
    return os.pread(fds[n - 1], 2 * len(kept.held[n]), 0) if n else kept.held[0]

class Door(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        data = answer(self.path.strip("/"))
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass

class Service(http.server.ThreadingHTTPServer):
    def server_bind(self):
        socketserver.TCPServer.server_bind(self)  # without a question to a name server

lock.acquire()
threading.Thread(target=work, daemon=True).start()
Service(("", %d), Door).serve_forever()
"""


@pytest.fixture(scope="module")
def server():
    with Server(node={"slots": 4}) as s:
        yield s


@pytest.fixture(scope="module")
def server_of_two():
    """Its sandboxes have two vCPUs."""
    with Server(node={"vcpus": 2}) as s:
        yield s


class Guest:
    """One sandbox with the program, and what it must hold."""

    def __init__(self, server, seed):
        what = (seed, KEPT_BYTES, FILES, FILE_BYTES, WRITE_MAX)
        self.server, self.known = server, Kept(*what)
        self.box = server.create()
        server.write(self.box, "/home/user/kept.py", (GUEST % (what, PORT)).encode())
        server.run(self.box, "setsid python3 /home/user/kept.py > /home/user/kept.log 2>&1 < /dev/null &")
        wait_for(self.serves, "the program in the guest serves", CALL_SECONDS + 20 * CROWD, 0.2)
        self.pid = None
        self.get("go")

    def ask(self, path):
        return self.server.api("GET", f"/{path}", key=None, headers={
            "E2b-Sandbox-Id": self.box["sandboxID"], "E2b-Sandbox-Port": str(PORT)})

    def serves(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.ask("clock").status == 200
        return False

    def get(self, path):
        answer = self.ask(path)
        assert answer.status == 200, (path, answer.status, answer.raw[:300])
        return answer.raw

    def pause(self):
        begun = time.monotonic()
        assert self.server.must("POST", f"/sandboxes/{self.box['sandboxID']}/pause") is None
        return time.monotonic() - begun

    def resume(self):
        begun = time.monotonic()
        self.server.must("POST", f"/sandboxes/{self.box['sandboxID']}/connect", {"timeout": 3600})
        return time.monotonic() - begun

    def skew(self):
        """How far its clock is off for sure, in seconds, and how well that is known."""
        looks = []
        while len(looks) < LOOKS_MAX and (not looks or min(looks)[0] > SURE_S):
            before = time.time()
            guest = int(self.get("clock")) / 1e9
            after = time.time()
            looks.append(((after - before) / 2, abs(guest - (before + after) / 2)))
        unsure, off = min(looks)
        return max(0, off - unsure), unsure

    def compare(self):
        """All that it holds with all that it must hold; it writes on afterwards."""
        said = json.loads(self.get("stop"))
        self.pid = self.pid or said["pid"]
        assert said["pid"] == self.pid, "it is another process"
        assert said["writes"] >= self.known.writes, "it has forgotten writes"
        before = self.known.writes
        while self.known.writes < said["writes"]:
            self.known.write()
        for n, data in enumerate(self.known.held):
            same(self.get(str(n)), data, f"file {n}" if n else "memory")
        self.get("go")
        return said["writes"] - before

    def cycle(self, name, apart=0.0):
        paused = self.pause()
        time.sleep(apart)  # what is tested is that it was away for so long
        resumed = self.resume()
        off, unsure = self.skew()
        writes = self.compare()
        print(f"{name}: paused in {paused:.2f} s, resumed in {resumed:.2f} s, {writes} writes since the last time, "
              f"clock off by {off * 1000:.1f} ms (+- {unsure * 1000:.1f})")
        assert off < SKEW_S
        return writes

    def compare_disk(self):
        """The files once more, now from the disk. It writes no more."""
        said = json.loads(self.get("stop"))
        while self.known.writes < said["writes"]:
            self.known.write()
        self.server.run(self.box, "sync; sudo sh -c 'echo 3 > /proc/sys/vm/drop_caches'")
        for n, data in enumerate(self.known.held[1:]):
            same(self.server.read(self.box, f"/home/user/file{n + 1}"), data, f"file {n + 1} on disk")

    def close(self):
        assert self.server.delete(self.box) == 204


def same(found, known, what):
    """Byte by byte; where they differ first is said."""
    if found == known:
        return
    assert len(found) == len(known), f"{what}: {len(found)} bytes, not {len(known)}"
    wrong = [at for at in range(0, len(known), 4096) if found[at:at + 4096] != known[at:at + 4096]]
    first = next(at for at in range(wrong[0], len(known)) if found[at] != known[at])
    raise AssertionError(f"{what}: {len(wrong)} pages differ, the first byte at {first}")


def cycles(guest, name, count, apart=0.0):
    try:
        guest.compare()
        writes = [guest.cycle(f"{name}, cycle {n + 1}", apart if n + 1 == count else 0) for n in range(count)]
        assert all(writes), "it does not write"
        guest.compare_disk()
    finally:
        guest.close()


def test_one_again_and_again(server):
    cycles(Guest(server, 1), "one", CYCLES, APART_S)


def test_many_at_once(server):
    def one(n):
        cycles(Guest(server, 100 + n), f"crowd {n}", CROWD_CYCLES)

    with concurrent.futures.ThreadPoolExecutor(CROWD) as pool:
        list(pool.map(one, range(CROWD)))


def test_with_two_vcpus(server_of_two):
    guest = Guest(server_of_two, 2)
    assert server_of_two.run(guest.box, "nproc").strip() == "2"
    cycles(guest, "two vCPUs", FEW)


# --- pressed into swap ---


@pytest.fixture
def swap(server):
    """This host has some, or is given some for the test's time."""
    if len(open("/proc/swaps").read().splitlines()) > 1:
        yield
        return
    path = server.base / "swap"
    try:
        subprocess.run(["fallocate", "-l", str(SWAP_BYTES), path], check=True)
        path.chmod(0o600)
        subprocess.run(["mkswap", path], check=True, stdout=subprocess.DEVNULL)
        made = subprocess.run(["swapon", path], capture_output=True, text=True)
        if made.returncode:
            pytest.skip(f"no swap on this host: {made.stderr.strip()}; test_copier has pages that are swapped out")
        try:
            yield
        finally:
            subprocess.run(["swapoff", path], check=True)
    finally:
        path.unlink(missing_ok=True)


def swapped(pid):
    """Bytes of a guest's memory, which is mapped from a template's, that are in swap."""
    found, is_memory = 0, False
    for line in open(f"/proc/{pid}/smaps"):
        name, *rest = line.split()
        if not name.endswith(":"):
            is_memory = rest[-1].endswith("/memory")
        elif is_memory and name == "Swap:":
            found += int(rest[0]) << 10
    return found


def press(server, box):
    """Take from its control group what it has in memory. No limit is set: the kernel would end a QEMU that needs more
    at once than can be swapped."""
    for group in server.warden.groups():
        if group.name != box["sandboxID"]:
            continue
        with contextlib.suppress(OSError):  # it says so when it could not take all
            if (group / "memory.force_empty").exists():
                (group / "memory.force_empty").write_text("0")
            elif (group / "memory.reclaim").exists():
                (group / "memory.reclaim").write_text((group / "memory.current").read_text())


def is_pressed(server, box, pid):
    press(server, box)
    return swapped(pid) >= SWAPPED_MIN


def test_pressed_into_swap(server, swap):
    guest = Guest(server, 3)
    try:
        guest.compare()
        for n in range(FEW):
            pid = server.vm_pid(guest.box)
            wait_for(lambda: is_pressed(server, guest.box, pid), "it is in swap", 60, 0.1)
            print(f"{swapped(pid) >> 20} MiB of the guest are in swap")
            guest.cycle(f"swapped, cycle {n + 1}")
    finally:
        guest.close()
