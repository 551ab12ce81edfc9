"""test_heavy.py - much of everything through one sandbox: nothing is lost, and nobody keeps it in memory.

HOTCELL_HEAVY_MIB (256; the long suite asks for 2048) is the size of the file.
"""

import concurrent.futures
import contextlib
import hashlib
import http.client
import os
import pathlib
import random
import time

import pytest

from process_stream import (AS_USER, ProcessStream, close_input, rpc, sandbox_fields, send_input,
                            shell_as_root)
from server import Server, wait_for

MIB = 1 << 20
HEAVY_MIB = int(os.environ.get("HOTCELL_HEAVY_MIB", "256"))
FILES = 10_000
PROCESSES = 1_000
AT_ONCE = 16  # of them
OUTPUT = 100_000_000
OUTPUT_PIECE = 50_000
GROWTH_MAX = 16 * 1024  # KiB, of each of gateway, node and agent
LONG_SECONDS = 600 + HEAVY_MIB  # for one transfer, on a slow and busy machine
EVERY_BYTE = bytes(range(256))


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        yield s


@pytest.fixture(scope="module")
def box(server):
    box = server.create()
    yield box
    server.delete(box)


# --- memory -----------------------------------------------------------------------------------------


def peak_kib(status):
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


def forget_peak(pid):
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")


def agent_pid(server, box):
    """Of the process that serves: a command's parent."""
    return int(shell_as_root(server, box, "echo $PPID"))


class Peaks:
    """The most memory that each had since the last look, in KiB."""

    def __init__(self, server, box):
        self.server, self.box = server, box
        self.hosts = {name: server.pids[name] for name in ("gateway", "node")}
        self.agent = agent_pid(server, box)

    def read(self):
        found = {name: peak_kib(pathlib.Path(f"/proc/{pid}/status").read_text())
                 for name, pid in self.hosts.items()}
        found["agent"] = peak_kib(shell_as_root(self.server, self.box, f"cat /proc/{self.agent}/status"))
        return found

    def forget(self):
        for pid in self.hosts.values():
            forget_peak(pid)
        shell_as_root(self.server, self.box, f"echo 5 > /proc/{self.agent}/clear_refs")


@contextlib.contextmanager
def bounded_memory(server, box):
    peaks = Peaks(server, box)
    peaks.forget()
    before = peaks.read()
    yield
    grown = {name: kib - before[name] for name, kib in peaks.read().items()}
    print(f"grown by, in KiB: {grown} (before: {before})")
    assert max(grown.values()) < GROWTH_MAX, f"in KiB: {grown}"


# --- a large file -----------------------------------------------------------------------------------


def blocks(mib):
    """So many MiB, each different from the others and without a pattern that hides a loss."""
    block = random.Random(4).randbytes(MIB)
    for n in range(mib):
        yield n.to_bytes(8, "big") + block[8:]


def files_request(server, box, method, target, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LONG_SECONDS)
    connection.request(method, target, body, {**sandbox_fields(box), **AS_USER, **headers})
    return connection, connection.getresponse()


def upload(server, box, path, mib):
    connection, response = files_request(
        server, box, "POST", f"/files?path={path}&username=user", blocks(mib),
        **{"Content-Type": "application/octet-stream", "Content-Length": str(mib * MIB)})
    with contextlib.closing(connection):
        assert response.status == 200, response.read()


def check_download(server, box, path, mib):
    connection, response = files_request(server, box, "GET", f"/files?path={path}&username=user")
    with contextlib.closing(connection):
        assert response.status == 200, response.read()
        assert int(response.headers["content-length"]) == mib * MIB
        for n, block in enumerate(blocks(mib)):
            assert response.read(MIB) == block, f"differs in MiB {n}"
        assert not response.read()


def test_a_large_file_up_and_down(server, box):
    free = int(server.run(box, "df --output=avail -B1M /home | tail -1"))
    assert free > HEAVY_MIB + 64, f"the sandbox has no room for it: {free} MiB"
    with bounded_memory(server, box):
        begun = time.monotonic()
        upload(server, box, "/home/user/large", HEAVY_MIB)
        turned = time.monotonic()
        check_download(server, box, "/home/user/large", HEAVY_MIB)
        ended = time.monotonic()
    print(f"{HEAVY_MIB} MiB: up {HEAVY_MIB / (turned - begun):.1f} MiB/s, "
          f"down {HEAVY_MIB / (ended - turned):.1f} MiB/s")
    server.run(box, "rm /home/user/large")


# --- many files -------------------------------------------------------------------------------------


def test_ten_thousand_files_are_listed(server, box):
    server.run(box, "mkdir /home/user/many && cd /home/user/many && python3 -c 'import os\n"
                    f"for n in range({FILES}): os.mknod(f\"file-{{n + 1}}\")'")
    with bounded_memory(server, box):
        found = rpc(server, box, "filesystem.Filesystem", "ListDir", {"path": "/home/user/many", "depth": 1})
    names = [entry["name"] for entry in found["entries"]]
    assert len(names) == FILES and set(names) == {f"file-{n + 1}" for n in range(FILES)}
    server.run(box, "rm -r /home/user/many && sync")  # once ended the VM: its disk wanted more threads than it had
    print("threads of the VM, at most:", threads_peak(server, box))


def threads_peak(server, box):
    for group in server.warden.groups():
        if group.name == box["sandboxID"] and (group / "pids.peak").exists():
            return int((group / "pids.peak").read_text())
    return None


# --- many processes ---------------------------------------------------------------------------------


def test_a_thousand_processes_are_reaped(server, box):
    def one(n):
        with ProcessStream.start(server, box, ["/bin/sh", "-c", f"exit {n % 256}"]) as s:
            assert s.all_of("stdout") == b""
            return s.pid, s.exit_code

    with bounded_memory(server, box), concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        begun = time.monotonic()
        done = list(pool.map(one, range(PROCESSES)))
        print(f"{PROCESSES} processes in {time.monotonic() - begun:.1f} s")
    assert [code for _, code in done] == [n % 256 for n in range(PROCESSES)]
    assert len({pid for pid, _ in done}) == PROCESSES
    states = server.run(box, "cat /proc/[0-9]*/stat 2>/dev/null").splitlines()
    zombies = [line for line in states if line.rpartition(")")[2].split()[0] == "Z"]
    assert not zombies
    assert rpc(server, box, "process.Process", "List", {}).get("processes", []) == []
    descriptors = int(shell_as_root(server, box, "ls /proc/$PPID/fd | wc -l"))
    assert descriptors < 64, f"the agent holds {descriptors} descriptors"


# --- much output ------------------------------------------------------------------------------------

# Says how far it got, in a file: what a writer thinks it wrote.
TALKER = f"""
import random, sys
block, n = random.Random(9).randbytes({OUTPUT_PIECE}), 0
with open("/tmp/told", "wb", buffering=0) as told:
    while n < {OUTPUT}:
        sys.stdout.buffer.write(n.to_bytes(8, "big") + block[8:])
        sys.stdout.buffer.flush()
        n += {OUTPUT_PIECE}
        told.seek(0)
        told.write(b"%d" % n)
""".encode()


def told(server, box):
    return int(server.read(box, "/tmp/told") or 0)


def stands_still(server, box):
    """Two looks at how much was written, a while apart."""
    first = told(server, box)
    time.sleep(2)
    return told(server, box) == first and first


def test_output_waits_for_a_slow_reader(server, box):
    """100 MB; first nobody reads and the writer must wait, then it is read with pauses."""
    server.write(box, "/home/user/talker.py", TALKER)
    server.write(box, "/tmp/told", b"0")
    with bounded_memory(server, box):
        with ProcessStream.start(server, box, ["/usr/bin/python3", "/home/user/talker.py"],
                                 seconds=LONG_SECONDS) as s:
            wait_for(lambda: stands_still(server, box), "the writer waits for its reader", 60, 0.1)
            assert told(server, box) <= 16_000_000, "somebody keeps what nobody reads"
            check_slowly(s.output())
    assert s.exit_code == 0
    assert told(server, box) == OUTPUT


def check_slowly(pieces):
    block, got, at = random.Random(9).randbytes(OUTPUT_PIECE), bytearray(), 0
    for name, data in pieces:
        assert name == "stdout", data[:500]
        got += data
        while len(got) >= OUTPUT_PIECE:
            assert got[:OUTPUT_PIECE] == at.to_bytes(8, "big") + block[8:], f"differs after {at} bytes"
            del got[:OUTPUT_PIECE]
            at += OUTPUT_PIECE
            time.sleep(0.001)  # a reader that has other things to do
    assert (at, len(got)) == (OUTPUT, 0)


# --- every byte -------------------------------------------------------------------------------------


def samples():
    chance = random.Random(16)
    yield from (EVERY_BYTE, EVERY_BYTE[::-1] * 300, b"\0" * 70_000, b"\r\n\x04\x03\x1a\x7f" * 1000, b"\xff")
    for size in (1, 2, 3, 4095, 4096, 4097, 65_535, 65_536, 65_537, 1_000_003):
        yield chance.randbytes(size)


def test_every_byte_survives_files(server, box):
    for data in samples():
        server.write(box, "/tmp/bytes", data)
        assert server.read(box, "/tmp/bytes") == data
    assert server.run(box, "sha256sum < /tmp/bytes").split()[0] == hashlib.sha256(data).hexdigest()


def test_every_byte_survives_stdout_and_stderr(server, box):
    for data in samples():
        server.write(box, "/tmp/bytes", data)
        for name, to in ("stdout", ""), ("stderr", " >&2"):
            with ProcessStream.start(server, box, ["/bin/sh", "-c", "cat /tmp/bytes" + to]) as s:
                assert s.all_of(name) == data
                assert s.exit_code == 0


def test_every_byte_survives_stdin(server, box):
    for data in samples():
        with ProcessStream.start(server, box, ["/bin/sh", "-c", "cat > /tmp/bytes"], stdin=True) as s:
            send_input(server, box, s.pid, data)
            close_input(server, box, s.pid)
            assert s.all_of("stdout") == b""
        assert server.read(box, "/tmp/bytes") == data
