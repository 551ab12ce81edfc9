"""test_egress_compromise.py - egress's front process has been taken over: what does the attacker have?

The real one, confined, with a user of its own and the kernel's rules for it, holds a sandbox whose requests to one
host carry a secret. Its memory is read from outside, and its own thread makes the attacker's system calls.
"""

import base64
import errno
import os
import platform
import select
import socket
import struct
import subprocess
import sys

import names
import injector
import pytest
from place import EGRESS_UID, HOST, HOST_ADDRESS, INJECTOR_UID, RESOLVER, SERVICE, Place
from taken import Taken, memory_has
from warden import is_sanitized, wait_for

pytestmark = [pytest.mark.skipif(platform.machine() != "x86_64", reason="its registers are not known here"),
              pytest.mark.skipif(is_sanitized(), reason="a sanitizer has its own memory and system calls")]

PATIENCE_MS = 60_000
AT_FDCWD = -100
# private, link-local, metadata, shared, loopback, this network, multicast, reserved, the host's own
INSIDE = ["10.0.0.1", "172.16.0.1", "172.31.255.254", "192.168.1.1", "169.254.0.1", "169.254.169.254",
          "100.64.0.1", "100.100.100.200", "168.63.129.16", "198.18.0.1", "192.0.0.192", "127.0.0.1", "127.0.0.53",
          "127.9.9.9", "0.0.0.0", HOST_ADDRESS]
UDP_PORTS = (53, 123, 9999)
TCP_PORTS = (22, 53, 80, 443, 5432)

# Of the same user and in the same network, but without a filter: what the kernel itself keeps from it.
STRANGER = """
import ctypes, os, sys
uid, *targets = map(int, sys.argv[1].split(","))
os.setgroups([]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
libc = ctypes.CDLL(None, use_errno=True)
for path in sys.argv[2:]:
    try:
        os.close(os.open(path, os.O_RDONLY))
        print("opened", path)
    except PermissionError:
        pass
for pid in targets:
    if libc.ptrace(0x4206, pid, None, None) == 0:
        print("traced", pid)
    if libc.syscall(438, os.pidfd_open(pid), 0, 0) >= 0:
        print("took a descriptor of", pid)
    try:
        os.kill(pid, 0)
        print("signalled", pid)
    except PermissionError:
        pass
print("done")
"""


@pytest.fixture(scope="module")
def place():
    with Place(told=False) as p:  # its filter as it is elsewhere
        p.open()
        assert p.ask(HOST) == [names.GOOD]
        assert b"200 OK" in p.fetch(HOST, names.GOOD)
        sent = [h["fields"].get("authorization") for h in p.internet.heard() if h["proto"] == "https"]
        assert sent == [f"Bearer {p.value}"], "the secret did not get where it should"
        yield p
        p.egress.end()


@pytest.fixture
def taken(place):
    with Taken(place.egress.pid) as t:
        assert t.call("getpid") == place.egress.pid  # it does what it is told
        yield t
    place.egress.counts(0)  # and lives on


def refused(taken, why, name, *args):
    with pytest.raises(OSError) as e:
        taken.call(name, *args)
    assert e.value.errno == why, e.value


# --- what it knows ------------------------------------------------------------------------------------------


def keys(place):
    """The injector's two, in every form that a process could have them in: as in its files, and as numbers."""
    lines = [line for line in place.state("root.key").splitlines() if "-" not in line]
    der = base64.b64decode("".join(lines))
    scalar = der[der.index(b"\x04\x20") + 2:][:32]  # OCTET STRING of 32 bytes
    sealing = place.state("seal.key").strip()
    return [lines[0].encode(), scalar, scalar[::-1]], [sealing.encode(), base64.b64decode(sealing)]


def test_the_secret_is_in_the_workers_memory_and_not_in_the_fronts(place):
    value = place.value.encode()
    assert memory_has(place.worker_pid(), value), "the search finds nothing at all"
    assert not memory_has(place.egress.pid, value)
    assert not memory_has(place.egress.pid, place.sealed.encode()[-40:])


def test_the_keys_are_in_the_injectors_memory_and_not_in_the_fronts(place):
    for forms in keys(place):
        assert memory_has(place.injector.process.pid, *forms), "the search finds nothing at all"
        assert not memory_has(place.egress.pid, *forms)
        assert not memory_has(place.worker_pid(), *forms)


def test_what_it_holds_names_no_secret(place):
    targets = [os.readlink(f"/proc/{place.egress.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{place.egress.pid}/fd")]
    assert [t for t in targets if not t.startswith(("socket:", "anon_inode:", "pipe:", "/dev/null"))
            and not t.endswith("/log")] == []


# --- whom it reaches ----------------------------------------------------------------------------------------


def sockaddr(ip, port):
    return struct.pack("=H", socket.AF_INET) + struct.pack(">H4s8x", port, socket.inet_aton(ip))


def begin(taken, ip, port):
    """A connection its thread begins; a copy of it, for us to see what becomes of it. None: it may not even begin."""
    fd = taken.call("socket", socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK, 0)
    at = sockaddr(ip, port)
    try:
        taken.call("connect", fd, taken.place(at), len(at))
    except BlockingIOError:
        pass
    except OSError as e:
        assert e.errno in (errno.EPERM, errno.EACCES, errno.ENETUNREACH), e
        return None
    return socket.socket(fileno=taken.descriptor(fd))


def connected(s, ms):
    ready = select.poll()
    ready.register(s, select.POLLOUT)
    return bool(ready.poll(ms)) and s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0


def test_it_connects_to_nothing_inside(place, taken):
    """Those who may pass, pass; by then whoever else got through would have got through as well."""
    place.internet.heard()
    tried = [begin(taken, ip, port) for ip in INSIDE for port in TCP_PORTS]
    allowed = [(names.GOOD, 80), (RESOLVER, 53), (SERVICE, 5432)]
    for ip, port in allowed:
        with begin(taken, ip, port) as s:
            assert connected(s, PATIENCE_MS), f"{ip}:{port} is not reached: the test sees nothing"
    assert not any(connected(s, 0) for s in tried if s)
    for s in tried:
        if s:
            s.close()
    came = set()

    def all_came():
        came.update((h["to"], h["port"]) for h in place.internet.heard() if h["proto"] == "tcp")
        return came >= set(allowed)
    wait_for(all_came, "the internet saw who may come")
    assert came == set(allowed)


def test_it_sends_nothing_inside(place, taken):
    place.internet.heard()
    fd = taken.call("socket", socket.AF_INET, socket.SOCK_DGRAM, 0)
    word = taken.place(names.question("tunnel.evil.test"))
    size = len(names.question("tunnel.evil.test"))
    for ip in INSIDE:
        for port in UDP_PORTS:
            at = sockaddr(ip, port)
            refused(taken, errno.EPERM, "sendto", fd, word, size, 0, taken.place(at), len(at))
    at = sockaddr(RESOLVER, 53)
    assert taken.call("sendto", fd, word, size, 0, taken.place(at), len(at)) == size
    with socket.socket(fileno=taken.descriptor(fd)) as s:
        s.settimeout(PATIENCE_MS / 1000)
        assert s.recv(512)
    assert {(h["to"], h["port"]) for h in place.internet.heard()} == {(RESOLVER, 53)}


def test_without_the_kernels_rules_it_would_have_got_there(place):
    """That the two tests before can fail: the same calls, the rules away."""
    place.host.run("nft", "delete", "table", "inet", "hotcell_egress")
    try:
        with Taken(place.egress.pid) as taken, begin(taken, names.METADATA, 80) as s:
            assert connected(s, PATIENCE_MS)
    finally:
        place.host.run("nft", "-f", "-", input=place.nft())


@pytest.mark.parametrize("family, kind", [(socket.AF_INET6, socket.SOCK_STREAM), (socket.AF_NETLINK, socket.SOCK_RAW),
                                          (socket.AF_PACKET, socket.SOCK_RAW), (socket.AF_VSOCK, socket.SOCK_STREAM),
                                          (socket.AF_UNIX, socket.SOCK_SEQPACKET), (socket.AF_INET, socket.SOCK_RAW)])
def test_it_has_no_other_kind_of_socket(taken, family, kind):
    refused(taken, errno.EPERM, "socket", family, kind, 255 if kind == socket.SOCK_RAW and family == 2 else 0)


def test_the_injector_does_not_listen_to_its_user(place):
    """With a filter that let it make a unix socket it could connect by path; whoever is not node is hung up on."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(PATIENCE_MS / 1000)
        os.seteuid(EGRESS_UID)
        try:
            s.connect(str(place.injector.settings["socket"]))
        except PermissionError:
            return
        finally:
            os.seteuid(0)
        try:
            s.send(injector.REQUEST.pack(1, injector.FACTS, 0, b"sandbox", b"team"))
            assert s.recv(4096) == b""
        except (BrokenPipeError, ConnectionResetError):
            pass


# --- what it does to the host -------------------------------------------------------------------------------


def test_it_opens_no_file_and_runs_no_program(place, taken):
    for path in ("/etc/passwd", "/proc/self/maps", "/dev/null", place.injector.base / "state/seal.key"):
        at = taken.place(str(path).encode() + b"\0")
        refused(taken, errno.EPERM, "open", at, os.O_RDONLY)
        refused(taken, errno.EPERM, "openat", AT_FDCWD, at, os.O_RDONLY)
        refused(taken, errno.EPERM, "openat2", AT_FDCWD, at, at, 24)
        refused(taken, errno.EPERM, "readlink", at, at, 1)
    shell = taken.place(b"/bin/sh\0")
    refused(taken, errno.EPERM, "execve", shell, 0, 0)
    refused(taken, errno.EPERM, "execveat", AT_FDCWD, shell, 0, 0, 0)
    refused(taken, errno.EPERM, "fork")
    refused(taken, errno.EPERM, "clone", 0x11)
    refused(taken, errno.ENOSYS, "clone3", 0, 0)
    refused(taken, errno.EPERM, "mmap", 0, 4096, 7, 0x22, -1)
    refused(taken, errno.EPERM, "mprotect", taken.gate & ~4095, 4096, 7)


def test_it_touches_no_other_process_and_not_its_own_rights(place, taken):
    for pid in (1, place.worker_pid(), place.injector.process.pid, os.getpid()):
        refused(taken, errno.EPERM, "ptrace", 0x4206, pid, 0, 0)
        refused(taken, errno.EPERM, "process_vm_readv", pid, 0, 0, 0, 0, 0)
        refused(taken, errno.EPERM, "pidfd_open", pid, 0)
        refused(taken, errno.EPERM, "kill", pid, 0)
    for name in ("setuid", "unshare", "setns", "mount", "bpf", "keyctl", "io_uring_setup", "bind", "listen"):
        refused(taken, errno.EPERM, name, 0)


def test_its_user_gets_no_further_even_without_the_filter(place):
    assert EGRESS_UID != INJECTOR_UID
    pids = [place.worker_pid(), place.injector.process.pid, *place.injector.processes()[:1]]
    state = place.injector.base / "state"
    files = [state, *(state / name for name in ("root.key", "root.crt", "seal.key")),
             *(f"/proc/{pid}/{name}" for pid in pids for name in ("mem", "environ", "maps"))]
    seen = subprocess.run([*place.host.inside, sys.executable, "-c", STRANGER,
                           ",".join(map(str, [EGRESS_UID, *pids])), *map(str, files)],
                          capture_output=True, text=True, check=True, timeout=PATIENCE_MS / 1000).stdout
    assert seen == "done\n"
