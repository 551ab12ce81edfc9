"""test_builder.py - sandboxes of node's own, steps, ends of builds and grounds, as builds of templates use them.

The node is hotcell-node with builder_trial.c, which does what a test says.
"""

import json
import re

import pytest

from node import NodeError, NodeHost, build_dir, wait_for
from page_cache import resident

TEAM = "team-one"
END = {"do": "end"}


class Trial(NodeHost):
    def path_of(self, program):
        return build_dir() / "tests/node/hotcell-node-trial" if program == "node" else super().path_of(program)

    def send(self, todo):
        return self.client.send("SNAPSHOTS", template_id="trial", text=json.dumps(todo).encode())

    def do(self, *todo):
        """What each did; the last says why if one failed."""
        return self.client.receive(self.send(todo)).text

    def kinds(self, team=""):
        return sorted(s["kind"] for s in self.client.snapshots(team))

    def has_nothing_under_way(self):
        """No sandbox, no VM, no folder; of snapshots what has a row."""
        there = {p.name for p in (self.base / "node/snapshots").iterdir()}
        return self.rows() == [] and not self.warden.list() and self.folders() == {} \
            and there == {s["snapshotID"] for s in self.client.snapshots()}


@pytest.fixture(scope="module")
def host():
    with Trial(pool=0, layers_max=2) as h:
        h.wait_template()
        yield h


def begin(**of):
    return {"do": "begin", "team": TEAM, **of}


def run(command):
    return {"do": "run", "command": command}


def step(key):
    return {"do": "step", "key": key}


def test_steps_are_found_again_and_end_in_a_build(host):
    _, said, one, _, two, _ = host.do(
        begin(), run("echo one > one; pwd; sleep 0.3; echo oops >&2; exit 3"), step("k1"), run("echo two > two"),
        step("k2"), END)
    assert said == "o:/root\ne:oops\n3" and one != two
    folder = host.base / "node/snapshots" / one
    assert sorted(p.name for p in folder.iterdir()) == ["layer1", "manifest", "row"], "a disk, and no memory"
    assert json.loads((folder / "manifest").read_text())["files"]["memory"]["length"] == 0
    # what nobody synced is in it, what came after it is not
    found, _, said, three, _ = host.do(
        {"do": "cached", "team": TEAM, "key": "k1"}, begin(step="k1", boot=True, vcpus=2, memoryMib=300),
        run("ls; nproc; echo three > three"), step("k3"), END)
    assert found == one and said == "o:one\n2\n0"
    layers = {s["snapshotID"]: s["layers"] for s in host.client.snapshots()}
    assert (layers[one], layers[two], layers[three]) == (1, 1, 2)
    _, said, build, _ = host.do(begin(step="k3", boot=True, vcpus=1, memoryMib=256),
                                run("cat one three; echo in-memory > /dev/shm/kept"), {"do": "build"}, END)
    assert said == "o:one\nthree\n0"
    kept = next(s for s in host.client.snapshots() if s["snapshotID"] == build)
    assert kept["layers"] == 1, "three are more than layers_max: they are one"
    _, said, _ = host.do(begin(build=build), run("nproc; cat one three /dev/shm/kept"), END)
    assert said == "o:1\none\nthree\nin-memory\n0"
    assert host.do(begin(step="k1"))[0].startswith("failed: "), "a step only boots"
    assert host.kinds() == ["build", "step", "step", "step"] and host.kinds(TEAM) == []
    wait_for(host.has_nothing_under_way, "only snapshots are left")


def test_no_client_knows_of_a_builder(host):
    box, = host.do(begin())
    try:
        assert host.client.list(TEAM) == [] and host.client.list("") == []
        assert host.client.status()["builderIDs"] == [box]
        for ask in (host.client.get, host.client.kill, host.client.pause):
            with pytest.raises(NodeError) as e:
                ask(TEAM, box)
            assert e.value.code == "not_found"
        with pytest.raises(NodeError):
            host.client.sockets(box)
        assert box in host.warden.list()
    finally:
        host.kill_node()  # the next one ends it
        host.start_node()
        host.wait_template()
    wait_for(host.has_nothing_under_way, "it is gone")
    assert host.client.ended(TEAM) == [], "nobody is told of it"


def test_a_ground_is_built_once(host):
    todo = [{"do": "ground", "source": "an image"}]
    ground, = host.do(*todo)
    assert re.fullmatch("image-[0-9a-f]{12}-[a-z0-9]{8}", ground)
    assert host.do(*todo) == [ground]
    _, said, _, _ = host.do(begin(ground=ground), run("id -un; echo new > new"), step("g1"), END)
    assert said == "o:root\n0"
    _, said, _ = host.do(begin(ground=ground, boot=True, vcpus=2, memoryMib=200), run("ls; nproc"), END)
    assert said == "o:2\n0"
    host.kill_node()
    host.start_node(pool_unused_s=1)
    host.wait_template()
    assert host.do(*todo) == [ground]
    _, said, _ = host.do(begin(step="g1", boot=True), run("ls"), END)
    assert said == "o:new\n0"
    wait_for(host.has_nothing_under_way, "only snapshots are left")
    memory, disk = (host.warden.state / "templates" / ground / name for name in ("memory", "disk"))
    memory.read_bytes()
    assert resident(memory) > 1000
    wait_for(lambda: resident(memory) == resident(disk) == 0, "no VM has it: it leaves the page cache")


@pytest.mark.parametrize("said", ["create.files", "create.restore", "create.running", "snapshot.copied", "snapshot.disk",
                                  "snapshot.synced", "snapshot.renamed", "snapshot.row"])
def test_node_dies_while_it_builds(host, said):
    """At that step: what was begun is gone, a step is whole or was never there."""
    host.kill_node()
    host.start_node(die_at=said)
    host.wait_template()
    host.send([begin(), run("echo one > one"), step("died-" + said), END])
    host.process.wait(60)
    host.start_node()
    host.wait_template()
    wait_for(host.has_nothing_under_way, "nothing is left but snapshots")
    found, = host.do({"do": "cached", "team": TEAM, "key": "died-" + said})
    assert bool(found) == (said == "snapshot.row")
