"""test_build_beside.py - a template is built of a 500 MB image, beside a shell script that does the bare work, in turns.

    cold    Template.build() of the published package until it is ready, on a server that has nothing, beside all of
            bare_build: copy, unpack, mkfs, boot, snapshot
    found   the same build again, without steps and with steps that are all found, beside boot and snapshot of bare_build
    create  of that template and of `base`, without a pool and from a full one, beside a bare restore of `base`

HOTCELL_ROUNDS (3) rounds; in each HOTCELL_PAIRS (10) creates of a kind, and HOTCELL_FOUND (4) builds that find all.
HOTCELL_SIZES (1,512) are the vCPUs and MiB of the template; where they are not those of `base` a build boots twice.
"""

import io
import os
import statistics
import subprocess
import tarfile
import time

import pytest

from engine import TOP, artefact, guest_settings, kernel_path
from made_images import Image, digest
from registry import Registry
from sdk_builds import SdkClient
from server import TEMPLATE, Server, wait_for
from test_restore_latency import Bare
from warden import build_dir

ROUNDS = int(os.environ.get("HOTCELL_ROUNDS", "3"))
PAIRS = int(os.environ.get("HOTCELL_PAIRS", "10"))
FOUND = int(os.environ.get("HOTCELL_FOUND", "4"))
IMAGE_BYTES = 500 * 1000 * 1000  # unpacked
COLD_MAX = 1.2  # of the bare work
FOUND_MAX = 1.1  # until it is ready
TOLD_MAX = 1.3  # until Template.build() returns: the package looks every 0.2 s, and a boot takes 1.5
CREATE_MAX, WARM_MAX = 1.15, 0.075  # of a bare restore: what test_create.py allows `base`
SIZES = dict(zip(("cpu_count", "memory_mb"), map(int, os.environ.get("HOTCELL_SIZES", "1,512").split(","))))  # as of `base`
DISK_MIB = 10240
POOL, VM_MIB = 2, 64
PATIENCE = 120
CPU = "Haswell-noTSX,-vme,-pcid,-invpcid,-tsc-deadline,-erms"  # warden's own default
NAME = "big/image:1"


def more_files(root, wanted):
    """A layer with copies of programs and libraries of the root: as much of them as is wanted."""
    out, total = io.BytesIO(), 0
    with tarfile.open(root) as tar, tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as to:
        for entry in tar:
            if not entry.isreg() or total >= wanted:
                continue
            data = tar.extractfile(entry)
            entry.name = f"opt/more/{entry.name.removeprefix('./')}"
            entry.pax_headers = {}
            to.addfile(entry, data)
            total += entry.size
    return out.getvalue(), total


@pytest.fixture(scope="module")
def image():
    root = artefact("rootfs")
    with tarfile.open(root) as tar:
        size = sum(entry.size for entry in tar if entry.isreg())
    layer, more = more_files(root, IMAGE_BYTES - size)
    made = Image([root.read_bytes(), layer])
    print(f"\nthe image: {(size + more) / 1e6:.0f} MB in {len(made.blobs)} layers, {sum(map(len, made.blobs)) / 1e6:.0f} MB compressed")
    return made


@pytest.fixture(scope="module")
def registry(tmp_path_factory, image):
    with Registry(tmp_path_factory.mktemp("registry") / "of") as r:
        r.push(*NAME.split(":"), image)
        yield r


class BareBuild:
    """The shell script, in one folder. Each call: {part: seconds}; the first does all, the others boot and save."""

    def __init__(self, folder, registry, image):
        layers = [digest(blob)[7:] for blob in image.blobs]
        words = [TOP / "tests/performance/bare_build", f"{registry.host}/{NAME}", folder, kernel_path(),
                 guest_settings()["cmdline"], build_dir() / "src/agent/hotcell-agent", CPU, SIZES["cpu_count"],
                 SIZES["memory_mb"], DISK_MIB, *layers]
        self.folder, self.words = folder, list(map(str, words))

    def __enter__(self):
        self.folder.mkdir()
        return self

    def __exit__(self, *exc):
        subprocess.run(["rm", "-r", self.folder], check=True)

    def __call__(self):
        done = subprocess.run(self.words, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return {name: float(took) for name, took in (line.split() for line in done.stdout.splitlines())}


class Timed:
    """One build: how long it took, and when it said what."""

    def __init__(self, sdk, recipe, name, **options):
        self.begun = time.time()
        made = sdk.build(recipe, name, **SIZES, **options)
        self.took = time.time() - self.begun
        assert made.error is None, (made.error, made.log)
        self.made = made
        # by node's own clock: then the package, which asks from time to time, is told
        self.ready = next(at for at, (_, text) in zip(made.times, made.log) if "Template is saved" in text) - self.begun

    def show(self, what):
        last = self.begun
        print(f"{what}: {self.took:.1f} s")
        for at, (_, text) in zip(self.made.times, self.made.log):
            print(f"   {at - self.begun:6.2f} s {at - last:+6.2f}  {text[:100]}")
            last = at
        print(f"   {self.took:6.2f} s {self.begun + self.took - last:+6.2f}  told")


class Round:
    def __init__(self, folder, registry, image, sdks):
        self.steps_found, self.boots, self.again = [], [], []
        with BareBuild(folder, registry, image) as bare:
            self.bare = bare()
            with Server(node={"slots": 4, "starts_max": 2}, images={"default_registry": registry.host,
                        "insecure": registry.host}) as server, SdkClient(server, sdks) as sdk:
                self.build(sdk, bare)
                self.log = server.daemons["node"].log()
                self.create(server)

    def build(self, sdk, bare):
        sdk.ask("exists", "mine")  # so that its modules are loaded
        recipe = [["from_image", NAME]]
        steps = [*recipe, ["run_cmd", "echo one > /tmp/one"], ["set_envs", {"A": "b"}], ["run_cmd", "echo two > /tmp/two"]]
        self.cold = Timed(sdk, recipe, "mine")
        self.ran = Timed(sdk, steps, "stepped")
        assert self.ran.made.ran() == [1, 2, 3]
        for _ in range(FOUND):
            self.again.append(Timed(sdk, recipe, "mine"))
            self.steps_found.append(Timed(sdk, steps, "stepped"))
            assert self.steps_found[-1].made.found() == [1, 2, 3] and not self.steps_found[-1].made.ran()
            self.boots.append(sum(bare().values()))
            print(f"boot and snapshot, bare: {self.boots[-1]:.1f} s")

    def show(self):
        print("bare: " + "  ".join(f"{name} {took:.2f}" for name, took in self.bare.items()) + " s")
        self.cold.show("nothing found")
        self.ran.show("steps run")
        self.again[-1].show("the same again, no steps")
        self.steps_found[-1].show("steps, all found")
        print("\n".join(line for line in self.log.splitlines() if "snapshot " in line or "in ms:" in line))

    def create(self, server):
        bare = Bare(server.warden, next(path.name for path in (server.warden.state / "templates").iterdir()
                                        if path.name.startswith("base-")))
        try:
            empty = self.create_in_turns(server, bare, lambda: server.node_status()["slotsReady"] >= 1)
            server.restart("node", pool=POOL, pool_each_max=POOL, pool_memory_mib=2 * POOL * VM_MIB)
            server.wait_up()
            server.wait_template()
            for template in (TEMPLATE, "mine"):  # so that they have pools
                server.delete(server.create(templateID=template))
            warm = self.create_in_turns(server, bare, lambda: pools_are_full(server))
            self.creates = {"empty": empty, "warm": warm}
        finally:
            bare.close()

    def create_in_turns(self, server, bare, ready):
        """{template: seconds of each}; "bare": of bare restores"""
        took = {TEMPLATE: [], "mine": [], "bare": []}
        for _ in range(PAIRS):
            for template in (TEMPLATE, "mine"):
                wait_for(ready, "all is ready for a create", PATIENCE, 0.02)
                begun = time.monotonic()
                box = server.create(templateID=template)
                took[template].append(time.monotonic() - begun)
                server.delete(box)
            wait_for(ready, "all is ready for a create", PATIENCE, 0.02)
            took["bare"].append(bare.restore()["total"] / 1e6)
        return took


def pools_are_full(server):
    """Of `base` and of the template; and nothing is started any more."""
    pools = server.node_status()["pools"]
    return len(pools) == 2 and all(p["ready"] >= 1 and not p["starting"] for p in pools)


def ratio(what, ours, bare, limit):
    """Of medians; and says so."""
    r = statistics.median(ours) / statistics.median(bare)
    print(f"{what:34} {statistics.median(ours):8.3f} s  bare {statistics.median(bare):8.3f} s  {r:6.3f} x (limit {limit})   "
          f"{' '.join(f'{o:.3f}/{b:.3f}' for o, b in zip(ours, bare))}")
    return r <= limit or what


def test_a_build_beside_the_bare_chain(tmp_path, registry, image):
    sdks = artefact("sdks")
    rounds = []
    for n in range(ROUNDS):
        rounds.append(Round(tmp_path / f"bare{n}", registry, image, sdks))
        print(f"\n--- round {n + 1}")
        rounds[-1].show()
    boots = [t for r in rounds for t in r.boots]
    print("\nmedians; then each: ours/bare")
    results = [ratio("build, nothing found", [r.cold.took for r in rounds], [sum(r.bare.values()) for r in rounds], COLD_MAX),
               ratio("the same again, no steps", [t.took for r in rounds for t in r.again], boots, FOUND_MAX),
               ratio("steps, all found", [t.ready for r in rounds for t in r.steps_found], boots, FOUND_MAX),
               ratio("steps, all found, as told", [t.took for r in rounds for t in r.steps_found], boots, TOLD_MAX)]
    for kind, limit in (("empty", CREATE_MAX), ("warm", WARM_MAX)):
        for name in (TEMPLATE, "mine"):  # as test_create.py: a shared machine has bad moments, the best round counts
            tries = [ratio(f"create of {name}, {kind} pool", r.creates[kind][name], r.creates[kind]["bare"], limit) for r in rounds]
            results.append(True in tries or tries[0] if name == "mine" else True)  # `base` has a test of its own
    assert all(result is True for result in results), results
