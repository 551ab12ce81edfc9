#!/usr/bin/env python3
"""leaks.py - finds everything a warden, or a VM of one, left on this host.

    python3 leaks.py --state DIR --run DIR --cgroup NAME --uid-base N --uids N
                     [--keep VM]... [--also PID]... [--save FILE | --baseline FILE]
                     [--grace SECONDS] [--json]

Prints one line for each leftover: what it is, and why it counts. Exit status 0 only if there is
none. What belongs to a living warden (its own process and mounts) or to a VM named with --keep is
not a leftover. A warden that is served by a reaper needs some time to lose its orphans: --grace.

A process is *ours* when its uid is in the range, its control group is below NAME, or it sees a
mount below --state or --run: warden's jobs, what these start, and VMs at every stage all do. A
namespace counts when one of ours holds it, or a process named with --also (a client of warden).

Needs root. Reads /proc; changes nothing.
"""

import argparse
import ctypes
import dataclasses
import fcntl
import json
import os
import pathlib
import re
import socket
import sys
import time

GRACE_SECONDS = 5
POLL_SECONDS = 0.1
NAMESPACES = ("net", "pid", "mnt", "ipc", "uts")
NAMESPACE_LINK = re.compile(rf"({'|'.join(NAMESPACES)}):\[\d+\]")
STANDING_GROUPS = {"_cache", "_unit"}  # warden's own and its unit's, below the group of the VMs
PF_FORKNOEXEC = 0x40  # in the flags of /proc/PID/stat: forked, and no exec since
SIOCGSKNS = 0x894C
SYS_PIDFD_GETFD = 438
PROC = pathlib.Path("/proc")

libc = ctypes.CDLL(None, use_errno=True)


@dataclasses.dataclass(frozen=True, order=True)
class Leak:
    kind: str
    what: str
    why: str

    def __str__(self):
        return f"{self.kind}: {self.what} ({self.why})"


@dataclasses.dataclass
class Scope:
    """What to look at: the settings of one warden."""

    state: pathlib.Path
    run: pathlib.Path
    cgroup: str
    uid_base: int
    uids: int

    def has_uid(self, uid):
        return self.uid_base <= uid < self.uid_base + self.uids


@dataclasses.dataclass
class Baseline:
    """What was there before, in the parts where a leftover does not say whose it is."""

    namespaces: set
    interfaces: set
    mounts: set

    def save(self, path):
        pathlib.Path(path).write_text(json.dumps(
            {name: sorted(values) for name, values in vars(self).items()}))

    @classmethod
    def load(cls, path):
        stored = json.loads(pathlib.Path(path).read_text())
        return cls(**{name: set(values) for name, values in stored.items()})


# --- processes --------------------------------------------------------------------------------


def read(path):
    """The text of a /proc file, "" when its process is gone."""
    try:
        return pathlib.Path(path).read_text(errors="replace")
    except OSError:
        return ""


def readlink(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


class Process:
    """A process as it is now. Everything is read once; what is gone by then is empty."""

    def __init__(self, pid):
        self.pid = pid
        name, _, rest = read(PROC / f"{pid}/stat").rpartition(")")
        fields = rest.split()
        self.name = name.partition("(")[2]
        self.exists = bool(fields)
        self.zombie = self.exists and fields[0] == "Z"
        self.parent = int(fields[1]) if self.exists else 0
        self.only_forked = self.exists and bool(int(fields[6]) & PF_FORKNOEXEC)
        status = read(PROC / f"{pid}/status")
        ids = re.search(r"^Uid:\s+(\d+)\s+(\d+)\s+(\d+)", status, re.M)
        self.uids = {int(uid) for uid in ids.groups()} if ids else set()
        self.groups = [line.split(":", 2)[2] for line in
                       read(PROC / f"{pid}/cgroup").splitlines()]
        self.namespaces = {kind: readlink(PROC / f"{pid}/ns/{kind}") for kind in NAMESPACES}

    def fds(self):
        """Its descriptors as {number: what it points to}."""
        try:
            numbers = os.listdir(PROC / f"{self.pid}/fd")
        except OSError:
            return {}
        return {int(n): readlink(PROC / f"{self.pid}/fd/{n}") for n in numbers}

    def vm(self, cgroup):
        """The name of the VM whose control group it is in; None if in none."""
        for group in self.groups:
            inside = re.search(rf"/{re.escape(cgroup)}/([^/]+)", group)
            if inside and inside.group(1) not in STANDING_GROUPS:
                return inside.group(1)
        return None

    def __str__(self):
        return f"pid {self.pid} ({self.name}{', a zombie' if self.zombie else ''})"


def processes():
    found = (Process(int(entry)) for entry in os.listdir(PROC) if entry.isdigit())
    return {p.pid: p for p in found if p.exists}


# --- mounts -----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Mount:
    device: str  # major:minor
    root: str    # within that filesystem
    at: str
    options: str
    kind: str
    source: str


def unescape(text):
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m.group(1), 8)), text)


def mounts(pid="self"):
    found = []
    for line in read(PROC / f"{pid}/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        fields, tail = left.split(), right.split()
        found.append(Mount(fields[2], unescape(fields[3]), unescape(fields[4]), fields[5],
                           tail[0], unescape(tail[1])))
    return found


def is_below(path, folder):
    return path == str(folder) or path.startswith(f"{folder}/")


class Place:
    """A folder as mounts speak of it: by its path, and by its path within its filesystem."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.device, self.inside = None, None
        best = ""
        for m in mounts():
            if is_below(self.folder, m.at.rstrip("/")) and len(m.at) >= len(best):
                best = m.at
                self.device = m.device
                self.inside = m.root.rstrip("/") + self.folder[len(m.at.rstrip("/")):]

    def is_in(self, mount):
        return (is_below(mount.at, self.folder) or is_below(mount.source, self.folder) or
                mount.device == self.device and is_below(mount.root.removesuffix("//deleted"),
                                                         self.inside))


# --- namespaces -------------------------------------------------------------------------------


def baseline():
    """Take it before the first warden of a test starts."""
    held = set()
    for p in processes().values():
        held.update(p.namespaces.values())
        held.update(to for to in p.fds().values() if NAMESPACE_LINK.fullmatch(to))
    return Baseline(held, set(interfaces()), {m.at for m in mounts()})


def interfaces():
    return [name for _, name in socket.if_nameindex()]


def interfaces_in(namespace_path):
    """The network interfaces in a namespace. Entered by a child, so that nothing else moves."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        names = "?"
        try:
            fd = os.open(namespace_path, os.O_RDONLY)
            if libc.setns(fd, 0) == 0:
                names = " ".join(interfaces())
        finally:
            theirs.sendall(names.encode() or b" ")
            os._exit(0)
    theirs.close()
    names = ours.recv(65536).decode()
    ours.close()
    os.waitpid(child, 0)
    return names.split()


def socket_namespace(pid, fd):
    """The network namespace in which another process's socket was made; "" when unknown."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return ""
    copy = libc.syscall(SYS_PIDFD_GETFD, pidfd, fd, 0)
    os.close(pidfd)
    if copy < 0:
        return ""
    try:
        namespace = fcntl.ioctl(copy, SIOCGSKNS)
    except OSError:
        return ""
    finally:
        os.close(copy)
    name = f"net:[{os.fstat(namespace).st_ino}]"
    os.close(namespace)
    return name


# --- the search -------------------------------------------------------------------------------


class Search:
    """One look at the host. Its methods each return the leftovers of one kind."""

    def __init__(self, scope, before, keep=(), also=()):
        self.scope, self.before, self.keep = scope, before, set(keep)
        self.places = [Place(scope.state), Place(scope.run)]
        self.all = processes()
        self.seen_mounts = {}
        self.listening = self.unix_inodes(scope.run / "warden.sock")
        self.ours = [p for p in self.all.values() if p.pid != os.getpid() and self.is_ours(p)]
        self.wardens = {p.pid for p in self.ours if self.is_warden(p)}
        self.also = [p for p in self.all.values() if p.pid in also]
        self.kept = [p for p in self.ours if p.vm(scope.cgroup) in self.keep]

    def our_mounts(self, p):
        """The mounts below our folders that a process sees; read once per mount namespace."""
        namespace = p.namespaces["mnt"]
        if namespace == readlink(PROC / "self/ns/mnt") or not namespace:
            return []
        if namespace not in self.seen_mounts:
            self.seen_mounts[namespace] = [m for m in mounts(p.pid)
                                           if any(place.is_in(m) for place in self.places)]
        return self.seen_mounts[namespace]

    def is_ours(self, p):
        return (any(self.scope.has_uid(uid) for uid in p.uids) or
                p.vm(self.scope.cgroup) is not None or bool(self.our_mounts(p)))

    def unix_inodes(self, path):
        return {fields[6] for fields in map(str.split, read("/proc/net/unix").splitlines()[1:])
                if len(fields) > 7 and fields[7] == str(path)}

    def is_warden(self, p):
        """Holds the listening socket and was not merely forked, as its jobs are."""
        return (not p.only_forked and p.vm(self.scope.cgroup) is None and
                any(to.removeprefix("socket:[").rstrip("]") in self.listening
                    for to in p.fds().values() if to.startswith("socket:[")))

    def has_warden(self, p):
        """Is it a living warden, or a descendant of one?"""
        while p:
            if p.pid in self.wardens:
                return True
            p = self.all.get(p.parent)
        return False

    def lost_processes(self):
        for p in self.ours:
            vm = p.vm(self.scope.cgroup)
            uids = [uid for uid in p.uids if self.scope.has_uid(uid)]
            if p in self.kept or p.pid in self.wardens:
                continue
            if uids:
                yield Leak("process", str(p), f"its uid {uids[0]} belongs to the VMs")
            elif vm:
                yield Leak("process", str(p), f"it is in the control group of {vm}")
            elif not self.has_warden(p):
                yield Leak("process", str(p), "it sees warden's mounts, and its warden is gone")

    def allowed_namespaces(self):
        allowed = set(self.before.namespaces)
        for p in [self.all[pid] for pid in self.wardens] + self.kept:
            allowed.update(p.namespaces.values())
        return allowed

    def held_namespaces(self):
        """(namespace, a path to it, who holds it how) for our processes and those named."""
        for p in self.ours + self.also:
            for kind, name in p.namespaces.items():
                yield name, PROC / f"{p.pid}/ns/{kind}", f"{p} is in it"
            for fd, to in p.fds().items():
                if NAMESPACE_LINK.fullmatch(to):
                    yield to, PROC / f"{p.pid}/fd/{fd}", f"{p} holds it as descriptor {fd}"
                elif to.startswith("socket:["):
                    yield (socket_namespace(p.pid, fd), None,
                           f"socket {fd} of {p} was made in it")

    def lost_namespaces(self):
        allowed = self.allowed_namespaces() | {""}
        for name, path, why in self.held_namespaces():
            if name in allowed:
                continue
            allowed.add(name)
            yield Leak("namespace", name, why)
            if name.startswith("net:") and path:
                for interface in interfaces_in(path):
                    if interface != "lo":
                        yield Leak("interface", f"{interface} in {name}", why)

    def lost_taps(self):
        for p in self.ours + self.also:
            if p in self.kept:
                continue
            for fd, to in p.fds().items():
                if to == "/dev/net/tun":
                    yield Leak("tap", f"descriptor {fd} of {p}", "no VM that is kept uses it")
        for name in sorted(set(interfaces()) - self.before.interfaces):
            if (pathlib.Path("/sys/class/net") / name / "tun_flags").exists():
                yield Leak("tap", name, "it is in the host's own network and was not before")

    def lost_cgroups(self):
        for m in mounts():
            if m.kind not in ("cgroup", "cgroup2"):
                continue
            for folder, groups, _ in os.walk(f"{m.at}/{self.scope.cgroup}"):
                for group in groups:
                    path = pathlib.Path(folder) / group
                    vm = path.relative_to(f"{m.at}/{self.scope.cgroup}").parts[0]
                    if vm not in self.keep | STANDING_GROUPS:
                        yield Leak("cgroup", str(path), "it is below the group of the VMs")

    def lost_mounts(self):
        allowed = {p.namespaces["mnt"] for p in self.kept}
        allowed.update(self.all[pid].namespaces["mnt"] for pid in self.wardens)
        for namespace, found in self.seen_mounts.items():
            if namespace not in allowed:
                for m in found:
                    yield Leak("mount", f"{m.at} in {namespace}", f"it shows {m.root}")
        for m in mounts():
            if m.at not in self.before.mounts and any(place.is_in(m) for place in self.places):
                yield Leak("mount", m.at, "it is in the host's own mount namespace")

    def lost_sockets(self):
        for fields in map(str.split, read("/proc/net/unix").splitlines()[1:]):
            path = fields[7] if len(fields) > 7 else ""
            if not any(is_below(path, place.folder) for place in self.places):
                continue
            if path == str(self.scope.run / "warden.sock") and self.wardens:
                continue
            yield Leak("socket", path, "nobody should be bound to it")

    def lost_files(self):
        for path in sorted((self.scope.state / "vms").glob("*")):
            if path.name not in self.keep:
                yield Leak("file", str(path), "no such VM is kept")
        for folder, names, files in os.walk(self.scope.state):
            for name in names + files:
                path = pathlib.Path(folder) / name
                inside = path.relative_to(self.scope.state).parts
                if inside[0] == "vms" and inside[1:2] and inside[1] in self.keep:
                    continue
                try:
                    owner = path.lstat().st_uid
                except FileNotFoundError:
                    continue
                if inside[0] == "templates" and name.startswith(".build-"):
                    if not self.builds(name.removeprefix(".build-")):
                        yield Leak("file", str(path), "no VM that is kept builds it")
                elif self.scope.has_uid(owner) and not self.is_built(inside):
                    yield Leak("file", str(path), f"it belongs to uid {owner} of the VMs")

    def builds(self, template):
        """Is a kept VM in this open template? It holds the template's disk."""
        disk = str(self.scope.state / "templates" / f".build-{template}" / "disk")
        return any(to == disk for p in self.kept for to in p.fds().values())

    def is_built(self, inside):
        return (inside[0] == "templates" and len(inside) > 1 and
                inside[1].startswith(".build-") and self.builds(inside[1].removeprefix(".build-")))

    def lost_deleted(self):
        kept = {p.pid for p in self.kept}
        for p in self.all.values():
            if p.pid in kept:
                continue
            for fd, to in p.fds().items():
                path = to.removesuffix(" (deleted)")
                if path != to and any(is_below(path, place.folder) for place in self.places):
                    yield Leak("deleted file", path, f"descriptor {fd} of {p} keeps its blocks")

    def run(self):
        found = set()
        for look in (self.lost_processes, self.lost_namespaces, self.lost_taps, self.lost_cgroups,
                     self.lost_mounts, self.lost_sockets, self.lost_files, self.lost_deleted):
            found.update(look())
        return sorted(found)


SAVED = {"pages", "state", "row", "pages.new", "state.new", "row.new"}


def lost_data(folder, running, paused, snapshots):
    """What is in node's data_dir and in no row: folders, and files that a folder should not have now."""
    for path in sorted((folder / "sandboxes").iterdir()):
        if path.name not in running | paused:
            yield Leak("file", str(path), "no sandbox has this folder")
            continue
        for file in sorted(path.iterdir()):
            if file.name != "disk" and not (file.name in SAVED and path.name in paused):
                yield Leak("file", str(file), "nothing is saved of a sandbox that runs" if file.name in SAVED
                           else "no file of a sandbox has this name")
    for path in sorted((folder / "snapshots").iterdir()):
        if path.name not in snapshots:
            yield Leak("file", str(path), "no snapshot has this folder")


def find(scope, before=None, keep=(), also=(), grace=0):
    """The leftovers that are still there after the grace period, in seconds."""
    before = before or Baseline(set(Process(1).namespaces.values()) |
                                set(Process(os.getpid()).namespaces.values()),
                                set(interfaces()), {m.at for m in mounts()})
    until = time.monotonic() + grace
    while True:
        found = Search(scope, before, keep, also).run()
        if not found or time.monotonic() >= until:
            return found
        time.sleep(POLL_SECONDS)


def parse(arguments):
    parser = argparse.ArgumentParser(description="find what a warden left behind")
    parser.add_argument("--state", required=True, type=pathlib.Path, help="its state_dir")
    parser.add_argument("--run", required=True, type=pathlib.Path, help="its run_dir")
    parser.add_argument("--cgroup", required=True, help="its cgroup")
    parser.add_argument("--uid-base", required=True, type=int)
    parser.add_argument("--uids", required=True, type=int, help="its vms_max")
    parser.add_argument("--keep", action="append", default=[], metavar="VM")
    parser.add_argument("--also", action="append", default=[], type=int, metavar="PID",
                        help="a client whose descriptors are looked at too")
    parser.add_argument("--save", metavar="FILE", help="write a baseline and do nothing else")
    parser.add_argument("--baseline", metavar="FILE")
    parser.add_argument("--grace", type=float, default=GRACE_SECONDS, metavar="SECONDS")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    if os.geteuid() != 0:
        print("leaks.py: only root sees everything", file=sys.stderr)
        return 2
    if options.save:
        baseline().save(options.save)
        return 0
    scope = Scope(options.state.resolve(), options.run.resolve(), options.cgroup,
                  options.uid_base, options.uids)
    before = Baseline.load(options.baseline) if options.baseline else None
    found = find(scope, before, options.keep, options.also, options.grace)
    if options.json:
        print(json.dumps([dataclasses.asdict(leak) for leak in found], indent=1))
    else:
        for leak in found:
            print(leak)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
