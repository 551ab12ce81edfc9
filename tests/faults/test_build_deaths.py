"""test_build_deaths.py - a daemon dies while a template is built: the build goes on or has ended with a reason, nothing
of it is left, and the same build again succeeds.

Node dies at each named step of a build, images and warden in the middle of their work. HOTCELL_BUILD_DEATHS (0) is how
many are added to these at random instants. Named steps need a build with -Dfaults=true.
"""

import os
import random
import time

import pytest

from engine import artefact
from made_images import Image
from registry import Registry
from server import Server, wait_for
from steps import build_steps

RANDOM_DEATHS = int(os.environ.get("HOTCELL_BUILD_DEATHS", "0"))
SEED = int(os.environ.get("HOTCELL_SEED", "1"))
PATIENCE = 240  # seconds: a build, emulated, on a busy machine
OF_IMAGES = ("build.image", "build.disk")  # passed only by builds that begin with an image
STARTED = {"startCmd": "exec sleep 1000", "readyCmd": "pgrep -x sleep"}


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    with Registry(tmp_path_factory.mktemp("registry") / "of") as r:
        r.push("library/debian", "stable", Image([artefact("rootfs").read_bytes()], compress=False))
        yield r


@pytest.fixture(scope="module")
def server(registry):
    with Server(images={"default_registry": registry.host, "insecure": registry.host}) as s:
        yield s


class Build:
    """One that was begun; `again` begins the same once more."""

    def __init__(self, server, name, command, source):
        self.server, self.name, self.command, self.source = server, name, command, source
        made = server.must("POST", "/v3/templates", {"name": name, "cpuCount": 1, "memoryMB": 256})
        self.path = f"/templates/{made['templateID']}/builds/{made['buildID']}"
        step = {"type": "RUN", "args": [command], "force": False}
        server.must("POST", "/v2" + self.path, {**source, **STARTED, "steps": [step], "force": False})

    def again(self):
        return Build(self.server, self.name, self.command, self.source)

    def status(self, query="?limit=100"):
        return self.server.must("GET", f"{self.path}/status{query}")

    def says(self, part):
        return any(part in line["message"] for line in self.status()["logEntries"])

    def ended(self):
        return wait_for(lambda: (s := self.status())["status"] in ("ready", "error") and s, f"{self.name} ends",
                        PATIENCE, 0.1)


FROM_BASE, FROM_IMAGE = {"fromTemplate": "base"}, {"fromImage": "debian:stable"}


def build_snapshots(server):
    return {s["snapshotID"] for s in server.admin("GET", "/admin/snapshots").json if s["kind"] == "build"}


def check_nothing_left(server):
    assert server.ids() == set()
    found = server.leaks()
    assert not found, "left behind:\n" + "\n".join(map(str, found))
    assert not list((server.base / "node/builds").glob("*/disk"))
    jobs = server.base / "images/data/store/jobs"
    wait_for(lambda: not list(jobs.iterdir()), "the jobs of images are gone", 30)


def check_ended(server, build, before):
    """It says why; and what it had made is not there."""
    server.wait_up(PATIENCE)
    status = build.ended()
    assert status["status"] == "error" and status["reason"]["message"], status
    print(build.name, "-", status["reason"]["message"])
    check_nothing_left(server)
    assert build_snapshots(server) == before, "a snapshot that no build has"


def check_succeeds(server, build):
    begun = time.monotonic()
    status = build.ended()
    assert status["status"] == "ready", status
    print(f"{build.name}: ready in {time.monotonic() - begun:.1f} s")
    box = server.create(templateID=build.name)
    assert server.run(box, "cat /tmp/made; pgrep -c -x sleep", user="root").split() == [build.name, "1"]
    assert server.delete(box) == 204
    check_nothing_left(server)


def begin(server, name, source=FROM_BASE, command=""):
    return Build(server, name, f"echo {name} > /tmp/made{command}", source)


def has_died(server, build):
    if server.daemons["node"].process.poll() is not None:
        return True
    answer = server.api("GET", f"{build.path}/status")  # unless it dies now
    assert answer.status != 200 or answer.json["status"] in ("waiting", "building"), answer.json
    return False


def die_at(server, step, source):
    """Node dies at a step of a build; the next one has the rest of this to say."""
    before = build_snapshots(server)
    server.restart("node", die_at=step)
    server.wait_up(PATIENCE)
    build = begin(server, "at-" + step.replace(".", "-"), source)
    wait_for(lambda: has_died(server, build), f"node dies at {step}", PATIENCE, 0.05)
    server.daemons["node"].wait_dead()
    server.start("node")
    check_ended(server, build, before)
    return build


def test_steps_are_known():
    assert len(build_steps()) >= 9 and set(OF_IMAGES) <= set(build_steps())


def test_deaths_while_an_image_is_fetched(server):
    """Of node when it is known which one it is and when its disk is there; of the images daemon in between."""
    die_at(server, "build.image", FROM_IMAGE)
    before = build_snapshots(server)
    build = begin(server, "without-images", FROM_IMAGE)
    wait_for(lambda: build.says("[base] debian:stable is sha256:"), "it is fetched", PATIENCE, 0.02)
    server.kill("images")
    status = build.ended()
    assert status["status"] == "error" and "images" in status["reason"]["message"], status
    server.start("images")
    check_ended(server, build, before)
    check_succeeds(server, die_at(server, "build.disk", FROM_IMAGE).again())


@pytest.mark.parametrize("step", [step for step in build_steps() if step not in OF_IMAGES])
def test_node_dies_at(server, step):
    check_succeeds(server, die_at(server, step, FROM_BASE).again())


def test_warden_dies_while_a_step_runs(server):
    before = build_snapshots(server)
    build = begin(server, "without-warden", command="; echo waits; sleep 2")
    wait_for(lambda: build.says("[stdout]: waits"), "the step runs", PATIENCE, 0.02)
    server.restart("warden")
    if build.ended()["status"] == "error":
        check_ended(server, build, before)
        build = build.again()
    check_succeeds(server, build)


@pytest.mark.skipif(not RANDOM_DEATHS, reason="HOTCELL_BUILD_DEATHS is not set")
def test_deaths_at_random(server):
    chance = random.Random(SEED)
    for n in range(RANDOM_DEATHS):
        before = build_snapshots(server)
        build = begin(server, f"random-{n}", chance.choice((FROM_BASE, FROM_BASE, FROM_IMAGE)), "; sleep 1")
        time.sleep(chance.uniform(0, 8))
        victims = chance.sample(server.names, chance.choice((1, 1, 1, 2, len(server.names))))
        server.kill(*victims)
        server.start(*victims)
        server.wait_up(PATIENCE)
        status = build.ended()
        print(f"death {n} of {' '.join(victims)}: {status['status']}")
        if status["status"] == "error":
            check_ended(server, build, before)
            build = build.again()
        check_succeeds(server, build)
