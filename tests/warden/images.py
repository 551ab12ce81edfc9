"""images.py - the smallest files that QEMU accepts as a kernel and as an empty overlay.

No guest runs from them: a VM that is only started, listed and stopped never executes them.
"""

import struct

MIB = 1 << 20
CLUSTER_BITS = 16
CLUSTER = 1 << CLUSTER_BITS
PVH_NOTE = 18  # XEN_ELFNOTE_PHYS32_ENTRY
LOAD_AT = 0x100000


def qcow2(size=MIB):
    """An empty qcow2 (version 3) without a backing name: header, refcounts, one L1 table."""
    header = struct.pack(">4sIQIIQIIQQIIQQQQII", b"QFI\xfb", 3, 0, 0, CLUSTER_BITS, size, 0, 1,
                         3 * CLUSTER, CLUSTER, 1, 0, 0, 0, 0, 0, 4, 104)
    table = struct.pack(">Q", 2 * CLUSTER)
    counts = struct.pack(">4H", 1, 1, 1, 1)
    return b"".join(part.ljust(CLUSTER, b"\0") for part in (header, table, counts, b""))


def kernel():
    """An ELF program with a PVH entry point, whose code is one endless loop."""
    code = b"\xf4\xeb\xfd"  # hlt; jmp -3
    note = struct.pack("<III4sQ", 4, 8, PVH_NOTE, b"Xen\0", LOAD_AT)
    notes_at, code_at = 64 + 2 * 56, 4096
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 62, 1, LOAD_AT, 64, 0, 0,
                         64, 56, 2, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, code_at, LOAD_AT, LOAD_AT, len(code), len(code), 4096)
    notes = struct.pack("<IIQQQQQQ", 4, 4, notes_at, 0, 0, len(note), len(note), 4)
    return (header + load + notes + note).ljust(code_at, b"\0") + code
