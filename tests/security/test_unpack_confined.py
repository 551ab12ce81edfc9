"""test_unpack_confined.py - what someone gets whose layer has taken over hotcell-unpack: read from the kernel while
the program stands still, because nobody takes what it says."""

import fcntl
import os
import pathlib
import re
import subprocess

import pytest

import hostile_images as hostile
import seccomp
import unpacked
from unpacked import NOBODY
from warden import is_sanitized, wait_for

F_SETPIPE_SZ = 1031
PAGE = 4096
# name: number and arguments, on x86-64
FORBIDDEN = {
    "open": (2,), "openat": (257,), "openat2": (437,), "creat": (85,), "memfd_create": (319,), "socket": (41, 1),
    "socket AF_INET": (41, 2), "socketpair": (53, 1), "connect": (42,), "sendmsg": (46,), "recvmsg": (47,), "execve": (59,),
    "execveat": (322,), "fork": (57,), "vfork": (58,), "clone": (56, 0x11), "clone a thread": (56, 0x10000), "kill": (62, 1, 9),
    "ptrace": (101,), "prctl": (157, 38), "mount": (165,), "unshare": (272,), "chroot": (161,), "bpf": (321,), "io_uring_setup": (425,),
    "mmap code": (9, 0, PAGE, 5), "mprotect code": (10, 0, PAGE, 5), "setrlimit": (160, 4), "prlimit64": (302, 0, 4, 1), "unlink": (87,),
    "rename": (82,), "mknod": (133,), "fchmod": (91,), "fchown": (93,), "fsetxattr": (190,), "linkat": (265,), "symlink": (88,),
    "process_vm_writev": (311,), "pidfd_getfd": (438,), "ioctl FICLONE": (16, 0, 0x40049409), "dup2": (33,), "pipe2": (293,)}
NEEDED = {"read": (0,), "write": (1,), "pread64": (17,), "pwrite64": (18,), "fallocate": (285,), "exit_group": (231,), "mmap": (9, 0, PAGE, 3)}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """The program in the middle of its work: it has read a layer, and waits for somebody to take its first line."""
    place = tmp_path_factory.mktemp("stopped")
    (place / "layer").write_bytes(hostile.BASE)
    (place / "agent").write_bytes(b"agent")
    (place / "disk").write_bytes(b"")
    out, into = os.pipe()
    fcntl.fcntl(into, F_SETPIPE_SZ, PAGE)
    os.write(into, b"\n" * PAGE)
    child = subprocess.Popen(unpacked.launch(place, [place / "layer"], 64, into, False), cwd=place, pass_fds=[into])
    os.close(into)
    wait_for(lambda: pathlib.Path(f"/proc/{child.pid}/syscall").read_text().startswith("1 0x4 "), "it waits to be heard")
    yield child.pid
    with os.fdopen(out) as f:
        assert '{"ok":' in f.read().splitlines()[-1]
    assert child.wait(timeout=30) == 0


def status(pid):
    return dict(re.findall(r"^(\w+):[ \t]*(.*)$", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M))


def test_it_has_no_privileges(stopped):
    said = status(stopped)
    assert (said["NoNewPrivs"], said["Groups"].strip()) == ("1", "")
    assert {said[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    assert set(said["Uid"].split()) == set(said["Gid"].split()) == {str(NOBODY)}


def test_it_has_what_it_was_given_and_nothing_else(stopped):
    assert {int(fd) for fd in os.listdir(f"/proc/{stopped}/fd")} == {0, 1, 2, 3, 4, 5, 10}


@pytest.mark.skipif(is_sanitized(), reason="sanitizers need what the limits take")
def test_it_has_limits(stopped):
    limits = {line[:26].strip(): line[26:].split()[:2] for line in pathlib.Path(f"/proc/{stopped}/limits").read_text().splitlines()[1:]}
    assert limits["Max address space"] == [str(1 << 30)] * 2
    assert limits["Max file size"] == [str(64 << 20)] * 2
    assert limits["Max cpu time"] == ["910"] * 2
    assert limits["Max core file size"] == ["1"] * 2 and limits["Max processes"] == ["0"] * 2
    assert limits["Max open files"] == ["11"] * 2


@pytest.mark.skipif(is_sanitized(), reason="sanitizers make calls that nobody can list")
def test_it_can_call_little(stopped):
    filters = seccomp.read_filters(stopped)
    allowed = [name for name, call in FORBIDDEN.items() if seccomp.verdict(filters, call[0], call[1:])[0] == "allow"]
    assert allowed == []
    assert [name for name, call in NEEDED.items() if seccomp.verdict(filters, call[0], call[1:])[0] != "allow"] == []


@pytest.mark.skipif(is_sanitized(), reason="sanitizers make calls that nobody can list")
def test_calls_by_another_architecture_end_it(stopped):
    filters = seccomp.read_filters(stopped)
    assert seccomp.verdict(filters, 11, arch=seccomp.I386)[0] == "kill"
