"""warden.py - runs a hotcell-warden of its own for a test, and speaks to it.

    with Warden() as w:
        w.start()
        w.template("t1", kernel=b"...")
        pid = w.restore("vm1", "t1", w.slot_make())
        w.kill()              # SIGKILL; VMs run on
        w.start()             # the next warden adopts them
        w.stop("vm1")         # the verb

Everything it makes has a name of its own (folder, control group, uid range), so that several runs
do not meet. Environment:
    HOTCELL_BUILD     the build folder (src/warden/hotcell-warden below it)
    HOTCELL_QEMU      the VMM, /usr/bin/qemu-system-x86_64 if not set
    HOTCELL_USR       a folder that warden finds in the place of /usr: another distribution's QEMU
    HOTCELL_TEST_DIR  where folders are made, the system's temporary folder if not set
"""

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import images
from layout import build_dir
from protocol import (ANSWER_SECONDS, ID_MAX, LIST_MAX, Client, Gone, Sizes, State, Verb,
                      WardenError)

POLL_SECONDS = 0.01
READY_SECONDS = 60  # nothing is that slow but a host that is itself emulated, beside others
START_SECONDS = 90  # it asks QEMU for its version and KVM for a guest; in an emulated host that is long
GONE_SECONDS = 5
UID_RANGES_FROM, UID_RANGES, UID_RANGE = 1_000_000_000, 100_000, 2048
CGROUP_ROOT = pathlib.Path("/sys/fs/cgroup")

numbers = itertools.count()


def is_sanitized():
    """Was the build made with AddressSanitizer?"""
    return b"__asan_init" in (build_dir() / "src/warden/hotcell-warden").read_bytes()


def qemu_path():
    return os.environ.get("HOTCELL_QEMU", "/usr/bin/qemu-system-x86_64")


def in_usr(usr, command):
    """The command with the folder `usr` in the place of /usr, which the rest of the host does not see: another
    distribution's QEMU needs its own libraries."""
    if not usr:
        return command
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount --bind "$0" /usr && exec "$@"',
            usr, *command]


def sizes(vcpus=1, memory_mib=64, overhead_mib=256, cpu_percent=0, pids_max=64, disk_mib=0):
    return Sizes(vcpus, memory_mib, overhead_mib, cpu_percent, pids_max, disk_mib)


def overlay():
    """An empty overlay without a name, as a client makes it for each VM."""
    f = tempfile.TemporaryFile(dir=os.environ.get("HOTCELL_TEST_DIR"))
    f.write(images.qcow2())
    f.flush()
    return f


def wait_for(condition, what, seconds=READY_SECONDS, every=POLL_SECONDS):
    """The first true value of condition(); asserts that it comes in time."""
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < until, f"after {seconds} s still not: {what}"
        time.sleep(every)


def cgroup_trees():
    """Where control groups are made: one folder on cgroup v2, one per controller on v1."""
    if (CGROUP_ROOT / "cgroup.controllers").exists():
        return [CGROUP_ROOT]
    return [CGROUP_ROOT / name for name in ("memory", "cpu", "pids")]


def children(pid):
    """The pids of a process's children; none when it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(p) for p in text.split()]


def is_alive(pid):
    """Does it run? A zombie does not."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


class Qmp:
    """The few words of QMP that tests need."""

    def __init__(self, path, seconds=READY_SECONDS):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(seconds)
        self.sock.connect(str(path))
        self.file = self.sock.makefile("rw")
        self.greeting = json.loads(self.file.readline())["QMP"]
        self.run("qmp_capabilities")

    def run(self, command, **arguments):
        self.file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.file.flush()
        while True:
            line = json.loads(self.file.readline())
            if "error" in line:
                raise RuntimeError(line["error"]["desc"])
            if "return" in line:
                return line["return"]

    def close(self):
        self.file.close()
        self.sock.close()


class Warden:
    """A warden with folders, control group and uids of its own. Verbs are methods."""

    def __init__(self, **settings):
        number = next(numbers)
        base = tempfile.mkdtemp(prefix="hotcell-", dir=os.environ.get("HOTCELL_TEST_DIR"))
        self.base = pathlib.Path(base)
        self.base.chmod(0o755)  # nobody lists libraries from it, VMs read from it
        self.state, self.run = self.base / "state", self.base / "run"
        self.cgroup = f"hotcell-test-{os.getpid()}-{number}"
        self.uids = 64
        uid_base = UID_RANGES_FROM + (os.getpid() * 7 + number) % UID_RANGES * UID_RANGE
        self.settings = {"state_dir": self.state, "run_dir": self.run, "cgroup": self.cgroup,
                         "uid_base": uid_base, "vms_max": self.uids, "qemu": qemu_path(),
                         "copier": build_dir() / "src/copier/hotcell-copier",
                         "firmware_dirs": f"{build_dir()}/src/stand_ins:/usr/share/qemu:/usr/share/seabios",
                         "allow_emulation": "yes"}
        self.settings.update(settings)
        self.uids = self.settings["vms_max"]
        self.uid_base = self.settings["uid_base"]
        self.process = None
        self.client = None
        self.log_path = self.base / "warden.log"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    # --- the daemon ---

    @property
    def pid(self):
        return self.process.pid

    @property
    def socket_path(self):
        return self.run / "warden.sock"

    def launch(self, usr=os.environ.get("HOTCELL_USR"), **changes):
        """Start the program with `changes` to the settings, without waiting for it."""
        assert self.process is None, "it runs already"
        config = self.base / "warden.conf"
        config.write_text("".join(f"{key} = {value}\n"
                                  for key, value in {**self.settings, **changes}.items()))
        program = build_dir() / "src/warden/hotcell-warden"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(in_usr(usr, [program, config]), stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, start_new_session=True)

    def start(self, **changes):
        self.launch(**changes)
        self.wait_ready()
        return self

    def wait_ready(self):
        """Until it serves: it listens, and is done with what an earlier one left."""
        wait_for(self.serves, "warden serves", START_SECONDS)

    def serves(self):
        assert self.process.poll() is None, f"warden ended: {self.log()[-2000:]}"
        try:
            self.client = self.client or Client(self.socket_path)
            self.facts()
            return True
        except WardenError as e:
            if e.code != "unavailable":
                raise
        except (FileNotFoundError, ConnectionRefusedError):
            pass
        except Gone:  # a dying job of the warden before held its socket open a little longer
            self.hang_up()
        return False

    def connect(self):
        return Client(self.socket_path)

    def hang_up(self):
        if self.client:
            self.client.close()
            self.client = None

    def kill(self):
        """SIGKILL, and nothing after it."""
        self.hang_up()
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def wait_dead(self, seconds=READY_SECONDS):
        """It was told to die by `die_at`: returns when it did."""
        self.hang_up()
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError("warden lives: is the build made with -Dfaults=true?") from None
        self.process = None
        assert status == -signal.SIGKILL, f"warden ended by itself: {self.log()[-2000:]}"

    def restart(self, **changes):
        self.kill()
        return self.start(**changes)

    def jobs(self):
        """The pids of its jobs: its children but for the VMs, which have their own pid 1."""
        def namespace(pid):
            try:
                return os.readlink(f"/proc/{pid}/ns/pid")
            except OSError:
                return None

        home = namespace(self.pid)
        return [pid for pid in children(self.pid) if is_alive(pid) and namespace(pid) == home]

    def log(self):
        return self.log_path.read_text() if self.log_path.exists() else ""

    # --- the verbs ---

    def facts(self, size=None):
        return self.client.call(Verb.FACTS, sizes=size or sizes()).reply.facts

    def slot_make(self):
        return self.client.call(Verb.SLOT_MAKE).reply.slot

    def slot_drop(self, slot):
        self.client.call(Verb.SLOT_DROP, slot=slot)

    def build(self, vm, template, slot, size=None):
        return self.client.call(Verb.BUILD, vm=vm, template=template, slot=slot,
                                sizes=size or sizes()).reply.count

    def restore(self, vm, template, slot, size=None, fds=None, flags=0, installation="", kernel=""):
        """From an overlay of its own, unless fds are given."""
        with contextlib.ExitStack() as files:
            fds = fds or [files.enter_context(overlay()).fileno()]
            return self.client.call(Verb.RESTORE, vm=vm, template=template, slot=slot, fds=fds, installation=installation,
                                    sizes=size or sizes(), flags=flags, kernel=kernel).reply.count

    def restore_send(self, vm, template, slot, client=None, size=None):
        """The same, without waiting: returns the tag of the answer."""
        with overlay() as disk:
            return (client or self.client).send(Verb.RESTORE, vm=vm, template=template, slot=slot,
                                                fds=[disk.fileno()], sizes=size or sizes())

    def copy(self, vm, fds, flags=0):
        """Returns the copier's pid."""
        return self.client.call(Verb.COPY, vm=vm, fds=fds, flags=flags).reply.count

    def stop(self, vm, seconds=ANSWER_SECONDS):
        return self.client.call(Verb.STOP, seconds, vm=vm).seconds

    def sockets(self, vm, count=1):
        answer = self.client.call(Verb.SOCKETS, vm=vm, count=count)
        return [socket.socket(fileno=fd) for fd in answer.fds]

    def doors(self, slot):
        """The TCP listener and the UDP socket at which all ends that the slot's guest begins."""
        answer = self.client.call(Verb.DOORS, slot=slot)
        return [socket.socket(fileno=fd) for fd in answer.fds]

    def list(self):
        """Every VM as {id: cell}, page after page."""
        found, after = {}, ""
        while True:
            reply = self.client.call(Verb.LIST, vm=after).reply
            for cell in reply.cells[:reply.count]:
                after = cell.id.decode()
                found[after] = cell
            if reply.count < LIST_MAX:
                return found

    def template_begin(self, template, kernel, disk, size=None):
        """Returns the descriptor of the manifest, open for writing."""
        answer = self.client.call(Verb.TEMPLATE_BEGIN, template=template, sizes=size or sizes(),
                                  fds=(kernel, disk))
        return answer.fds[0]

    def template_publish(self, template):
        self.client.call(Verb.TEMPLATE_PUBLISH, template=template)

    def template_warm(self, template):
        self.client.call(Verb.TEMPLATE_WARM, template=template)

    def template_drop(self, template):
        self.client.call(Verb.TEMPLATE_DROP, template=template)

    # --- what tests do often ---

    def open_template(self, template, kernel=None, disk=bytes(images.MIB), size=None):
        """An open template of small files; the overlay is an empty qcow2."""
        with contextlib.ExitStack() as files:
            def source(content):
                written = files.enter_context(tempfile.NamedTemporaryFile(dir=self.base))
                written.write(content)
                written.flush()
                return files.enter_context(open(written.name, "rb")).fileno()

            manifest = self.template_begin(template, source(kernel or images.kernel()),
                                           source(disk), size)
        os.write(manifest, b"a test\n")
        os.close(manifest)
        (self.state / "templates" / f".build-{template}" / "overlay").write_bytes(images.qcow2())

    def template(self, template, **files):
        """The same, published."""
        self.open_template(template, **files)
        self.template_publish(template)

    def vm_dir(self, vm):
        return self.state / "vms" / vm

    def qmp(self, vm):
        return Qmp(self.vm_dir(vm) / "qmp.sock")

    def vm_log(self, vm):
        return (self.vm_dir(vm) / "log").read_text()

    def wait_state(self, vm, state, seconds=READY_SECONDS):
        wait_for(lambda: self.list()[vm].state == state, f"{vm} is {State(state).name}", seconds)

    def check_whole(self, vm, pid=None, template=False):
        """It is listed as running, its QEMU answers, its network gives sockets."""
        cell = self.list()[vm]
        assert cell.state == State.RUNNING, f"{vm} is {State(cell.state).name}"
        assert pid is None or cell.pid == pid, f"{vm} is pid {cell.pid}, was {pid}"
        assert is_alive(cell.pid)
        qmp = self.qmp(vm)
        assert qmp.run("query-status")["status"] in ("prelaunch", "inmigrate", "paused")
        qmp.close()
        for sock in self.sockets(vm, 2):
            assert sock.type == socket.SOCK_STREAM and sock.family == socket.AF_INET
            sock.close()
        return cell

    # --- the end ---

    def groups(self):
        """The control groups below ours, in every hierarchy."""
        return [group for tree in cgroup_trees() if (tree / self.cgroup).is_dir()
                for group in (tree / self.cgroup).iterdir() if group.is_dir()]

    def end_processes(self, vm=None):
        """Kill whatever is in our control groups, or in that of one VM."""
        for group in self.groups():
            if vm in (None, group.name):
                for pid in (group / "cgroup.procs").read_text().split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)

    def end_vms(self):
        """Kill whatever is in our control groups, and remove those."""
        self.end_processes()
        for group in self.groups():
            wait_for(lambda g=group: not (g / "cgroup.procs").read_text().strip(),
                     f"{group} is empty", GONE_SECONDS)
            group.rmdir()
        for tree in cgroup_trees():
            if (tree / self.cgroup).is_dir():
                (tree / self.cgroup).rmdir()

    def remove(self):
        """Leave nothing behind, whatever the test did."""
        self.kill()
        self.end_vms()
        shutil.rmtree(self.base)


__all__ = ["ID_MAX", "Client", "Gone", "Qmp", "Sizes", "State", "Verb", "Warden", "WardenError",
           "build_dir", "children", "is_alive", "overlay", "qemu_path", "sizes", "wait_for"]
