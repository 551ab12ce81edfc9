"""search.py - is a secret anywhere here? In files, and in the memory of processes.

    needles = Needles(value)
    needles.in_memory(pid)       # which of its forms were found, and where
    needles.in_folder(folder)

Looked for are the value in parts of 12 bytes, as UTF-16, as hex, and as base64 in each of its three phases.
"""

import base64
import errno
import os
import pathlib

PART, BASE64_PART = 12, 16
CHUNK = 16 << 20
EDGE = 64  # of a chunk, seen again with the next


def base64_parts(value):
    """Of whatever it may be a part of: the same text but for its ends, which depend on what is around it."""
    for phase in range(3):
        text = base64.b64encode(bytes(phase) + value + bytes(3))
        yield text[4:4 + BASE64_PART]
        yield text[24:24 + BASE64_PART]


class Needles:
    def __init__(self, value, *others):
        """`others`: values of which the first part is enough."""
        wide, value = value.encode("utf-16-le"), value.encode()
        assert len(value) >= 3 * PART
        self.all = [value[at:at + PART] for at in range(0, len(value) - PART + 1, PART)]
        self.all += [*base64_parts(value), value.hex().encode()[:2 * PART], wide[:2 * PART]]
        self.all += [other.encode()[:PART] for other in others]

    def within(self, data):
        return [needle for needle in self.all if needle in data]

    def in_range(self, file, begin, end):
        """Of a file or of memory, as far as it can be read."""
        found, edge = [], b""
        while begin < end:
            try:
                data = os.pread(file, min(CHUNK, end - begin), begin)
            except OSError as e:
                if e.errno not in (errno.EIO, errno.EFAULT):
                    raise
                break
            if not data:
                break
            found += [(needle, begin) for needle in self.within(edge + data)]
            edge = data[-EDGE:]
            begin += len(data)
        return found

    def in_memory(self, pid):
        found = []
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        try:
            for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
                where, rights, *rest = line.split(maxsplit=5)
                if "r" in rights and not line.endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")):
                    begin, end = (int(part, 16) for part in where.split("-"))
                    found += [(needle, line) for needle, _ in self.in_range(memory, begin, end)]
        finally:
            os.close(memory)
        return found

    def in_file(self, path):
        """Holes are passed by: disks are mostly that."""
        found, at = [], 0
        file = os.open(path, os.O_RDONLY)
        try:
            size = os.fstat(file).st_size
            while at < size:
                begin = os.lseek(file, at, os.SEEK_DATA)
                at = os.lseek(file, begin, os.SEEK_HOLE)
                found += self.in_range(file, begin, at)
        except OSError as e:
            if e.errno != errno.ENXIO:  # nothing but a hole is left
                raise
        finally:
            os.close(file)
        return [(needle, f"{path}: {where}") for needle, where in found]

    def in_folder(self, folder, since=0):
        """Every file there is, but those that nobody wrote to since then: (how many, what was found)."""
        found, n = [], 0
        for where, _, names in os.walk(folder):
            for path in (pathlib.Path(where, name) for name in names):
                if path.is_file() and not path.is_symlink() and path.stat().st_mtime >= since:
                    found += self.in_file(path)
                    n += 1
        return n, found
