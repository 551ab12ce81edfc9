"""page_cache.py - how much of a file the kernel has in memory."""

import ctypes
import mmap
import os


def resident(path):
    """How many pages of a file are in memory."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        with mmap.mmap(file.fileno(), size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE) as mapped:
            pages = (size + mmap.PAGESIZE - 1) // mmap.PAGESIZE
            told = (ctypes.c_ubyte * pages)()
            start = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.mincore(ctypes.c_void_p(start), ctypes.c_size_t(size), told) != 0:
                raise OSError(ctypes.get_errno(), "mincore")
            found = sum(page & 1 for page in told)
    return found
