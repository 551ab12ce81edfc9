"""taken.py - somebody else's code inside a running process: its thread makes the system calls it is told to.

    with Taken(pid) as it:
        fd = it.call("socket", AF_INET, SOCK_STREAM, 0)       # raises OSError as the process would see it
        it.call("connect", fd, it.place(address), len(address))

Like code of an attacker it has the process's user, network, descriptors and filter, and no more. Needs root; x86-64.
"""

import ctypes
import errno
import os
import signal

from seccomp import PTRACE_DETACH, PTRACE_INTERRUPT, PTRACE_SEIZE, WALL, libc, ptrace

PTRACE_SINGLESTEP, PTRACE_GETREGS, PTRACE_SETREGS = 9, 12, 13
SYSCALL = b"\x0f\x05"
ERRORS = 4095
SCRATCH_BELOW, SCRATCH_MAX = 64 << 10, 16 << 10  # of the stack: nothing the process has there yet
NUMBERS = {"brk": 12, "shutdown": 48, "open": 2, "connect": 42, "socket": 41, "sendto": 44, "fork": 57, "execve": 59, "kill": 62, "ptrace": 101,
           "prctl": 157, "mmap": 9, "mprotect": 10, "openat": 257, "unshare": 272, "setns": 308,
           "process_vm_readv": 310, "execveat": 322, "memfd_create": 319, "getpid": 39, "openat2": 437,
           "pidfd_open": 434, "pidfd_getfd": 438, "bind": 49, "clone": 56, "clone3": 435, "io_uring_setup": 425,
           "setuid": 105, "readlink": 89, "stat": 4, "mount": 165, "bpf": 321, "keyctl": 250, "listen": 50,
           "epoll_wait": 232, "epoll_pwait": 281, "fstat": 5, "newfstatat": 262, "clock_gettime": 228, "futex": 202,
           "mremap": 25, "munmap": 11, "write": 1}
NAMES = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds es "
         "fs gs").split()


class Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in NAMES]


class Taken:
    def __init__(self, pid):
        self.pid = pid
        self.used = 0

    def __enter__(self):
        ptrace(PTRACE_SEIZE, self.pid)
        ptrace(PTRACE_INTERRUPT, self.pid)
        os.waitpid(self.pid, WALL)
        self.before = Registers()
        ptrace(PTRACE_GETREGS, self.pid, 0, ctypes.addressof(self.before))
        self.memory = open(f"/proc/{self.pid}/mem", "r+b", 0)
        self.gate = self.find_gate()
        return self

    def __exit__(self, *_):
        """It goes on where it was: a call that was interrupted is begun anew."""
        self.memory.close()
        ptrace(PTRACE_SETREGS, self.pid, 0, ctypes.addressof(self.before))
        ptrace(PTRACE_DETACH, self.pid)

    def find_gate(self):
        """Any instruction that enters the kernel."""
        with open(f"/proc/{self.pid}/maps") as maps:
            for line in maps:
                where, rights, *_ = line.split()
                if "x" not in rights or "[" in line:
                    continue
                begin, end = (int(part, 16) for part in where.split("-"))
                self.memory.seek(begin)
                at = self.memory.read(end - begin).find(SYSCALL)
                if at >= 0:
                    return begin + at
        raise AssertionError("nothing in this process makes a system call")

    def place(self, data):
        """Some bytes in its memory; where."""
        at = self.before.rsp - SCRATCH_BELOW + self.used
        self.used += (len(data) + 15) & ~15
        assert self.used <= SCRATCH_MAX
        self.memory.seek(at)
        self.memory.write(data)
        return at

    def call(self, name, *args):
        registers = Registers.from_buffer_copy(self.before)
        registers.rip, registers.rax, registers.orig_rax = self.gate, NUMBERS[name], ctypes.c_uint64(-1).value
        for register, value in zip(("rdi", "rsi", "rdx", "r10", "r8", "r9"), [*args, 0, 0, 0, 0, 0, 0]):
            setattr(registers, register, ctypes.c_uint64(value).value)
        ptrace(PTRACE_SETREGS, self.pid, 0, ctypes.addressof(registers))
        ptrace(PTRACE_SINGLESTEP, self.pid)
        _pid, status = os.waitpid(self.pid, WALL)
        assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGTRAP, f"{name}: {status:#x}"
        ptrace(PTRACE_GETREGS, self.pid, 0, ctypes.addressof(registers))
        assert registers.rip == self.gate + len(SYSCALL)
        got = ctypes.c_int64(registers.rax).value
        if -ERRORS <= got < 0:
            raise OSError(-got, os.strerror(-got), name)
        return got

    def go_on_at(self, function):
        """When it is let go, it calls a function of libc: the one that this program has as well."""
        here = ctypes.cast(getattr(libc, function), ctypes.c_void_p).value
        self.before.rip = here - libc_base(os.getpid()) + libc_base(self.pid)
        self.before.rsp = (self.before.rsp - SCRATCH_BELOW & ~15) - 8
        self.before.orig_rax = ctypes.c_uint64(-1).value  # no call to begin anew

    def descriptor(self, fd):
        """A copy of one of its descriptors."""
        pidfd = os.pidfd_open(self.pid)
        try:
            got = libc.syscall(NUMBERS["pidfd_getfd"], pidfd, fd, 0)
        finally:
            os.close(pidfd)
        if got < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
        return got


def may_make(pid, *names):
    """Its filter allows them: whatever the kernel says to arguments that mean nothing, it is not that."""
    with Taken(pid) as taken:
        for name in names:
            try:
                taken.call(name, -1)
            except OSError as failed:
                assert failed.errno != errno.EPERM, f"{name} is refused"


def libc_base(pid):
    with open(f"/proc/{pid}/maps") as maps:
        return min(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith("/libc.so.6"))


def memory_has(pid, *needles):
    """Which of them are anywhere in the memory of a process, to the last page of it. Read from outside, as root."""
    found, longest = set(), max(map(len, needles))
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            where, rights = line.split()[:2]
            if "r" not in rights or "[v" in line:
                continue
            begin, end = (int(part, 16) for part in where.split("-"))
            memory.seek(begin)
            rest, left = b"", end - begin
            while left:
                part = memory.read(min(left, 16 << 20))
                assert part, f"{where} cannot be read"
                left -= len(part)
                found |= {needle for needle in needles if needle in rest + part}
                rest = part[-longest:]
    return found
