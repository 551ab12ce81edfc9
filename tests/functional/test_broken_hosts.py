"""test_broken_hosts.py - a host that lacks something says so: which component, what is wrong, what to do.

One row for each broken host: how it is broken (in namespaces and folders of its own), what is run (`hotcell doctor`, or a
daemon that is started), and what must be said. A host that is not broken must say none of it. Nothing here needs a VM, and
nothing outside is asked: all of it runs in a network of its own, whose only resolver would be on its loopback.

docs/operations.md, "When something is wrong", has what operators see: each symptom there has rows here, or a test elsewhere.

HOTCELL_BROKEN=all: every row; without it those that are marked, for CI.
"""

import contextlib
import dataclasses
import errno
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import tempfile
import time

import pytest

from certs import Authority, put
from warden import build_dir, cgroup_trees, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can break a host in namespaces")

TESTS = pathlib.Path(__file__).resolve().parent.parent
NOBODY = 65534
SECONDS = 120  # longer than all limits of doctor's together: programs, questions to resolvers and to the gateway
START_SECONDS = 60
PORT = 39411
CGROUP = f"hotcell-broken-{os.getpid()}"
RESOLVER = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 53))
print("ready", flush=True)
while True:
    data, peer = s.recvfrom(512)
    s.sendto(data[:2] + b"\\x81\\x80" + data[4:], peer)
"""
LISTENER = """
import socket, sys, time
s = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
time.sleep(60)
"""


@dataclasses.dataclass
class Row:
    """What is said must have every text of `says`; of doctor in the line, and the fix, of one check."""
    name: str
    run: str                 # "doctor CHECK VERDICT", or the name of a daemon
    says: tuple              # cause and fix
    shell: str = "true"      # breaks it, in namespaces of its own
    files: object = None     # breaks it in the folder of the test: called with the host
    ci: bool = False
    before: tuple = ()       # words before the command
    env: dict = dataclasses.field(default_factory=dict)


class Host:
    """An installation in a folder: what the daemons are configured to have, without a daemon."""

    def __init__(self, base):
        self.base, self.conf = base, base / "conf"
        self.conf.mkdir()
        base.chmod(0o755)
        self.program = build_dir() / "src/cli/hotcell"
        self.held = []
        for name in ("state", "node", "gateway", "injector", "images", "tls", "run"):
            (base / name).mkdir()
        for name in ("node", "gateway", "injector", "images"):
            os.chown(base / name, NOBODY, NOBODY)
        for name in ("vmlinux", "disk.raw"):
            (base / name).write_bytes(b"x")
        self.set("warden", state_dir=base / "state", run_dir=base / "run", cgroup=CGROUP, allow_emulation="yes")
        self.set("node", state_dir=base / "state", data_dir=base / "node", socket=base / "node.sock", warden_socket=base / "run/warden.sock",
                 egress_socket=base / "egress.sock", kernel=base / "vmlinux", disk=base / "disk.raw", user=NOBODY)
        self.set("gateway", listen=f"127.0.0.1:{PORT}", node_socket=base / "node.sock", data_dir=base / "gateway", admin_socket=base / "admin.sock",
                 tls_dir=base / "tls", user=NOBODY)
        self.set("egress", socket=base / "egress.sock", user=NOBODY)
        self.set("injector", socket=base / "injector.sock", state_dir=base / "injector", user=NOBODY)
        self.set("images", socket=base / "images.sock", data_dir=base / "images", user=NOBODY)
        (base / "resolv.conf").write_text("nameserver 127.0.0.1\n")

    def set(self, daemon, **settings):
        """Those of before stay, unless they are said again."""
        path = self.conf / f"{daemon}.conf"
        was = dict(line.split(" = ", 1) for line in path.read_text().splitlines()) if path.exists() else {}
        was.update({key: str(value) for key, value in settings.items()})
        path.write_text("".join(f"{key} = {value}\n" for key, value in was.items()))

    def command(self, row):
        if row.run.startswith("doctor"):
            return [self.program, "doctor", "--json", "--conf", self.conf, "--socket", self.base / "admin.sock"]
        return [build_dir() / f"src/{row.run}/hotcell-{row.run}", self.conf / f"{row.run}.conf"]

    def script(self, row):
        """Its own mounts and network, what breaks it, and what is run."""
        words = " ".join(f"'{w}'" for w in (*row.before, *self.command(row)))
        return (f"cd {self.base} && ip link set lo up && mount --bind resolv.conf $(realpath /etc/resolv.conf) && "
                f"{{ {row.shell}; }} && {words}")

    @contextlib.contextmanager
    def begun(self, row, **env):
        """Its process, with what it says in files; what it began is ended with it."""
        with open(self.base / "out", "w") as out, open(self.base / "err", "w") as err:
            p = subprocess.Popen(["unshare", "--mount", "--net", "bash", "-c", self.script(row)], stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                                 env={"PATH": os.environ["PATH"], **row.env, **env}, start_new_session=True)
        try:
            yield p
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)
            p.wait()

    def said(self):
        return (self.base / "out").read_text(), (self.base / "err").read_text()

    def run(self, row):
        """Standard output and error, and the exit status; None: it does not end, as a daemon that started in spite of it."""
        with self.begun(row) as p, contextlib.suppress(subprocess.TimeoutExpired):
            p.wait(SECONDS)
            return *self.said(), p.returncode
        return *self.said(), None

    def starts(self, row):
        """Does that daemon say that it is ready? And standard error."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.bind(str(self.base / "notify"))
            (self.base / "notify").chmod(0o777)
            told.settimeout(0.2)
            ready, end = False, time.monotonic() + START_SECONDS
            with self.begun(row, NOTIFY_SOCKET=str(self.base / "notify")) as p:
                while not ready and p.poll() is None and time.monotonic() < end:
                    with contextlib.suppress(TimeoutError):
                        ready = b"READY=1" in told.recv(4096)
            return ready, self.said()[1]

    def close(self):
        for process in self.held:
            process.kill()
            process.wait()
        wait_for(lambda: all(remove_group(tree / CGROUP) for tree in cgroup_trees()), "the groups of a warden without VMs are empty")


def remove_group(group):
    """False: a process that was killed is not quite gone."""
    with contextlib.suppress(FileNotFoundError):
        for folder, _, _ in os.walk(group, topdown=False):
            try:
                os.rmdir(folder)
            except OSError as e:
                if e.errno != errno.EBUSY:
                    raise
                return False
    return True


def lock(folder):
    def break_it(host):
        code = f"import fcntl, os, time; fd = os.open('{host.base / folder}', os.O_RDONLY); fcntl.flock(fd, fcntl.LOCK_EX); print('held', flush=True); time.sleep(60)"
        p = subprocess.Popen(["/usr/bin/python3", "-I", "-c", code], stdout=subprocess.PIPE)
        assert p.stdout.readline() == b"held\n"
        host.held.append(p)
    return break_it


def qemu(version, says="echo 'QEMU emulator version {}'"):
    def break_it(host):
        path = host.base / "qemu"
        if version:
            path.write_text(f"#!/bin/sh\n{says.format(version)}\n")
            path.chmod(0o755)
        host.set("warden", qemu=path)
    return break_it


def database(path, data):
    def break_it(host):
        (host.base / path).write_bytes(data)
        os.chown(host.base / path, NOBODY, NOBODY)
    return break_it


def template(memory):
    def break_it(host):
        folder = host.base / "state/templates/t1"
        folder.mkdir(parents=True)
        for name in ("kernel", "disk", "overlay", "state", "manifest"):
            (folder / name).write_text("x")
        (folder / "memory").write_text(memory)
    return break_it


def certificate(days=10, other_key=False):
    def break_it(host):
        authority = Authority(host.base)
        pair = authority.issue("a.example", days=days)
        put(host.base / "tls", "a.example", pair._replace(key=authority.issue("b.example").key) if other_key else pair, NOBODY)
    return break_it


def settings(daemon, **values):
    return lambda host: host.set(daemon, **{k: v.replace("BASE", str(host.base)) if isinstance(v, str) else v for k, v in values.items()})


def mode(path, bits, owner=None):
    def break_it(host):
        if owner is not None:
            os.chown(host.base / path, owner, owner)
        (host.base / path).chmod(bits)
    return break_it


def unit(name, active, sub):
    """systemd is played, and says this of that unit; of others that it never looked at them."""
    def break_it(host):
        (host.base / "bin").mkdir()
        (host.base / "bin/systemctl").write_text(
            f'#!/bin/sh\ncase "$*" in *{name}.service) set -- {active} {sub} 7 yes ;; *) set -- inactive dead 0 no ;; esac\n'
            "printf '%s\\n' ActiveState=$1 SubState=$2 NRestarts=0 ConditionTimestampMonotonic=$3 ConditionResult=$4\n")
        (host.base / "bin/systemctl").chmod(0o755)
    return break_it


def early(host):
    """The program was installed the day after tomorrow: so the clock is wrong."""
    copy = host.base / "hotcell"
    shutil.copy(host.program, copy)
    os.utime(copy, (time.time() + 3 * 86400,) * 2)
    host.program = copy


def closed_above(host):
    (host.base / "closed/data").mkdir(parents=True)
    os.chown(host.base / "closed/data", NOBODY, NOBODY)
    (host.base / "closed").chmod(0o700)
    host.set("node", data_dir=host.base / "closed/data")


def file(name, text):
    return lambda host: (host.base / name).write_text(text)


def whole(host):
    """With one of all that rows break: a template, a certificate, databases, a registry."""
    template(memory="x")(host)
    certificate(days=25)(host)
    host.set("images", default_registry="10.9.9.9:5000", networks="10.9.9.9/32", resolvers="127.0.0.1")
    for path in ("node/journal.db", "gateway/store.db"):
        with contextlib.closing(sqlite3.connect(host.base / path)) as db:
            db.execute("CREATE TABLE t (c)")
        os.chown(host.base / path, NOBODY, NOBODY)


# what is read of the kernel, as another host has it
def fake(path, text):
    name = "fake" + path.replace("/", "-")
    return f"printf '{text}' >{name} && mount --bind {name} {path}"


def meminfo(available=8 << 20, swap=0):
    return fake("/proc/meminfo", f"MemTotal: {16 << 20} kB\\nMemAvailable: {available} kB\\nSwapTotal: {swap} kB\\n")


def masked(call):
    """python3 as a launcher: the call is not there for what it becomes."""
    code = f"""
import ctypes, os, struct, sys
rows = [(0x20, 0, 0, 0), (0x15, 0, 1, {call}), (6, 0, 0, 0x50000 | 38), (6, 0, 0, 0x7fff0000)]
text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *r) for r in rows))
libc = ctypes.CDLL(None)
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(rows), ctypes.addressof(text)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""
    return ("/usr/bin/python3", "-I", "-c", code.replace("'", '"'))


def begun(command, file, says="ready"):
    """It runs behind the rest, as $begun, and has said that in its file: in that of this run."""
    look = f"grep -qs '{says}' {file}"
    return (f"rm -f {file} && {{ {command} >{file} 2>&1 & }} && begun=$! && "
            f"for i in $(seq 300); do {{ {look} || ! kill -0 $begun; }} && break; sleep 0.1; done && {look}")


V1_WITHOUT_MEMORY = "mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/cpu /sys/fs/cgroup/pids"
FULL = "mount -t tmpfs -o size=1m,mode=755,uid={uid} none {folder} && head -c 2m /dev/zero >{folder}/x 2>/dev/null; true"
CPUINFO = fake("/proc/cpuinfo", "flags : fpu vmx sse\\n")
NO_GROUP = "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/urandom c 1 9 && mknod -m 660 /dev/kvm c 10 232"
AS_NOBODY = ("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")
ANSWERS = begun(f"/usr/bin/python3 -I -S -c '{RESOLVER}'", "names")
TAKEN = begun(f"/usr/bin/python3 -I -S -c '{LISTENER}' 127.0.0.1 {PORT}", "taken")
REGISTRY = ("ip addr add 10.9.9.9/32 dev lo && " + begun(f"/usr/bin/python3 -I -S -c '{LISTENER}' 10.9.9.9 5000", "registry") + " && "
            f"{build_dir()}/src/images/hotcell-images --nft conf/images.conf | nft -f -")
GATEWAY = begun(f"{build_dir()}/src/gateway/hotcell-gateway conf/gateway.conf", "gateway.log", "listening on")
OTHER_JOURNAL = (begun(f"{build_dir()}/src/node/hotcell-node conf/node.conf", "node.log", "this installation is") +
                 " && kill $begun && { wait $begun; true; } && echo 00000000000000000000000000000000 >node/installation")
# what the rows change of the kernel's files, as it is on a host that has none of it
WHOLE = " && ".join([ANSWERS, meminfo(), *(f"{{ [ ! -e {path} ] || {{ {fake(path, '0' + chr(92) + 'n')}; }}; }}" for path in (
    "/proc/sys/vm/overcommit_memory", "/sys/kernel/mm/ksm/run", "/sys/devices/system/cpu/smt/active"))])
DOCTOR = "fix: `hotcell doctor`"  # what a daemon says that has no better advice

ROWS = [
    Row("no tun", "doctor tun FAIL", ("/dev/net/tun: No such file", "modprobe tun"), "mount -t tmpfs none /dev/net", ci=True),
    Row("tun is another device", "doctor tun FAIL", ("not the kernel's", "modprobe tun"), "mount --bind /dev/null /dev/net/tun"),
    Row("no nft", "doctor nft FAIL", ("/usr/sbin/nft does not run", "install nftables"), "mount --bind /dev/null /usr/sbin/nft", ci=True),
    Row("nft may not load rules", "doctor nft FAIL", ("loads no rules", "CAP_NET_ADMIN"), before=("setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin")),
    Row("no memory controller", "doctor cgroups FAIL", ("no controller memory", "without cgroup_disable=memory"), V1_WITHOUT_MEMORY, ci=True),
    Row("warden without a memory controller", "warden", ("no cgroup v1 memory", DOCTOR), V1_WITHOUT_MEMORY, ci=True),
    Row("control groups are read-only", "doctor cgroups FAIL", ("/sys/fs/cgroup is read-only", "delegated"),
        f"{V1_WITHOUT_MEMORY} /sys/fs/cgroup/memory && mount -o remount,ro /sys/fs/cgroup"),
    Row("full disk", "doctor disk FAIL", ("0 MiB free for", "state_dir of warden.conf", "larger disk"), FULL.format(folder="state", uid=0), ci=True),
    Row("gateway on a full disk", "gateway", ("/gateway/gateways: No space left on device", DOCTOR), FULL.format(folder="gateway", uid=NOBODY), ci=True),
    Row("node on a full disk", "node", ("journal.db", "disk is full", DOCTOR), FULL.format(folder="node", uid=NOBODY)),
    Row("no inodes", "doctor disk FAIL", ("no inodes left", "mkfs.ext4 -N"), "mount -t tmpfs -o size=64g,nr_inodes=4 none node"),
    Row("read-only disk", "doctor filesystem FAIL", ("read-only", "state_dir of warden.conf", "mount it for writing"), "mount -t tmpfs -o ro none state"),
    Row("warden on a read-only disk", "warden", ("Read-only file system", "state/vms", DOCTOR), "mount -t tmpfs -o ro none state"),
    Row("folder in memory", "doctor filesystem warn", ("tmpfs", "gone after a reboot", "ext4, XFS or btrfs"), "mount -t tmpfs none state"),
    Row("port taken", "doctor ports FAIL", (f"port {PORT} (listen of gateway.conf) is taken by pid", "python3", "choose another"), TAKEN, ci=True),
    Row("gateway finds its port taken", "gateway", (f"127.0.0.1:{PORT}: Address already in use", DOCTOR), TAKEN),
    Row("folder of another user", "doctor folders FAIL", ("data_dir of node.conf) belongs to uid 4321, not 65534", "chown -R 65534: "), files=mode("node", 0o755, 4321), ci=True),
    Row("folder that others may write", "doctor folders FAIL", ("others may write", "chmod go-w"), files=mode("gateway", 0o777)),
    Row("folder below a closed one", "doctor folders FAIL", ("hotcell-node cannot reach", "chmod o+x"), files=closed_above),
    Row("no such user", "doctor users FAIL", ("egress.conf: there is no user nosuch", "systemd-sysusers"), files=settings("egress", user="nosuch")),
    Row("egress without its user", "egress", ("user nosuch does not exist", DOCTOR), files=settings("egress", user="nosuch")),
    Row("a daemon would run as root", "doctor users FAIL", ("gateway.conf: it would run as root", "set `user`"), files=settings("gateway", user="root")),
    Row("system call masked", "doctor calls FAIL", ("mount_setattr: Function not implemented", "let its filter of system calls pass"), before=masked(442), ci=True),
    Row("Landlock masked", "doctor landlock warn", ("not there", "CONFIG_SECURITY_LANDLOCK"), before=masked(444)),
    Row("clock off", "doctor clock FAIL", ("before this program was installed", "timedatectl set-ntp true"), files=early),
    Row("QEMU missing", "doctor qemu FAIL", ("/qemu does not run", "install qemu-system-x86 8.2"), files=qemu(None)),
    Row("warden without QEMU", "warden", ("/qemu", "install qemu-system-x86 8.2 or newer, or set qemu"), files=qemu(None)),
    Row("QEMU too old", "doctor qemu FAIL", ("7.2.11", "8.2 or newer is needed", "backports"), files=qemu("7.2.11 (Debian)")),
    Row("warden with an old QEMU", "warden", ("no QEMU 8.2 or newer", "7.2.11", DOCTOR), files=qemu("7.2.11 (Debian)"), ci=True),
    Row("QEMU never released", "doctor qemu warn", ("was never released", "install a release"), files=qemu("10.1.92 (v10.2.0-rc2)")),
    Row("QEMU hangs", "doctor qemu FAIL", ("/qemu said nothing within 10 seconds", "install qemu-system-x86 8.2"), files=qemu("8.2", "exec sleep 60")),
    Row("stale lock of node", "doctor locks warn", ("data_dir of node.conf) is in use by pid", "kill "), files=lock("node")),
    Row("node finds its folder locked", "node", ("another node uses", "/node", DOCTOR), files=lock("node")),
    Row("stale lock of warden", "doctor locks warn", ("state_dir of warden.conf) is in use by pid", "kill "), files=lock("state")),
    Row("half-written journal", "doctor journal-file FAIL", ("journal.db is no database", "hotcell-node --rebuild"), files=database("node/journal.db", b"\0" * 5000)),
    Row("node with a half-written journal", "node", ("journal.db is damaged", "hotcell-node --rebuild"), files=database("node/journal.db", b"\1" * 5000), ci=True),
    Row("journal cut off", "doctor journal-file FAIL", ("was cut off", "hotcell-node --rebuild"),
        files=database("node/journal.db", b"SQLite format 3\0" + struct.pack(">H", 4096) + b"\0" * 5000)),
    Row("half-written store", "doctor store-file FAIL", ("store.db is no database", "back from a backup"), files=database("gateway/store.db", b"\0" * 5000)),
    Row("corrupt template", "doctor template-files FAIL", ("template t1: memory is empty", "node makes `base` anew"), files=template(memory="")),
    Row("guest kernel missing", "doctor guest FAIL", ("kernel of node.conf", "No such file", "hotcell-guest"), files=lambda host: (host.base / "vmlinux").unlink()),
    Row("guest disk empty", "doctor guest FAIL", ("disk of node.conf", "is empty", "hotcell-guest"), files=file("disk.raw", "")),
    Row("template of a package not made", "doctor template-units FAIL", ("browser could not be made", "tried again", "journalctl -u hotcell-template@browser"),
        "PATH=$PWD/bin:$PATH", files=unit("hotcell-template@browser", "activating", "auto-restart")),
    Row("expired certificate", "doctor certificates FAIL", ("a.example expired", "hotcell tls renew"), files=certificate(days=-1), ci=True),
    Row("certificate of another key", "doctor certificates FAIL", ("a.example: ", "key", "hotcell tls install"), files=certificate(other_key=True)),
    Row("no resolver", "doctor dns FAIL", ("/etc/resolv.conf names no resolver", "`resolvers` of egress.conf"), files=file("resolv.conf", "# none\n")),
    Row("wrong resolver", "doctor dns FAIL", ("127.0.0.2:53", "does not answer", "`resolvers` of egress.conf"), files=file("resolv.conf", "nameserver 127.0.0.2\n")),
    Row("registry on a private address", "doctor registries FAIL", ("10.9.9.9:5000", "networks in images.conf"), REGISTRY,
        files=settings("images", default_registry="10.9.9.9:5000", resolvers="127.0.0.1")),
    Row("no skopeo", "doctor skopeo FAIL", ("/nonexistent/skopeo does not run", "install skopeo"), files=settings("images", skopeo="/nonexistent/skopeo")),
    Row("no KVM", "doctor accelerator FAIL", ("no KVM", "allow_emulation = yes"), fake("/proc/cpuinfo", "flags : fpu sse\\n"), files=settings("warden", allow_emulation="no")),
    Row("warden without KVM", "warden", ("no KVM", "set allow_emulation = yes", DOCTOR), fake("/proc/cpuinfo", "flags : fpu sse\\n"), files=settings("warden", allow_emulation="no")),
    Row("not of the group of KVM", "doctor accelerator warn", ("no KVM", "/dev/kvm", "Permission denied", "group kvm"), f"{CPUINFO} && {NO_GROUP}", before=AS_NOBODY),
    Row("few descriptors", "doctor descriptors FAIL", ("1024 per process", "LimitNOFILE="), before=("prlimit", "--nofile=1024:1024")),
    Row("no networks may be made", "doctor limits FAIL", ("user.max_net_namespaces is 0", "sysctl -w user.max_net_namespaces"), fake("/proc/sys/user/max_net_namespaces", "0\\n")),
    Row("little memory", "doctor memory FAIL", ("97 MiB available", "more memory"), meminfo(available=100000)),
    Row("swap", "doctor swap warn", ("2048 MiB", "swapoff -a"), meminfo(swap=2 << 20)),
    Row("overcommit forbidden", "doctor overcommit FAIL", ("vm.overcommit_memory is 2", "sysctl -w vm.overcommit_memory=0"), fake("/proc/sys/vm/overcommit_memory", "2\\n")),
    Row("pages are merged", "doctor ksm warn", ("merges equal pages", "echo 2 >/sys/kernel/mm/ksm/run"), fake("/sys/kernel/mm/ksm/run", "1\\n")),
    Row("threads share cores", "doctor smt warn", ("share a core", "nosmt"), fake("/sys/devices/system/cpu/smt/active", "1\\n")),
    Row("behind a proxy", "doctor proxy warn", ("https_proxy is set", "`proxy = ADDRESS:PORT` in egress.conf"), env={"https_proxy": "http://10.1.1.1:3128"}),
    Row("server gone", "doctor server FAIL", ("it does not answer", "systemctl start hotcell.target")),
    Row("gateway hangs", "doctor server FAIL", ("it does not answer", "the deadline", "the gateway hangs", "hotcell-gateway-replace"), f"{GATEWAY} && kill -STOP $begun"),
    Row("node gone", "doctor server FAIL", ("node does not answer", "systemctl start hotcell-node"), GATEWAY),
    Row("journal of another machine", "node", ("the journal is of installation", "is data_dir right?", "remove the file `installation`"), OTHER_JOURNAL),
    Row("a setting that is none", "egress", ("egress.conf:3: unknown key `resolver`", "--help has them all"), files=settings("egress", resolver="127.0.0.1")),
]


# The first column of "When something is wrong" in docs/operations.md, as it begins: a row of above; or a test elsewhere, of what
# is no broken host but an answer to a client or what running daemons find; or why there is none.
SYMPTOMS = {
    "`hotcell` exits with 3": "server gone",
    "`hotcell-gateway-replace`: all four": "none: it needs systemd, and gateways that drain for minutes",
    "doctor: node, warden or egress does not answer": "node gone",
    "401": "functional/test_routes.py::test_a_removed_key_is_of_no_use_at_once",
    "503, `version_mismatch`": "functional/test_versions.py::test_a_request_is_answered_with_the_reason",
    "503, `files_missing`": "functional/test_saved.py::test_a_mount_that_comes_late_deletes_nothing",
    "create, pause, snapshot or fork: 507": "faults/test_full_disk.py::test_on_a_full_disk_nothing_begins_and_nobody_is_harmed",
    "create: 429": "functional/test_node_books.py::test_a_key_and_a_team_have_their_limits",
    "pause: 429": "functional/test_node_books.py::test_a_limit_of_paused_ones_refuses_a_create_and_a_pause_but_no_auto_pause",
    "a sandbox or a snapshot: 503, \"in no row": "functional/test_saved.py::test_a_journal_of_before_loses_nothing",
    "doctor: rows are set aside": "faults/test_node_start.py::test_who_asks_for_one_that_was_set_aside_is_told",
    "404 for a sandbox that was there": "functional/test_node_books.py::test_who_asks_for_one_that_was_killed_is_told",
    "a build of a template failed": "functional/test_templates.py::test_a_build_says_why_it_failed",
    "create: 503": "functional/test_node.py::test_creates_do_not_wait_for_ever",
    "doctor: `names`": "functional/test_names.py::test_without_a_domain_there_is_a_warning_that_says_what_to_set",
    "template `error`": "guest kernel missing",
    "doctor: `template-units`": "template of a package not made",
    "creates are slow": "no KVM, functional/test_pools.py::test_pools_share_the_budget_by_their_use",
    "a create: 400 `its template guards ports`": "functional/test_builds.py::test_ports_that_it_guards_want_a_token",
    "a port of a sandbox: 403 ": "functional/test_private.py::test_only_the_token_opens_its_ports",
    "port 49983 of a sandbox: 504": "faults/test_server_hung.py::test_an_agent_that_never_answers_delays_nobody_else",
    "a program in a sandbox cannot reach": "functional/test_explain.py::test_why_not",
    "a port of a sandbox: 502": "functional/test_reach.py::test_a_closed_port",
    "resume, connect or create: 412": "functional/test_other_host.py::test_another_qemu",
    "resume, connect, create or snapshot: 412": "faults/test_template_lost.py::test_what_differs_from_a_lost_template_waits_for_it",
    "resume, connect or create: 500": "functional/test_node_pause.py::test_a_bit_of_its_disk_flips",
    "a port of a sandbox: 403, \"This sandbox can't": "functional/test_signed_urls.py::test_a_signature_resumes_a_paused_sandbox_and_a_wrong_one_does_not",
    "names do not resolve inside": "wrong resolver, functional/test_why.py::test_whoever_asks_is_told",
    "node: \"is damaged\"": "node with a half-written journal",
    "warden: \"set cgroup\"": "warden/test_installation.py::test_a_start_with_a_wrong_path_ends_no_vm",
    "node: \"the journal is of": "journal of another machine",
    "doctor: vms": "faults/test_node_installation.py::test_a_warden_that_lists_nothing_ends_nobody",
    "something seems left over": "functional/test_cli.py::test_leaks_are_what_node_does_not_know_or_what_is_not_whole",
}


def chosen():
    return [row for row in ROWS if row.ci or os.environ.get("HOTCELL_BROKEN") == "all"]


@pytest.fixture
def host():
    """Not below pytest's own folder: that one is closed for the users of daemons, by every pytest that starts."""
    with tempfile.TemporaryDirectory(prefix="hotcell-broken-", dir=os.environ.get("HOTCELL_TEST_DIR")) as base:
        h = Host(pathlib.Path(base))
        yield h
        h.close()


def doctor_rows():
    return [row for row in ROWS if row.run.startswith("doctor")]


def findings(out):
    return {c["check"]: c for c in json.loads(out)}


def has_all(row, found):
    """Does doctor say of this host what the row wants to hear?"""
    return found["verdict"] == row.run.split()[2] and all(text in found["found"] + "\n" + found.get("fix", "") for text in row.says)


def test_the_table_is_whole():
    assert len(ROWS) >= 30 and 10 <= sum(row.ci for row in ROWS) <= 12
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert all(len(row.says) >= 2 for row in ROWS), "a cause and a fix"


def test_every_symptom_of_the_documents_is_shown_somewhere():
    text = (TESTS.parent / "docs/operations.md").read_text().split("## When something is wrong\n")[1]
    listed = [line[2:] for line in text.split("\n### ")[0].splitlines() if line.startswith("| ") and not line.startswith("| Symptom ")]
    assert len(listed) == len(SYMPTOMS)
    for symptom, shown in SYMPTOMS.items():
        assert sum(line.startswith(symptom) for line in listed) == 1, symptom
        for one in [shown] if shown.startswith("none: ") else shown.split(", "):
            file, _, name = one.partition("::")
            if name:
                assert f"def {name}(" in (TESTS / file).read_text(), one
            else:
                assert one.startswith("none: ") or one in {row.name for row in ROWS}, one
    # what is quoted there is what is said
    sources = "".join(re.sub(r'"\s*\n\s*"', "", path.read_text()) for path in [*(TESTS.parent / "src").rglob("*.[ch]"), TESTS.parent / "deploy/gateway-replace"])
    for quoted in re.findall(r'"([^"]+)"', "\n".join(line.split(" | ")[0] for line in listed)):
        assert quoted in sources, quoted


@pytest.mark.parametrize("row", chosen(), ids=lambda row: row.name.replace(" ", "-"))
def test_it_says_what_is_wrong_and_what_to_do(host, row):
    if row.files:
        row.files(host)
    out, err, status = host.run(row)
    assert status not in (0, None), f"it did not fail: {out}{err}"
    if row.run.startswith("doctor"):
        assert out, err
        found = findings(out)[row.run.split()[1]]
        assert found["fix"] and has_all(row, found), (row.says, found)
        return
    lines = [line for line in err.splitlines() if f" error {row.run}: " in line]
    assert lines and all(text in lines[-1] for text in row.says), (row.says, status, err)


def test_a_host_that_is_not_broken_has_none_of_these(host):
    """The rows can tell: where nothing is broken, only what no row's folder can mend is said."""
    out, err, _ = host.run(Row("with a gateway", "doctor", (), f"{WHOLE} && {GATEWAY}"))
    assert out, err
    server = findings(out)["server"]
    (host.base / "gateway/store.db").unlink()
    whole(host)
    out, err, _ = host.run(Row("whole", "doctor", (), f"{WHOLE} && {REGISTRY}"))
    assert out, err
    found = {**findings(out), "server": server}
    for check in ("tun", "nft", "calls", "cgroups", "folders", "users", "guest", "locks", "journal-file", "store-file", "template-files", "certificates",
                  "dns", "ports", "proxy", "limits", "qemu", "skopeo", "registries", "memory", "swap", "ksm", "overcommit", "smt"):
        assert found[check]["verdict"] == "ok", (found[check], err)
    for check, says in (("template-files", "1 have"), ("certificates", "1 in"), ("journal-file", "looks whole"), ("store-file", "looks whole"), ("registries", "1 can")):
        assert says in found[check]["found"], found[check]
    wrong = [row.name for row in doctor_rows() if has_all(row, found[row.run.split()[1]])]
    assert wrong == ["node gone"], found


@pytest.mark.parametrize("daemon", sorted({row.run for row in ROWS if not row.run.startswith("doctor")}))
def test_on_a_host_that_is_not_broken_it_starts(host, daemon):
    ready, err = host.starts(Row("whole", daemon, ()))
    assert ready and " error " not in err, err
    for row in ROWS:
        assert row.run != daemon or not all(text in err for text in row.says), (row.name, err)


@pytest.mark.skipif(os.environ.get("HOTCELL_BROKEN") != "all", reason="waits for one of doctor's limits")
def test_lines_are_said_as_they_are_known(host):
    """Not at the end: somebody waits for them."""
    qemu("8.2", "exec sleep 60")(host)
    row = Row("people's form", "doctor", (), WHOLE)
    host.command = lambda row: [w for w in Host.command(host, row) if w != "--json"]
    with host.begun(row) as p:
        wait_for(lambda: "tun  " in host.said()[0] or p.poll() is not None, "a line is said", START_SECONDS)
        out = host.said()[0]
        assert p.poll() is None and re.search("^ok    tun ", out, re.M) and " qemu " not in out, out
        p.wait(SECONDS)
    assert "fix: install qemu-system-x86" in host.said()[0]
