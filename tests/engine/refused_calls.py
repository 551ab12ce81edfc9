"""refused_calls.py - a daemon that makes a system call its filter does not have fails the test it ran in.

Refused is not always noticed: libc and the libraries often go on without. So egress and the injector are asked to tell
(src/jail/confine_watch.h), and whoever ends them looks for what they told. A build without -Dfaults=true, and one
with sanitizers, tells nothing.
"""

import ctypes
import os
import re

LESS = "HOTCELL_FEWER_SYSCALLS"  # for test_needed_calls.py: without:WHO:CALL, of whose filter which call is left out
TOLD = re.compile(r"refused system call (\d+)")


def environment(told=True):
    """For a daemon."""
    return {**os.environ, **({"HOTCELL_SYSCALLS": os.environ.get(LESS, "told")} if told else {})}


def name_of(number):
    try:
        resolve = ctypes.CDLL("libseccomp.so.2").seccomp_syscall_resolve_num_arch
    except OSError:
        return str(number)
    resolve.restype = ctypes.c_char_p
    native = 0
    return (resolve(native, number) or str(number).encode()).decode()


def check(who, log):
    names = {name_of(int(number)) for number in TOLD.findall(log)}
    assert not names, f"{who} was refused {' '.join(sorted(names))}: see #syscalls in src/jail/README.md"
