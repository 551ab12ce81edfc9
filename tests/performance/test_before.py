"""test_before.py - is it as fast as it was? Two builds in one run, and one of them twice.

HOTCELL_BEFORE names the commit to compare with; it is checked out and built here. Three servers take turns: of that
commit, of that commit once more, and of this build (HOTCELL_BUILD). What the first two differ by is what this machine
makes of nothing: the limit is so much above 1.03. HOTCELL_PAIRS (200) rounds.
"""

import os
import pathlib
import random
import statistics
import subprocess
import sys

import pytest

from warden import build_dir

TOP = pathlib.Path(__file__).resolve().parents[2]
BEFORE = os.environ.get("HOTCELL_BEFORE")
ROUNDS = int(os.environ.get("HOTCELL_PAIRS", "200"))
RATIO_MAX = 1.03
WARM = 3
DRAWS = 2000  # of the bootstrap


class Measured:
    """measured_server.py of one checkout and build."""

    def __init__(self, tests, build):
        self.process = subprocess.Popen(
            [sys.executable, TOP / "tests/performance/measured_server.py", tests], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1, env={**os.environ, "HOTCELL_BUILD": str(build)})
        assert self.process.stdout.readline() == "ready\n"

    def take(self, kind):
        self.process.stdin.write(f"{kind}\n")
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(600) == 0


def interval(ratios):
    """In which the median lies, 95 times of 100."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(DRAWS))
    return medians[DRAWS * 25 // 1000], medians[DRAWS * 975 // 1000]


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("before")
    source, build = folder / "source", folder / "build"
    subprocess.run(["git", "clone", "-q", TOP, source], check=True)
    subprocess.run(["git", "-C", source, "checkout", "-q", BEFORE], check=True)
    subprocess.run(["meson", "setup", build, source, "-Dfaults=true"], stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["ninja", "-C", build], stdout=subprocess.DEVNULL, check=True)
    three = {"before": Measured(source / "tests", build), "again": Measured(source / "tests", build),
             "now": Measured(TOP / "tests", build_dir())}
    yield three
    for server in three.values():
        server.close()


@pytest.mark.skipif(not BEFORE, reason="HOTCELL_BEFORE is not set")
@pytest.mark.parametrize("kind", ["restore", "warm", "resume", "relay"])
def test_as_fast_as_before(servers, kind):
    took, chance = {name: [] for name in servers}, random.Random(1)
    for n in range(WARM + ROUNDS):
        for name in chance.sample(sorted(servers), len(servers)):  # nobody always comes after the same
            ms = servers[name].take(kind)
            if n >= WARM:
                took[name].append(ms)
    same = [b / a for a, b in zip(took["before"], took["again"])]
    now = [b / a for a, b in zip(took["before"], took["now"])]
    low, high = interval(same)
    limit = RATIO_MAX + max(high - 1, 1 - low)
    print(f"\n{kind}: {statistics.median(now):.3f} x before (limit {limit:.3f}), 95 % {interval(now)[0]:.3f} to "
          f"{interval(now)[1]:.3f}; the same build twice {statistics.median(same):.3f}, {low:.3f} to {high:.3f}; medians "
          f"{', '.join(f'{name} {statistics.median(t):.1f} ms' for name, t in took.items())}; {ROUNDS} rounds")
    assert statistics.median(now) <= limit
