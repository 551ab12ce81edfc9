"""seccomp.py - asks the kernel for the filter of a running process, and the filter for its verdicts.

Nothing has to be tried inside the process: its own filter, as the kernel holds it, is evaluated here.
Needs root, and a kernel with PTRACE_SECCOMP_GET_FILTER.
"""

import ctypes
import os
import struct

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_SECCOMP_GET_FILTER = 17, 0x4206, 0x4207, 0x420c
X86_64, I386 = 0xc000003e, 0x40000003
KILL, ERRNO, ALLOW = 0x80000000, 0x00050000, 0x7fff0000
WALL = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, pid, addr=0, data=None):
    got = libc.ptrace(request, pid, addr, data)
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), f"ptrace {request}")
    return got


def read_filters(pid):
    """Every filter of the process, each as a list of (code, jt, jf, k)."""
    ptrace(PTRACE_SEIZE, pid)
    try:
        ptrace(PTRACE_INTERRUPT, pid)
        os.waitpid(pid, WALL)
        filters = []
        while True:
            try:
                n = ptrace(PTRACE_SECCOMP_GET_FILTER, pid, len(filters))
            except FileNotFoundError:
                return filters
            raw = ctypes.create_string_buffer(n * 8)
            ptrace(PTRACE_SECCOMP_GET_FILTER, pid, len(filters), raw)
            filters.append([struct.unpack_from("=HBBI", raw, i * 8) for i in range(n)])
    finally:
        ptrace(PTRACE_DETACH, pid)


def evaluate(program, number, args=(), arch=X86_64):
    """What one filter answers to a call: classic BPF, as far as seccomp uses it."""
    data = struct.pack("=IIQ6Q", number, arch, 0, *(list(args) + [0] * 6)[:6])
    a, memory, at = 0, [0] * 16, 0
    while True:
        code, yes, no, k = program[at]
        at += 1
        if code == 0x20:  # A = data[k]
            a = struct.unpack_from("=I", data, k)[0]
        elif code == 0x00:
            a = k
        elif code == 0x60:
            a = memory[k]
        elif code == 0x02:
            memory[k] = a
        elif code == 0x54:
            a &= k
        elif code == 0x05:
            at += k
        elif code in (0x15, 0x25, 0x35, 0x45):
            true = {0x15: a == k, 0x25: a > k, 0x35: a >= k, 0x45: bool(a & k)}[code]
            at += yes if true else no
        elif code == 0x06:
            return k
        else:
            raise NotImplementedError(f"BPF instruction {code:#x}")


def verdict(filters, number, args=(), arch=X86_64):
    """The strictest answer of all filters: ("allow", 0), ("errno", EPERM) or ("kill", 0)."""
    worst = min((evaluate(f, number, args, arch) for f in filters),
                key=lambda answer: ctypes.c_int32(answer & 0xffff0000).value)
    action = worst & 0xffff0000
    if action == ERRNO:
        return "errno", worst & 0xffff
    return ("allow" if action == ALLOW else "kill" if action & KILL else hex(action)), 0
