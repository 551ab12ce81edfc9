"""test_many_templates.py - many templates of many teams share one budget of pools.

All are imported from one small image, which is booted once. HOTCELL_MANY (20) is how many there are,
HOTCELL_MANY_TEAMS (4) of how many teams. Times are printed, and compared within one run only.
"""

import concurrent.futures
import os
import statistics
import subprocess
import time

import pytest

from made_images import Image
from server import Server, wait_for
from small_root import small_root
from warden import build_dir

MANY = int(os.environ.get("HOTCELL_MANY", "20"))
TEAMS = int(os.environ.get("HOTCELL_MANY_TEAMS", "4"))
AT_ONCE = 2
MEMORY_MIB = 512  # as the host's own: then what was booted of the image once is enough
EACH_MAX, VMS, VM_MIB = 2, 6, 64
BUDGET_MIB = VMS * VM_MIB
UNUSED_S = 5
USED = 3   # templates that are used more than others,
TIMES = 5  # so often
SECONDS = 300
PATIENCE = 60


@pytest.fixture(scope="module")
def server():
    with Server(images={}, node={"pool": 0, "starts_max": 2, "pool_each_max": EACH_MAX, "pool_unused_s": 3600,
                                 "pool_memory_mib": BUDGET_MIB, "builds_max": AT_ONCE}) as s:
        yield s


@pytest.fixture(scope="module")
def teams(server):
    """[(name, key)]"""
    return [(f"team{n}", server.new_team(f"team{n}")[1]) for n in range(TEAMS)]


class Looker:
    """The budget holds whenever it is looked at."""

    def __init__(self, server):
        self.server, self.most, self.looks = server, 0, 0

    def pools(self):
        """{name of a template: its pool} of those that have or want a VM."""
        status = self.server.node_status()
        assert status["poolMemoryMB"] <= status["poolMemoryMaxMB"] == BUDGET_MIB, status["pools"]
        told = [p for p in status["pools"] if p["ready"] + p["starting"] + p["wanted"] > 0]
        assert sum(p["memoryMB"] for p in told) <= BUDGET_MIB, told
        self.most, self.looks = max(self.most, status["poolMemoryMB"]), self.looks + 1
        return {p["name"]: p for p in told}

    def ready(self):
        return {name for name, p in self.pools().items() if p["ready"] > 0}


@pytest.fixture(scope="module")
def looker(server):
    return Looker(server)


def import_one(server, file, team, name):
    begun = time.monotonic()
    done = subprocess.run([build_dir() / "src/cli/hotcell", "--socket", server.admin_socket, "templates", "import", file, name, "--team", team,
                           "--cpus", "1", "--memory", str(MEMORY_MIB)], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    return time.monotonic() - begun


@pytest.fixture(scope="module")
def templates(server, teams, tmp_path_factory):
    """[(its name as an operator sees it, its name, the key of its team)], the teams in turn."""
    file = Image([small_root()], compress=False).layout_archive(tmp_path_factory.mktemp("image") / "image.tar")
    names = [(team, f"template{n}", key) for n, (team, key) in ((n, teams[n % TEAMS]) for n in range(MANY))]
    begun = time.monotonic()
    first = import_one(server, file, *names[0][:2])
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as importing:
        took = list(importing.map(lambda t: import_one(server, file, *t[:2]), names[1:]))
    print(f"\n{MANY} templates of {TEAMS} teams imported in {time.monotonic() - begun:.1f} s: the first in {first:.1f} s, the others in "
          f"{statistics.median(took):.1f} s each, {AT_ONCE} at once")
    return [(f"{team}/{name}", name, key) for team, name, key in names]


def create(server, template):
    """Made and ended again: how long it took, and whether it waited in a pool."""
    _, name, key = template
    waiting = set(server.node_status()["pooledIDs"])
    begun = time.monotonic()
    box = server.create(templateID=name, key=key)
    took = time.monotonic() - begun
    assert server.delete(box, key=key) == 204
    return took, box["sandboxID"] in waiting


def test_all_are_there(server, teams, templates):
    said = subprocess.run([build_dir() / "src/cli/hotcell", "--socket", server.admin_socket, "templates"], capture_output=True, text=True,
                          timeout=60, check=True).stdout
    assert all(f"{whole}:default " in said for whole, _, _ in templates)
    for team, key in teams:
        own = {alias for t in server.must("GET", "/templates", key=key) for alias in t["aliases"]} - {"base"}
        assert own == {name for whole, name, _ in templates if whole.startswith(team + "/")}


def test_each_is_a_machine_of_its_own(server, templates):
    """Though none was booted for itself."""
    boxes = [(server.create(templateID=name, key=key), key) for _, name, key in (templates[0], templates[0], templates[1])]
    said = [server.run(box, "cat /etc/hostname /etc/machine-id /proc/sys/kernel/random/boot_id; head -c 16 /dev/urandom | sha256sum; date +%s")
            .split("\n") for box, _ in boxes]
    for (box, key), (hostname, *_, now) in zip(boxes, said):
        assert hostname == box["sandboxID"] and abs(int(now) - time.time()) < 30
        server.delete(box, key=key)
    assert all(len(set(values)) == len(boxes) for values in list(zip(*said))[:-1]), said


def test_creates_from_each_in_turn(server, templates, looker):
    """All want a VM then, and the budget has room for some."""
    found = []
    for template in templates:
        found.append(create(server, template))
        looker.pools()
    wait_for(lambda: len(looker.ready()) == VMS, "the budget is used", PATIENCE, 0.05)
    took, status = sorted(seconds for seconds, _ in found), server.node_status()
    print(f"\n{len(took)} creates of {MANY} templates in turn, none failed: {took[0] * 1000:.0f} to {took[-1] * 1000:.0f} ms, "
          f"median {statistics.median(took) * 1000:.0f} ms; pools take {status['poolMemoryMB']} of {BUDGET_MIB} MiB, {looker.most} at most in "
          f"{looker.looks} looks")
    assert sum(p["wanted"] for p in looker.pools().values()) > VMS


def use(server, used, looker, times):
    """Whether they found a VM: how long each took."""
    took = {True: [], False: []}
    for _ in range(times):
        for template in used:
            seconds, pooled = create(server, template)
            took[pooled].append(seconds)
            looker.pools()
    return took


def check_warm(server, used, looker, took):
    """Each has a VM ready, and a create finds it."""
    for template in used:
        wait_for(lambda whole=template[0]: whole in looker.ready(), f"{template[0]} has a VM ready", PATIENCE, 0.05)
        seconds, pooled = create(server, template)
        assert pooled, f"{template[0]} had a VM ready, and its create found none"
        took[True].append(seconds)
    print(f"\n{len(took[True])} creates found a VM: median {statistics.median(took[True]) * 1000:.0f} ms" +
          (f"; {len(took[False])} did not: {statistics.median(took[False]) * 1000:.0f} ms" if took[False] else ""))


def test_pools_follow_use(server, templates, looker):
    """Those that are used most have VMs, whoever had them before."""
    idle = [t for t in templates if t[0] not in looker.ready()]
    for used in (idle[:USED], idle[-USED:]):
        check_warm(server, used, looker, use(server, used, looker, TIMES))


def test_who_is_not_used_any_more_has_no_pool(server, templates, looker):
    server.kill("node")  # what it had pooled is nobody's, and ended by the next
    server.start("node", pool_unused_s=UNUSED_S)
    server.wait_up()
    server.wait_template()
    used, names = templates[:USED], {whole for whole, _, _ in templates[:USED]}
    use(server, templates[USED:2 * USED], looker, 1)
    wait_for(lambda: use(server, used, looker, 1) and (left := set(looker.pools())) and left <= names, "the others have and want nothing",
             PATIENCE, 0.1)
    listed = {f"{t['namespace']}/{t['name']}": t for t in server.admin("GET", "/admin/templates").json if t.get("name")}
    assert {whole for whole, t in listed.items() if t["poolWanted"] > 0} <= names
    wait_for(lambda: not looker.pools() and server.node_status()["poolMemoryMB"] == 0, "all pools are empty", PATIENCE, 0.2)
    print(f"\npools took {looker.most} of {BUDGET_MIB} MiB at most in {looker.looks} looks")
    assert server.ids() == set() and server.leaks() == []
