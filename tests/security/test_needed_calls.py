"""test_needed_calls.py - long: every system call of a filter is needed, and who needs it.

For egress, for the injector, its forkserver and its workers, for the images daemon and for the signer: the tests of its calls are run with a filter that has one
call less, for each; a run that is none the worse for it shows a call too many. Prints the table.
HOTCELL_NEEDED is a list of calls, if it shall not be all.
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
FILTERS = {  # by whose lines of the log they are: where its filter is, and the tests of it
    "egress": ("egress", "test_egress_calls.py"),
    "injector": ("injector", "test_injector_calls.py"),
    "injector-forkserver": ("injector/forkserver", "test_injector_calls.py"),
    "injector-worker": ("injector/worker", "test_injector_calls.py"),
    "images": ("images", "test_images_calls.py"),
    "signer": ("signer", "test_signer_calls.py"),
}


def filter_of(folder):
    return re.findall(r'^\t"(\w+)",$', (build_dir() / "src" / folder / "syscalls.h").read_text(), re.M)


def who_misses(who, call):
    """The first test that fails without it; None: nobody."""
    done = subprocess.run([sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "-p", "no:cacheprovider",
                           HERE / FILTERS[who][1]], capture_output=True, text=True, timeout=SECONDS, check=False,
                          env={**os.environ, refused_calls.LESS: f"without:{who}:{call}"})
    failed = re.search(r"^(?:FAILED|ERROR) \S*::(\w+)", done.stdout, re.M)
    assert done.returncode in (0, 1) and bool(failed) == bool(done.returncode), done.stdout + done.stderr
    return failed and failed[1]


@pytest.mark.skipif(is_sanitized(), reason="a build with sanitizers allows what they need")
@pytest.mark.parametrize("who", FILTERS)
def test_every_call_of_the_filter_is_missed(who):
    calls = filter_of(FILTERS[who][0])
    if os.environ.get("HOTCELL_NEEDED"):
        calls = [call for call in calls if call in os.environ["HOTCELL_NEEDED"].split()]
    assert who_misses(who, "nothing") is None, "with all of its calls it has to work"
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        missed = dict(zip(calls, pool.map(lambda call: who_misses(who, call), calls)))
    print()
    for call, test in missed.items():
        print(f"{who:15} {call:20} {test or 'nobody'}")
    unneeded = [call for call, test in missed.items() if not test]
    assert not unneeded, f"nobody needs {unneeded}"
