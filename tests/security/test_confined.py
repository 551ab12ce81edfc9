"""test_confined.py - what someone gets who has taken over a daemon: another user, no capabilities, no
files, few system calls. Read from the outside, of the daemon as it runs."""

import contextlib
import errno
import os
import pathlib
import re
import shutil
import socket
import tempfile

import pytest

import seccomp
from daemon import Daemon, free_port
from egress import Egress
from injector import Injector
from taken import Taken
from warden import is_sanitized, wait_for

USER = 64322  # nobody's

# name: number and arguments, on x86-64
FORBIDDEN = {
    "execve": (59,), "execveat": (322,), "fork": (57,), "vfork": (58,), "clone a process": (56, 0x11),
    "clone namespaces": (56, 0x7e020000), "ptrace": (101,), "kill": (62, 1, 9), "tkill": (200, 1, 9),
    "tgkill others": (234, 1, 1, 9), "setuid": (105,), "setns": (308,), "unshare": (272,),
    "mount": (165,), "umount2": (166,), "pivot_root": (155,), "chroot": (161,), "bpf": (321,),
    "io_uring_setup": (425,), "userfaultfd": (323,), "perf_event_open": (298,), "keyctl": (250,),
    "process_vm_readv": (310,), "pidfd_getfd": (438,), "init_module": (175,), "kexec_load": (246,),
    "open_by_handle_at": (304,), "bind": (49,), "listen": (50,), "seccomp": (317,),
    "socket AF_NETLINK": (41, 16), "socket AF_PACKET": (41, 17), "socket AF_VSOCK": (41, 40),
    "socket AF_INET6": (41, 10), "mmap code": (9, 0, 4096, 5), "mprotect code": (10, 0, 4096, 5),
    "ioctl TIOCSTI": (16, 0, 0x5412), "prctl": (157, 38), "socketpair AF_INET": (53, 2),
    "socketpair AF_TIPC": (53, 30), "setrlimit": (160, 4), "prlimit64": (302, 0, 4, 1),
}
# Node and gateway have doors of their own: gateways' and operators' unix sockets.
LISTENS = ("node", "gateway")
NEEDED = {"read": (0,), "write": (1,), "close": (3,), "epoll_wait": (232,), "exit_group": (231,),
          "futex": (202,), "mmap": (9, 0, 4096, 3), "recvmsg": (47,), "sendmsg": (46,)}


@contextlib.contextmanager
def lone_egress():
    with Egress(user=USER, told=False) as egress:
        egress.start()
        yield egress.pid
        egress.end()


@contextlib.contextmanager
def lone_injector():
    it = Injector(user=USER, told=False).start()
    yield it.process.pid
    it.end()


def filters_of(pid):
    return int(re.search(r"^Seccomp_filters:\t(\d+)$", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1])


@contextlib.contextmanager
def lone_worker():
    it = Injector(user=USER, told=False).start()
    channel = it.worker({"example.com": []})
    try:
        forkserver, (pid,) = it.processes()
        wait_for(lambda: filters_of(pid) == filters_of(forkserver) + 1, "a filter of its own, beside those it was born with")
        yield pid
    finally:
        channel.sock.close()
        it.end()


@contextlib.contextmanager
def lone(name, **settings):
    """A daemon by itself: nobody answers where it looks for the others."""
    base = pathlib.Path(tempfile.mkdtemp(prefix="hotcell-confined-", dir=os.environ.get("HOTCELL_TEST_DIR")))
    base.chmod(0o755)
    (base / "state").mkdir()
    it = Daemon(name, base, {"user": USER, **settings_below(base, {"data_dir": "./data", **settings})}, told=False)
    it.launch()
    try:
        wait_for(lambda: it.check_alive() or (filters_of(it.pid) == 2 and it), "it gave up its power")
        yield it.pid
        it.check_alive()
    finally:
        it.kill()
        shutil.rmtree(base)


def settings_below(base, settings):
    return {key: base / value[2:] if str(value).startswith("./") else value for key, value in settings.items() if value is not None}


def lone_node():
    return lone("node", state_dir="./state", socket="./node.sock", warden_socket="./warden.sock",
                egress_socket="./egress.sock", gateway_uid=USER, gateway_gid=USER)


def lone_gateway():
    return lone("gateway", listen=f"127.0.0.1:{free_port()}", node_socket="./node.sock", admin_socket="./admin.sock")


def lone_signer():
    return lone("signer", data_dir=None, tls_dir="./state", socket="./signer.sock")


def lone_images():
    return lone("images", socket="./images.sock")


# Every daemon: how to run one with `user` set to USER; yields its pid.
DAEMONS = {"egress": lone_egress, "injector": lone_injector, "injector's worker": lone_worker, "node": lone_node,
           "gateway": lone_gateway, "signer": lone_signer, "images": lone_images}


@pytest.fixture(scope="module", params=DAEMONS)
def daemon(request):
    with DAEMONS[request.param]() as pid:
        yield pid


@pytest.fixture(scope="module")
def status(daemon):
    text = pathlib.Path(f"/proc/{daemon}/status").read_text()
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def test_it_is_the_user_and_nobody_else(status):
    assert status["Uid"].split() == status["Gid"].split() == [str(USER)] * 4
    assert status["Groups"].strip() == ""


def test_it_has_no_capability_and_gets_none(status):
    for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[kind], 16) == 0, kind
    assert status["NoNewPrivs"] == "1"


def test_no_core_of_it_is_written(daemon):
    """A limit of 0 would not keep the kernel from piping one to a program; 1 does, and so does not being dumpable:
    what is in its /proc folder is root's then."""
    limits = pathlib.Path(f"/proc/{daemon}/limits").read_text()
    assert re.search(r"^Max core file size +1 +1 +bytes", limits, re.M), limits
    assert is_sanitized() or os.stat(f"/proc/{daemon}/environ").st_uid == 0


def test_every_thread_is_filtered(daemon):
    for thread in pathlib.Path(f"/proc/{daemon}/task").iterdir():
        text = (thread / "status").read_text()
        assert "\nSeccomp:\t2\n" in text and "\nNoNewPrivs:\t1\n" in text


@pytest.fixture(scope="module")
def filters(daemon):
    if is_sanitized():
        pytest.skip("a build with sanitizers allows what they need")
    try:
        return seccomp.read_filters(daemon)
    except OSError as e:
        if e.errno in (errno.EIO, errno.EINVAL):
            pytest.skip("this kernel does not show filters")
        raise


@pytest.mark.parametrize("call", FORBIDDEN)
def test_a_call_it_has_no_business_with_fails(request, filters, call):
    if call in ("bind", "listen") and request.node.callspec.params["daemon"] in LISTENS:
        pytest.skip("it has doors")
    number, *args = FORBIDDEN[call]
    assert seccomp.verdict(filters, number, args) == ("errno", errno.EPERM)


def test_threads_fall_back_to_a_call_that_can_be_checked(filters):
    assert seccomp.verdict(filters, 435) == ("errno", errno.ENOSYS)


@pytest.mark.parametrize("call", NEEDED)
def test_a_call_it_needs_works(filters, call):
    number, *args = NEEDED[call]
    assert seccomp.verdict(filters, number, args)[0] == "allow"


def test_other_doors_into_the_kernel_are_deadly(filters):
    assert seccomp.verdict(filters, 11, arch=seccomp.I386)[0] == "kill"
    assert seccomp.verdict(filters, 0x40000000 | 59)[0] in ("kill", "errno")


@pytest.mark.skipif(is_sanitized(), reason="a build with sanitizers allows what they need")
@pytest.mark.parametrize("who", [lone_node, lone_gateway])
def test_node_and_gateway_cannot_call_anybody(who):
    """Taken over, they cannot even reach the host's own services: what they connect they were given."""
    with who() as pid, socket.create_server(("127.0.0.1", 0)) as service, Taken(pid) as taken:
        for family in (socket.AF_INET, socket.AF_INET6):
            with pytest.raises(PermissionError):
                fd = taken.call("socket", family, socket.SOCK_STREAM, 0)
                at = b"\x02\0" + service.getsockname()[1].to_bytes(2, "big") + b"\x7f\0\0\1" + bytes(8)
                taken.call("connect", fd, taken.place(at), len(at))
                raise AssertionError("it is connected")
        assert taken.call("socket", socket.AF_UNIX, socket.SOCK_STREAM, 0) >= 0


def test_egress_holds_no_file_and_no_folder():
    """Sockets, event descriptors, its log: nothing else survives confinement."""
    with lone_egress() as pid:
        targets = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    kept = [t for t in targets if not t.startswith(("socket:", "anon_inode:", "pipe:", "/dev/null"))]
    assert [t for t in kept if not t.endswith("/log")] == []


@pytest.mark.parametrize("who", [lone_injector, lone_worker])
def test_the_injector_and_its_workers_make_no_connection_and_open_no_file(who):
    with who() as pid:
        if is_sanitized():
            pytest.skip("a build with sanitizers allows what they need")
        filters = seccomp.read_filters(pid)
        for number, *args in ((41, 1), (41, 2), (42,), (257,), (2,)):  # socket, connect, openat, open
            assert seccomp.verdict(filters, number, args) == ("errno", errno.EPERM)
