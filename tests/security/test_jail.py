"""test_jail.py - what a VM's process can see, hold and do, told by a probe in QEMU's place."""

import ctypes
import errno
import hashlib
import os
import pathlib
import socket
import stat
import subprocess

import pytest

import leaks
import probe
from protocol import TEMPLATE_FILES, State
from warden import GONE_SECONDS, qemu_path, sizes, wait_for
from warden_fixtures import probe_path

LOADER = "/lib64/ld-linux-x86-64.so.2"
FIRMWARE = "/firmware/qboot.rom"
NAMESPACES = ("net", "pid", "mnt", "ipc", "uts")
KVM_FD = 8
TRIES = 3
REFUSED = {errno.EPERM, errno.EACCES, errno.EROFS, errno.EXDEV, errno.EBUSY}

# What the kernel must answer to each call of jail_calls.c: EPERM unless said otherwise.
NO_SUCH_CALL = {"clone3", "execve-self", "execve-loader", "execve-absent", "execveat-self",
                "execveat-memfd"}
ALLOWED = {"thread", "socket-unix", "socketpair-unix", "tap-name", "seccomp", "limit-core-read", "limit-files"}
OTHERWISE = {"abstract-socket": errno.ECONNREFUSED, "host-shm": errno.ENOENT, "host-sem": errno.ENOENT,
             "host-msg": errno.ENOENT, "host-queue": errno.ENOENT}
FORBIDDEN = {
    "ptrace", "process_vm_readv", "process_vm_writev", "userfaultfd", "pidfd_getfd", "kcmp",
    "perf_event_open", "bpf", "syslog", "io_uring_setup", "io_uring_enter", "io_uring_register",
    "keyctl", "add_key", "request_key", "personality", "modify_ldt", "finit_module",
    "kexec_file_load", "reboot", "iopl", "ioperm", "clock_settime", "unshare", "unshare-user",
    "setns", "mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen",
    "fsmount", "mount_setattr", "name_to_handle_at", "open_by_handle_at", "sethostname", "setuid",
    "setgid", "setresuid", "setgroups", "capset", "fork", "vfork", "clone", "clone-files",
    "clone-netns", "socket-inet", "socket-inet-datagram", "socket-inet6", "socket-netlink",
    "socket-packet", "socket-vsock", "socket-alg", "socket-bluetooth", "interfaces",
    "tap-namespace", "socketpair-inet", "socketpair-inet6", "socketpair-netlink", "socketpair-vsock",
    "socketpair-tipc", "seccomp-listener", "seccomp-listener-tsync", "inotify_init", "inotify_init1",
    "fanotify_init", "limit-core", "limit-core-64", "limit-core-high"}

libc = ctypes.CDLL(None, use_errno=True)


class HostObjects:
    """Things on the host that anybody may use, if only they can name them."""

    IPC_CREAT, IPC_RMID = 0o1000, 0

    def __init__(self):
        self.name = f"hotcell-probe-{os.getpid()}"
        self.key = os.getpid()
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.bind(f"\0{self.name}")
        self.sock.listen()
        flags = self.IPC_CREAT | 0o666
        self.ipc = [(libc.shmctl, libc.shmget(self.key, 4096, flags), ()),
                    (libc.semctl, libc.semget(self.key, 1, flags), (0,)),
                    (libc.msgctl, libc.msgget(self.key, flags), ())]
        self.queue = libc.mq_open(f"/{self.name}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
        assert all(number >= 0 for _, number, _ in self.ipc) and self.queue >= 0

    def close(self):
        self.sock.close()
        for control, number, more in self.ipc:
            control(number, *more, self.IPC_RMID, None)
        os.close(self.queue)
        libc.mq_unlink(f"/{self.name}".encode())

    def scenario(self):
        return f"look {self.name} {self.key} /{self.name}"


class Look:
    """One VM whose probe looked around, and where it ran."""

    def __init__(self, warden, vm, build):
        host = HostObjects()
        self.warden, self.vm, self.build = warden, vm, build
        try:
            self.said = probe.run(warden, vm, host.scenario(), build)
        finally:
            host.close()
        self.cell = warden.list()[vm]

    @property
    def template(self):
        prefix = ".build-" if self.build else ""
        return self.warden.state / "templates" / f"{prefix}t-{self.vm}"


@pytest.fixture(scope="module", params=["restore", "build"])
def look(request, shared_stand_in):
    found = Look(shared_stand_in, request.param, request.param == "build")
    yield found
    shared_stand_in.stop(found.vm)


def libraries(program):
    """What the program's loader opens, as `ldd` says."""
    out = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return {line.split("=>")[1].split()[0] for line in out.splitlines() if "=>" in line}


def expected_view(program):
    """Every path a VM's process may see, folders on the way included."""
    files = {str(program), LOADER, FIRMWARE, "/memory", "/kernel", "/vm"} | libraries(program)
    return files | {str(parent) for path in files for parent in pathlib.Path(path).parents}


# --- who it is --------------------------------------------------------------------------------


def test_it_looked_to_the_end(look):
    assert look.said.ended and look.cell.state == State.RUNNING


def test_it_is_an_own_user(look):
    facts = look.said.facts
    ids = {facts[f"{kind}{i}"] for kind in ("uid", "gid") for i in range(3)}
    assert ids == {look.cell.uid}
    assert look.cell.uid == look.warden.uid_base + look.cell.slot
    assert facts["groups"] == 0


def test_it_has_no_capability(look):
    sets = ("effective", "permitted", "inheritable", "bounding", "ambient")
    assert {name: look.said.facts[name] for name in sets} == dict.fromkeys(sets, 0)
    assert look.said.facts["no_new_privs"] == 1


def test_it_is_filtered(look):
    assert look.said.facts["seccomp"] == 2


def test_it_is_limited(look):
    facts = look.said.facts
    # 0 would not keep the kernel from piping a core to a program; 1 does, and to a file as well
    assert (facts["core_now"], facts["core_max"]) == (1, 1)
    assert 0 < facts["files_max"] <= 256
    assert facts["signals_blocked"] == 0


def test_it_inherits_no_environment(look):
    variables = {line["variable"] for line in look.said.lines if "variable" in line}
    assert variables <= {"MALLOC_ARENA_MAX=1"}


def test_it_is_alone_in_its_pid_namespace(look):
    facts = look.said.facts
    assert (facts["pid"], facts["parent"]) == (1, 0)
    assert (facts["others_reached"], facts["all_reached"]) == (0, 0)


def test_its_namespaces_are_its_own(look):
    for kind in NAMESPACES:
        theirs = os.readlink(f"/proc/{look.cell.pid}/ns/{kind}")
        assert theirs != os.readlink(f"/proc/self/ns/{kind}"), kind
        assert theirs != os.readlink(f"/proc/{look.warden.pid}/ns/{kind}"), kind


def test_its_network_is_one_tap(look):
    names = leaks.interfaces_in(f"/proc/{look.cell.pid}/ns/net")
    assert sorted(names) == ["lo", "tap0"]
    assert {"tap": "tap0"} in look.said.lines


# --- what it sees -----------------------------------------------------------------------------


def test_it_sees_these_files_and_no_other(look):
    assert set(look.said.files) == expected_view(probe_path())


def test_only_its_folder_is_writable(look):
    writable = {path for path, file in look.said.files.items()
                if not file["mount"] & os.ST_RDONLY}
    assert writable == ({"/vm", "/memory"} if look.build else {"/vm"})


def test_no_mount_gives_programs_rights(look):
    for path, file in look.said.files.items():
        assert file["mount"] & os.ST_NOSUID and file["mount"] & os.ST_NODEV, path
    for path in ("/vm", "/memory", "/kernel"):
        assert look.said.files[path]["mount"] & os.ST_NOEXEC, path
    assert all(not stat.S_ISCHR(file["mode"]) and not stat.S_ISBLK(file["mode"])
               for file in look.said.files.values())


def test_every_change_is_refused(look):
    changes = [(path, how, error) for path, how, error in look.said.tried
               if not path.startswith("fd ") and not path.startswith("/vm")
               and not how.startswith("map-") and how != "climb"]
    assert len(changes) > 5 * len(look.said.files)
    allowed = {("/memory", how) for how in ("write", "read-write", "truncate", "touch", "chmod")}
    for path, how, error in changes:
        if look.build and (path, how) in allowed:  # a VM that is built owns its memory file
            continue
        assert error in REFUSED, f"{how} {path}: {errno.errorcode.get(error, 'was possible')}"


def test_its_own_folder_is_for_data(look):
    tried = {(path, how): error for path, how, error in look.said.tried}
    for how in ("create", "mkdir", "symlink"):
        assert tried["/vm", how] == 0, how
    assert tried["/vm", "mknod"] == errno.EPERM
    assert tried["/vm/data", "own-write"] == 0 and tried["/vm/data", "own-unlink"] == 0
    assert tried["/vm/data", "own-execute"] == errno.EPERM
    assert tried["/vm/way", "own-follow"] == errno.ENOENT
    assert tried["/", "climb"] == errno.ENOENT


def test_memory_is_a_private_copy(look):
    tried = {(path, how): error for path, how, error in look.said.tried}
    assert tried["/memory", "map-shared"] == errno.EACCES  # opened for reading
    assert tried["/memory", "map-private"] == 0


# --- what it holds ----------------------------------------------------------------------------


def test_it_holds_what_it_was_given_and_no_more(look):
    build, template, own = look.build, look.template, look.warden.vm_dir(look.vm)
    expected = {
        0: (os.O_RDONLY, "/dev/null"),
        1: (os.O_WRONLY | os.O_APPEND, own / "log"),
        2: (os.O_WRONLY | os.O_APPEND, own / "log"),
        3: (os.O_RDWR, None),  # listens for QMP
        4: (os.O_RDWR | os.O_NONBLOCK, "/dev/net/tun"),
        5: (os.O_RDWR if build else os.O_RDONLY, template / "disk"),
        6: (os.O_RDWR, template / "overlay" if build else None),  # else its client's
        7: (os.O_WRONLY if build else os.O_RDONLY, template / "state")}
    if look.warden.facts().accel == b"kvm":
        expected[KVM_FD] = (os.O_RDWR, "/dev/kvm")
    assert set(look.said.fds) == set(expected)
    interesting = os.O_ACCMODE | os.O_APPEND | os.O_NONBLOCK
    for fd, (flags, path) in expected.items():
        seen = look.said.fds[fd]
        assert seen["flags"] & interesting == flags, fd
        if path:
            file = os.stat(path)
            assert (seen["dev"], seen["ino"]) == (file.st_dev, file.st_ino), fd
    assert stat.S_ISSOCK(look.said.fds[3]["mode"])


def test_template_descriptors_allow_no_change(look):
    if look.build:
        pytest.skip("a VM that is built writes its template")
    for fd in (5, 7):
        tried = {how: error for path, how, error in look.said.tried if path == f"fd {fd}"}
        assert tried == {"truncate": errno.EINVAL, "punch": errno.EBADF, "extend": errno.EBADF,
                         "write": errno.EBADF, "map-shared": errno.EACCES, "chmod": errno.EPERM,
                         "chown": errno.EPERM, "link": errno.ENOENT}


def test_a_template_stays_as_it_was(shared_stand_in):
    """All of the above was tried on it, and not one byte or date is different."""
    def prints(template):
        folder = shared_stand_in.state / "templates" / template
        return {name: (hashlib.sha256((folder / name).read_bytes()).hexdigest(),
                       (folder / name).stat().st_mode, (folder / name).stat().st_uid,
                       (folder / name).stat().st_mtime_ns) for name in TEMPLATE_FILES}

    shared_stand_in.template("same", kernel=b"look none 1 /none")
    before = prints("same")
    shared_stand_in.restore("same", "same", shared_stand_in.slot_make(), probe.SMALL)
    wait_for(lambda: probe.Said(shared_stand_in.vm_log("same")).ended, "the probe has looked")
    assert prints("same") == before
    assert all(stat.S_IMODE(mode) == 0o444 and owner == 0 for _, mode, owner, _ in before.values())
    shared_stand_in.stop("same")
    assert prints("same") == before


# --- what it may do ---------------------------------------------------------------------------


def test_every_call_gets_its_answer(look):
    expected = {**dict.fromkeys(FORBIDDEN, errno.EPERM), **dict.fromkeys(ALLOWED, 0),
                **dict.fromkeys(NO_SUCH_CALL, errno.ENOSYS), **OTHERWISE}
    wrong = {name: (errno.errorcode.get(error, error), errno.errorcode.get(expected.get(name)))
             for name, error in look.said.calls.items() if error != expected.get(name)}
    assert not wrong, "call: (answer, expected)"
    assert set(look.said.calls) == set(expected)


@pytest.mark.parametrize("scenario", ["i386", "x32", "i386-thread"])
def test_other_doors_into_the_kernel_are_deadly(shared_stand_in, scenario):
    said = probe.run(shared_stand_in, scenario, scenario)
    state = shared_stand_in.list()[scenario].state
    shared_stand_in.stop(scenario)
    assert said.facts == {"before": 1}, "the call came back, or only its thread ended"
    assert state == State.EXITED


# --- its limits -------------------------------------------------------------------------------


def group_file(warden, vm, v1_tree, v1_name, v2_name):
    root = pathlib.Path("/sys/fs/cgroup")
    if (root / "cgroup.controllers").exists():
        return (root / warden.cgroup / vm / v2_name).read_text()
    return (root / v1_tree / warden.cgroup / vm / v1_name).read_text()


def test_memory_is_limited(shared_stand_in):
    said = probe.run(shared_stand_in, "memory", "memory", size=probe.SMALL)
    limit = probe.SMALL.memory_mib + probe.SMALL.overhead_mib
    killed = group_file(shared_stand_in, "memory", "memory", "memory.oom_control",
                        "memory.events")
    shared_stand_in.stop("memory")
    assert "survived" not in said.facts
    assert limit / 2 <= said.facts["filled_mib"] <= limit
    # with cgroup v2 every thread of the group counts
    assert any(line.startswith("oom_kill ") and int(line.split()[1]) >= 1
               for line in killed.splitlines())


def test_cpu_is_limited(shared_stand_in):
    share = 0
    for n in range(TRIES):  # it never gets more; less only on a machine that is busy
        said = probe.run(shared_stand_in, f"spin{n}", "spin",
                         size=sizes(overhead_mib=16, cpu_percent=20))
        shared_stand_in.stop(f"spin{n}")
        share = max(share, said.facts["spin_cpu_ms"] / said.facts["spin_wall_ms"])
        assert share <= 0.30
        if share >= 0.15:
            return
    raise AssertionError(f"a share of {share}, where 0.2 is allowed")


def test_threads_are_limited(shared_stand_in):
    said = probe.run(shared_stand_in, "threads", "threads",
                     size=sizes(overhead_mib=16, pids_max=20))
    shared_stand_in.stop("threads")
    assert (said.facts["threads"], said.facts["threads_errno"]) == (19, errno.EAGAIN)


def test_no_file_takes_more_room_than_its_limit(shared_stand_in):
    """Room that is only reserved counts for no file's size: an overlay of 65 MiB could take the whole file system."""
    said = probe.run(shared_stand_in, "grow", "grow", size=sizes(overhead_mib=16, disk_mib=1))
    shared_stand_in.stop("grow")
    refused = ("keep-size", "keep-size-high", "zero-keep-size", "unshare", "insert", "reserve", "reserve-64",
               "reserve-high", "reserve-zero")
    assert said.calls == {**dict.fromkeys(refused, errno.EPERM), "plain": errno.EFBIG, "truncate": errno.EFBIG,
                          "within": 0, "punch": 0, "zero": said.calls["zero"]}
    assert said.calls["zero"] in (0, errno.EOPNOTSUPP)  # not every file system has it
    assert 0 < said.facts["allocated_mib"] <= said.facts["limit_mib"] == 65


def test_it_cannot_make_itself_stay(shared_stand_in):
    """Deep and closed folders and links in its own folder do not keep warden from removing it."""
    said = probe.run(shared_stand_in, "nest", "nest")
    assert said.facts == {"nested": 40}
    shared_stand_in.stop("nest", GONE_SECONDS)
    assert not shared_stand_in.vm_dir("nest").exists()


# --- the real QEMU ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def qemu(shared_warden):
    shared_warden.template("t1")
    shared_warden.restore("vm1", "t1", shared_warden.slot_make())
    cell = shared_warden.check_whole("vm1")
    yield cell
    shared_warden.stop("vm1")


def status(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {line.partition(":")[0]: line.partition(":")[2].split() for line in lines}


def test_qemu_sees_its_files_and_no_other(qemu):
    root = f"/proc/{qemu.pid}/root"
    seen = {"/"}
    for folder, folders, files in os.walk(root):
        seen.update(f"{folder.removeprefix(root)}/{name}" for name in folders + files)
    assert seen == expected_view(qemu_path())


def test_qemu_mounts_are_read_only(qemu):
    for mount in leaks.mounts(qemu.pid):
        options = set(mount.options.split(","))
        assert {"nosuid", "nodev"} <= options, mount
        assert ("rw" if mount.at == "/vm" else "ro") in options, mount
        if mount.at in ("/vm", "/memory", "/kernel"):
            assert "noexec" in options, mount


def test_qemu_is_nobody(qemu):
    now = status(qemu.pid)
    assert set(now["Uid"] + now["Gid"]) == {str(qemu.uid)} and not now["Groups"]
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(now[name][0], 16) == 0, name
    assert now["NoNewPrivs"] == ["1"] and now["Seccomp"] == ["2"]
    assert int(now["Seccomp_filters"][0]) >= 2  # ours, and QEMU's own on top


def test_qemu_goes_before_a_service_of_the_host(qemu, shared_warden):
    """When the host has no memory left: by more than any service, which has 0, and not by what warden has."""
    score = {pid: int(pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in (qemu.pid, shared_warden.pid)}
    assert score[qemu.pid] == 500 and score[shared_warden.pid] < 500


def test_no_core_of_qemu_or_warden_is_written(qemu, shared_warden):
    for pid in (qemu.pid, shared_warden.pid):
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text().splitlines()
        assert [line.split()[4:6] for line in limits if line.startswith("Max core file size")] == [["1", "1"]]


def test_qemu_holds_templates_for_reading(qemu, shared_warden):
    templates = str(shared_warden.state / "templates")
    held = []
    for fd in os.listdir(f"/proc/{qemu.pid}/fd"):
        if leaks.is_below(os.readlink(f"/proc/{qemu.pid}/fd/{fd}"), templates):
            info = pathlib.Path(f"/proc/{qemu.pid}/fdinfo/{fd}").read_text()
            held.append(int(info.split("flags:")[1].split()[0], 8) & os.O_ACCMODE)
    assert held and set(held) == {os.O_RDONLY}


def test_qemu_maps_memory_privately(qemu):
    maps = pathlib.Path(f"/proc/{qemu.pid}/maps").read_text().splitlines()
    permissions = [line.split()[1] for line in maps if line.endswith(("/memory", "/t1/memory"))]
    assert permissions and all(p.endswith("p") for p in permissions)


def test_two_vms_share_nothing(qemu, shared_warden):
    other = shared_warden.restore("vm2", "t1", shared_warden.slot_make())
    assert shared_warden.list()["vm2"].uid != qemu.uid
    for kind in NAMESPACES:
        assert (os.readlink(f"/proc/{other}/ns/{kind}") !=
                os.readlink(f"/proc/{qemu.pid}/ns/{kind}")), kind
    shared_warden.stop("vm2")
