"""test_leaks.py - the leak checker finds each kind of leftover when one is planted."""

import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import pytest

import leaks
from warden import cgroup_trees, wait_for

UIDS = 16
CLONE_NEWNET, CLONE_NEWNS = 0x40000000, 0x00020000
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 2, 0x1000
MS_PRIVATE_ALL = 0x4000 | 0x40000  # MS_REC | MS_PRIVATE

libc = ctypes.CDLL(None, use_errno=True)


class Place:
    """Folders and names like a warden's, without a warden."""

    def __init__(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="hotcell-"))
        (self.base / "state/vms").mkdir(parents=True)
        (self.base / "state/templates").mkdir()
        (self.base / "run/view").mkdir(parents=True)
        self.before = leaks.baseline()
        self.scope = leaks.Scope(self.base / "state", self.base / "run",
                                 f"hotcell-test-{os.getpid()}-leaks",
                                 1_900_000_000 + os.getpid() % 1000 * UIDS, UIDS)

    def kinds(self, **options):
        return {leak.kind for leak in leaks.find(self.scope, self.before, **options)}

    def remove(self):
        shutil.rmtree(self.base)


@pytest.fixture
def place():
    found = Place()
    yield found
    assert found.kinds() == set()
    found.remove()


def spawn(prepare):
    """A child that calls prepare() and then waits to be ended; returns it once prepared."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        try:
            prepare()
            theirs.sendall(b"+")
        except BaseException as e:  # noqa: B902 - reported to the parent
            theirs.sendall(repr(e).encode())
        signal.pause()
    theirs.close()
    said = ours.recv(1000)
    ours.close()
    if said != b"+":
        end(pid)
        pytest.fail(f"the child could not prepare: {said}")
    return pid


def end(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def test_nothing_is_found_where_nothing_is(place):
    assert leaks.find(place.scope) == []


def test_process_by_uid(place):
    pid = spawn(lambda: os.setresuid(*[place.scope.uid_base + UIDS - 1] * 3))
    assert place.kinds() == {"process"}
    end(pid)
    pid = spawn(lambda: os.setresuid(*[place.scope.uid_base + UIDS] * 3))  # not of the range
    assert place.kinds() == set()
    end(pid)


def test_process_and_group_by_control_group(place):
    groups = [tree / place.scope.cgroup / "vm1" for tree in cgroup_trees()]
    for group in groups:
        group.mkdir(parents=True)
    assert place.kinds() == {"cgroup"}
    pid = spawn(lambda: None)
    (groups[0] / "cgroup.procs").write_text(str(pid))
    assert place.kinds() == {"cgroup", "process"}
    assert place.kinds(keep=["vm1"]) == set()
    assert place.kinds(keep=["vm2"]) == {"cgroup", "process"}
    end(pid)
    for group in groups:
        wait_for(lambda g=group: not (g / "cgroup.procs").read_text(), "the group is empty")
        group.rmdir()
        group.parent.rmdir()


def test_zombie(place):
    pid = spawn(lambda: os.setresuid(*[place.scope.uid_base] * 3))
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    found = leaks.find(place.scope, place.before)
    assert [leak.kind for leak in found] == ["process"] and "zombie" in found[0].what
    os.waitpid(pid, 0)


def mount_view(place):
    """What a job of warden inherits: a mount namespace with a mount below run_dir."""
    check(libc.unshare(CLONE_NEWNS))
    check(libc.mount(None, b"/", None, MS_PRIVATE_ALL, None))
    check(libc.mount(b"view", str(place.scope.run / "view").encode(), b"tmpfs", 0, None))


def test_orphan_of_warden(place):
    pid = spawn(lambda: mount_view(place))
    assert place.kinds() == {"process", "mount", "namespace"}
    end(pid)


def test_mount_on_the_host(place):
    at = str(place.scope.run / "view").encode()
    check(libc.mount(b"view", at, b"tmpfs", 0, None))
    found = place.kinds()
    check(libc.umount2(at, 0))
    assert found == {"mount"}


def open_tap():
    fd = os.open("/dev/net/tun", os.O_RDWR)
    request = ctypes.create_string_buffer(b"tap0".ljust(16, b"\0") +
                                          (IFF_TAP | IFF_NO_PI).to_bytes(2, "little"), 40)
    check(libc.ioctl(fd, TUNSETIFF, request))


def test_network_namespace_and_tap(place):
    def prepare():
        check(libc.unshare(CLONE_NEWNET))
        open_tap()
        os.setresuid(*[place.scope.uid_base] * 3)

    pid = spawn(prepare)
    found = leaks.find(place.scope, place.before)
    assert {leak.kind for leak in found} == {"process", "namespace", "interface", "tap"}
    assert any(leak.what.startswith("tap0 in net:[") for leak in found)
    end(pid)


def test_namespace_held_by_a_client(place):
    """By a descriptor of it, and by a socket made in it; of a process that is named."""
    pid = spawn(lambda: check(libc.unshare(CLONE_NEWNET)))
    fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    end(pid)
    assert place.kinds() == set()
    assert place.kinds(also=[os.getpid()]) == {"namespace"}
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    sock = spawn(lambda: (check(libc.setns(fd, 0)), socket.socket().detach(), os.close(fd),
                          check(libc.setns(home, 0))))
    os.close(fd)
    os.close(home)
    assert place.kinds(also=[os.getpid()]) == set()
    assert place.kinds(also=[sock]) == {"namespace"}
    end(sock)


def test_files(place):
    state = place.scope.state
    (state / "vms/vm1").mkdir()
    assert place.kinds() == {"file"} and place.kinds(keep=["vm1"]) == set()
    (state / "vms/vm1").rmdir()
    (state / "templates/.build-t1").mkdir()
    assert place.kinds() == {"file"}
    (state / "templates/.build-t1").rmdir()
    (state / "templates/t1").mkdir()
    assert place.kinds() == set()  # published: it stays
    os.chown(state / "templates/t1", place.scope.uid_base + 1, 0)
    assert place.kinds() == {"file"}
    (state / "templates/t1").rmdir()


def test_socket(place):
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(place.scope.run / "warden.sock"))
    assert place.kinds() == {"socket"}
    sock.close()


def test_deleted_file(place):
    path = place.scope.state / "gone"
    with open(path, "wb"):
        path.unlink()
        assert place.kinds() == {"deleted file"}


def run_program(place, *more):
    scope = place.scope
    return subprocess.run([sys.executable, leaks.__file__, "--state", scope.state, "--run",
                           scope.run, "--cgroup", scope.cgroup, "--uid-base", str(scope.uid_base),
                           "--uids", str(scope.uids), *more], capture_output=True, text=True)


def test_program(place):
    saved = place.base / "baseline"
    assert run_program(place, "--save", saved).returncode == 0
    clean = run_program(place, "--baseline", saved)
    assert (clean.returncode, clean.stdout) == (0, "")
    (place.scope.state / "vms/vm1").mkdir()
    dirty = run_program(place, "--grace", "0")
    assert dirty.returncode == 1 and "vms/vm1 (no such VM is kept)" in dirty.stdout
    listed = run_program(place, "--grace", "0", "--json")
    assert [leak["kind"] for leak in json.loads(listed.stdout)] == ["file"]
    (place.scope.state / "vms/vm1").rmdir()
