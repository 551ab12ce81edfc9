"""unpacked.py - runs hotcell-unpack over layers, and reads the disk that it made without mounting it."""

import collections
import hashlib
import json
import os
import pathlib
import re
import subprocess

from warden import build_dir, is_sanitized

FIRST_LAYER = 10
SECONDS = 120  # after which the launcher dies, and the test with it
NOBODY = 65534
DEBUGFS, E2FSCK = "/usr/sbin/debugfs", "/usr/sbin/e2fsck"

# Opens the files as root, then becomes nobody, who needs no way to them. `forks`: the kernel counts the memory of
# whoever calls exec, too, so a small process stands between the test and the program, and tells what was used.
LAUNCH = """
import fcntl, json, os, resource, signal, sys
given = json.loads(sys.argv[1])
signal.alarm(given["seconds"])
if given["forks"] and os.fork():
    status = os.waitstatus_to_exitcode(os.wait()[1])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps([status, used.ru_maxrss // 1024, used.ru_utime + used.ru_stime]))
    sys.exit()
def away(fd):
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 300)
program = away(os.open(given["program"], os.O_RDONLY))
moved = {at: away(fd if isinstance(fd, int) else os.open(fd, flags)) for at, fd, flags in given["files"]}
os.closerange(3, 300)
for at, fd in moved.items():
    os.dup2(fd, at)
os.setgroups([])
os.setgid(given["user"])
os.setuid(given["user"])
os.execve(program, given["words"], os.environ)
"""

Outcome = collections.namedtuple("Outcome", "status lines said memory_mib seconds disk")


def program():
    return build_dir() / "src/unpack/hotcell-unpack"


def files_below(folder):
    """Every file of a folder with its contents, but for the disk and the result."""
    return {path.relative_to(folder).as_posix(): (path.lstat().st_mode, path.lstat().st_mtime_ns,
                                                  hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
            for path in folder.rglob("*") if path.name not in ("disk", "result")}


def launch(place, layers, disk_mib, result, forks):
    """The words of a process that runs it as nobody; a layer is a path, the result a path or a descriptor."""
    files = [(3, place / "disk", os.O_RDWR), (4, result, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), (5, place / "agent", os.O_RDONLY),
             *((FIRST_LAYER + i, layer, os.O_RDONLY) for i, layer in enumerate(layers))]
    given = {"program": str(program()), "words": ["hotcell-unpack", "--layers", str(len(layers)), "--disk-mib", str(disk_mib)],
             "files": [(at, what if isinstance(what, int) else str(what), flags) for at, what, flags in files],
             "seconds": SECONDS, "user": NOBODY, "forks": forks}
    return ["/usr/bin/python3", "-IS", "-c", LAUNCH, json.dumps(given)]


def unpack(place, layers, disk_mib=64, agent=b"agent"):
    """Run it as nobody, in an empty folder. Layers are bytes, or paths of files."""
    place = pathlib.Path(place)
    here = place / "empty"
    here.mkdir(exist_ok=True)
    (place / "agent").write_bytes(agent)
    paths = []
    for i, layer in enumerate(layers):
        if isinstance(layer, bytes):
            (place / f"layer{i}").write_bytes(layer)
            layer = place / f"layer{i}"
        paths.append(layer)
    (place / "disk").write_bytes(b"")
    before = files_below(place)
    run = subprocess.run(launch(place, paths, disk_mib, place / "result", True), cwd=here, text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, check=True)
    status, memory_mib, seconds = json.loads(run.stdout)
    assert files_below(place) == before, "something beside the disk has changed"
    lines = [json.loads(line) for line in (place / "result").read_text().splitlines()]
    return Outcome(status, lines, run.stderr, memory_mib, seconds, Disk(place / "disk"))


STAT = re.compile(
    r"Inode: (?P<ino>\d+)\s+Type: (?P<type>\S+(?: \S+)?)\s+Mode:\s+(?P<mode>\d+).*?"
    r"User:\s+(?P<uid>\d+)\s+Group:\s+(?P<gid>\d+).*?Size: (?P<size>\d+).*?"
    r"Links: (?P<links>\d+)\s+Blockcount: (?P<blocks>\d+).*? mtime: 0x(?P<mtime>[0-9a-f]+)(?::(?P<extra>[0-9a-f]+))?", re.S)
XATTR = re.compile(r"^  (\S+) \((\d+)\)(?: = (.*))?$", re.M)


def unquoted(value):
    """What debugfs prints of an attribute: text in quotes, or bytes in hexadecimal."""
    if value.startswith('"'):
        return value[1:-1].encode("latin-1").decode("unicode_escape").encode("latin-1")
    return bytes.fromhex(value.replace(" ", ""))


class Disk:
    """A file system in a file, as debugfs reads it."""

    def __init__(self, path):
        self.path = path

    def ask(self, *requests):
        """What debugfs says to each; a request is a line."""
        run = subprocess.run([DEBUGFS, "-f", "-", self.path], input="\n".join(requests) + "\n", stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, errors="surrogateescape", check=True)
        return re.split(r"^debugfs: .*\n", run.stdout, flags=re.M)[1:]

    def stats(self, paths):
        """A dict, or None where there is nothing, for each path."""
        return [self._read(text) for text in self.ask(*(f'stat "{path}"' for path in paths))]

    def stat(self, path):
        return self.stats([path])[0]

    @staticmethod
    def _read(text):
        found = STAT.search(text)
        if not found:
            return None
        stat = {name: int(found[name]) for name in ("ino", "uid", "gid", "size", "links", "blocks")}
        stat.update(type=found["type"], mode=int(found["mode"], 8))
        seconds, extra = int(found["mtime"], 16), int(found["extra"] or "0", 16)
        stat["mtime"] = seconds - (1 << 32 if seconds >> 31 else 0) + ((extra & 3) << 32)
        link = re.search(r'Fast link dest: "(.*)"', text)
        stat["target"] = link and link[1]
        part = text.partition("Extended attributes:\n")[2]
        stat["xattrs"] = {name: unquoted(value or '""') for name, size, value in XATTR.findall(part)}
        return stat

    def cat(self, path):
        return subprocess.run([DEBUGFS, "-R", f'cat "{path}"', self.path], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=True).stdout

    def names(self, path):
        """What is in a folder, without . and .."""
        listed = self.ask(f'ls -p "{path}"')[0]
        return {line.split("/")[5] for line in listed.splitlines() if line.count("/") >= 6} - {".", "..", ""}

    def complaints(self):
        """What e2fsck finds wrong; empty when nothing is."""
        run = subprocess.run([E2FSCK, "-fn", self.path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace")
        return "" if run.returncode == 0 else run.stdout


def memory_limit_mib():
    """More than this no image may need, besides what the names of a million files take."""
    return 2048 if is_sanitized() else 200
