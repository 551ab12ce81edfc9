"""What Hotcell asks of a host: KVM, cgroup v2, namespaces, seccomp, nftables."""

import ctypes
import fcntl
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

CGROUP = pathlib.Path("/sys/fs/cgroup")
KVM_GET_API_VERSION = 0xAE00
GUEST_KERNEL = os.environ.get("HOTCELL_GUEST_KERNEL", "/hotcell/guest/vmlinux")
BOOT_SECONDS = 120


def run(*command, seconds=60, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, **options)


def in_namespaces(script):
    """Runs a shell script in fresh network, pid, ipc and mount namespaces."""
    return run("unshare", "--net", "--pid", "--ipc", "--mount", "--mount-proc", "--fork",
               "bash", "-euc", textwrap.dedent(script))


@pytest.fixture
def group():
    """A leaf group with the controllers that a sandbox gets."""
    parent = CGROUP / "hotcell-test.slice"
    leaf = parent / "sandbox"
    parent.mkdir()
    (parent / "cgroup.subtree_control").write_text("+memory +cpu +pids +io")
    leaf.mkdir()
    yield leaf
    (leaf / "cgroup.kill").write_text("1")
    while "populated 1" in (leaf / "cgroup.events").read_text():
        os.sched_yield()
    leaf.rmdir()
    parent.rmdir()


def in_group(group, *command):
    """Runs a command that moves itself into the group first."""
    return run("bash", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', str(group), *command)


def test_kvm_answers():
    with open("/dev/kvm", "rb+", buffering=0) as kvm:
        assert fcntl.ioctl(kvm, KVM_GET_API_VERSION) == 12


def test_kvm_boots_the_guest_kernel():
    result = run("qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot",
                 "-display", "none", "-serial", "stdio", "-M", "microvm,acpi=off,rtc=on",
                 "-accel", "kvm", "-cpu", "host", "-m", "256", "-kernel", GUEST_KERNEL,
                 # A microvm without ACPI can be reset by a triple fault only.
                 "-append", "console=ttyS0 quiet panic=-1 reboot=t", seconds=BOOT_SECONDS)
    # Without a disk a kernel gets as far as looking for one.
    assert "Unable to mount root fs" in result.stdout, result.stdout + result.stderr


def test_cgroup_limits_can_be_set(group):
    for name, value in (("memory.max", "67108864"), ("memory.swap.max", "0"),
                        ("cpu.max", "50000 100000"), ("pids.max", "8")):
        (group / name).write_text(value)
        assert (group / name).read_text().strip() == value
    assert (group / "io.stat").exists()


def test_cgroup_pids_max_holds(group):
    (group / "pids.max").write_text("1")
    result = in_group(group, "python3", "-c", "import os; os.fork()")
    assert "BlockingIOError" in result.stderr


def test_cgroup_memory_max_holds(group):
    (group / "memory.max").write_text(str(32 << 20))
    (group / "memory.swap.max").write_text("0")
    result = in_group(group, "python3", "-c", "b'x' * (64 << 20)")
    assert result.returncode == -9
    assert "oom_kill 1" in (group / "memory.events").read_text()


def test_namespaces_are_separate():
    result = in_namespaces("""
        mount -t tmpfs none /mnt
        echo pid=$$ links=$(ls /sys/class/net 2>/dev/null | wc -l)
        ip -o link | wc -l
        """)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("pid=1 ")
    assert result.stdout.splitlines()[-1] == "1"
    assert not os.path.ismount("/mnt")


def test_tap_in_a_namespace():
    result = in_namespaces("""
        ip tuntap add dev tap0 mode tap user 12345 vnet_hdr
        ip address add 169.254.1.1/30 dev tap0
        ip link set tap0 up
        ip -d link show tap0
        """)
    assert result.returncode == 0, result.stderr
    assert "tun type tap" in result.stdout


def test_nft_redirects_in_a_namespace():
    result = in_namespaces("""
        ip link set lo up
        nft -f - <<'.'
        table ip gate {
            chain out {
                type nat hook output priority -100;
                tcp dport 80 redirect to :2000
            }
        }
        .
        python3 - <<'.'
        import socket
        server = socket.create_server(("127.0.0.1", 2000))
        client = socket.create_connection(("127.0.0.1", 80), 5)
        accepted, peer = server.accept()
        original = accepted.getsockopt(socket.SOL_IP, 80, 16)  # SO_ORIGINAL_DST
        print("meant for port", int.from_bytes(original[2:4], "big"))
        .
        """)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "meant for port 80\n"


class Notification(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64), ("rest", ctypes.c_uint8 * 72)]


class Answer(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64), ("value", ctypes.c_int64),
                ("error", ctypes.c_int32), ("flags", ctypes.c_uint32)]


def answer_one_call():
    """In a process of its own: a thread answers the system call that another makes."""
    import threading
    act_allow, act_notify, getppid = 0x7FFF0000, 0x7FC00000, 110
    seccomp = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    seccomp.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(act_allow)))
    loaded = threading.Event()

    def answer():
        loaded.wait()
        descriptor = seccomp.seccomp_notify_fd(context)
        asked = Notification()
        assert seccomp.seccomp_notify_receive(descriptor, ctypes.byref(asked)) == 0
        answered = Answer(id=asked.id, value=4711)
        assert seccomp.seccomp_notify_respond(descriptor, ctypes.byref(answered)) == 0

    threading.Thread(target=answer, daemon=True).start()
    assert seccomp.seccomp_rule_add(context, ctypes.c_uint32(act_notify), getppid, 0) == 0
    assert seccomp.seccomp_load(context) == 0
    loaded.set()
    # Not os.getppid(), which would keep the other thread out of the interpreter.
    print(ctypes.CDLL(None).getppid())


def test_seccomp_notifies_another_thread():
    result = run(sys.executable, __file__)
    assert result.stdout == "4711\n", result.stderr


if __name__ == "__main__":
    answer_one_call()
