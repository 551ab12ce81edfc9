"""test_needed_calls.py - long: every system call of egress's filter is needed, and who needs it.

test_egress_calls.py is run with a filter that has one call less, for each; a run that is none the worse for it shows a
call too many. Prints the table. HOTCELL_NEEDED is a list of calls, if it shall not be all.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

import pytest
import refused_calls
from warden import build_dir, is_sanitized

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 600
WORKERS = 2
# What no test here can show, and why it stays.
RESERVE = {
    "clock_gettime": "the kernel answers it without a call where its clock allows; elsewhere every timer needs it",
    "futex": "a lock that has to be waited for; libc ends a process that may not",
    "mremap": "a large buffer that grows once more; where it may not, libc copies",
}
# Two calls that do the same: which one it is depends on the version of a library.
EITHER = [{"epoll_wait", "epoll_pwait"}, {"fstat", "newfstatat"}]


def filter_of(program):
    return re.findall(r'^\t"(\w+)",$', (build_dir() / f"src/{program}/syscalls.h").read_text(), re.M)


def who_misses(call):
    """The first test that fails without it; None: nobody."""
    done = subprocess.run([sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "-p", "no:cacheprovider",
                           HERE / "test_egress_calls.py"], capture_output=True, text=True, timeout=SECONDS, check=False,
                          env={**os.environ, refused_calls.LESS: f"without:{call}"})
    failed = re.search(r"^(?:FAILED|ERROR) \S*::(\w+)", done.stdout, re.M)
    assert done.returncode in (0, 1) and bool(failed) == bool(done.returncode), done.stdout + done.stderr
    return failed and failed[1]


@pytest.mark.skipif(is_sanitized(), reason="a build with sanitizers allows what they need")
def test_every_call_of_the_filter_is_missed():
    all_calls = filter_of("egress")
    calls = os.environ.get("HOTCELL_NEEDED", " ".join(all_calls)).split()
    assert who_misses("nothing") is None, "with all of its calls it has to work"
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        missed = dict(zip(calls, pool.map(who_misses, calls)))
    for call, who in missed.items():
        print(f"{call:20} {who or RESERVE.get(call) or 'nobody'}")
    unneeded = {call for call, who in missed.items() if not who} - RESERVE.keys()
    for pair in EITHER:
        if len(unneeded & pair) == 1:
            unneeded -= pair
    assert not unneeded, f"nobody needs {sorted(unneeded)}"
    assert RESERVE.keys() <= set(all_calls) and not [call for call in RESERVE if missed.get(call)]
