"""test_sizes.py - sandboxes with other vCPUs and another memory than node's default, made of a disk alone."""

import json

import pytest

from node import NodeHost, wait_for
from warden import sizes

TEAM = "team-one"
SMALL, LARGE = (1, 256), (2, 768)
LEAST = 0.75  # of its memory, the guest's kernel gives so much to processes


@pytest.fixture(scope="module")
def host():
    with NodeHost(pool=0) as h:
        h.wait_template()
        yield h


@pytest.fixture(autouse=True)
def nothing_is_left(host):
    yield
    assert host.rows() == [] and host.folders() == {} and host.client.snapshots() == []


def inside(host, box):
    """vCPUs, and MiB of memory."""
    cpus, kib = host.run(box, "nproc; awk '/MemTotal/ {print $2}' /proc/meminfo").split()
    return int(cpus), int(kib) // 1024


def check(host, box, want):
    vcpus, mib = inside(host, box)
    assert (box.vcpus, box.memory_mib) == want
    assert vcpus == want[0] and LEAST * want[1] < mib <= want[1], (vcpus, mib)


def boot(host, want, template="base"):
    return host.client.create(TEAM, template=template, flags=["BOOT"],
                              text={"sizes": {"vcpus": want[0], "memoryMib": want[1]}, "envVars": {"A": "b"}})


def mark(host, box):
    host.run(box, "echo on-disk > /root/kept; sync; echo in-memory > /dev/shm/kept")


def see(host, box):
    return host.run(box, "cat /root/kept /dev/shm/kept").split()


def sleeps_and_wakes(host, box, want):
    host.client.pause(TEAM, box.id)
    wait_for(lambda: box.id not in host.warden.list(), "its VM is gone")
    again = host.client.resume(TEAM, box.id).sandbox
    assert see(host, again) == ["on-disk", "in-memory"]
    check(host, again, want)
    return again


def manifest(host, snapshot):
    return json.loads((host.base / "node/snapshots" / snapshot / "manifest").read_text())


@pytest.mark.parametrize("want", [SMALL, LARGE], ids=["small", "large"])
def test_a_boot_with_sizes_of_its_own(host, want):
    box = boot(host, want)
    check(host, box, want)
    mark(host, box)
    assert "blank" in host.folders()[box.id]
    box = sleeps_and_wakes(host, box, want)
    kept = host.client.snapshot(TEAM, box.id)["snapshotID"]
    host.client.kill(TEAM, box.id)
    m = manifest(host, kept)
    assert (m["guest"]["vcpus"], m["guest"]["memoryMib"]) == want
    assert m["files"]["memory"]["length"] == want[1] << 20
    facts = host.warden.facts(sizes(*want)).arguments.decode()
    assert m["vmm"]["arguments"] == facts, "as warden says of these sizes"
    copy = host.client.create(TEAM, template=kept)
    check(host, copy, want)
    assert see(host, copy) == ["on-disk", "in-memory"]
    assert "blank" not in host.folders()[copy.id]
    copy = sleeps_and_wakes(host, copy, want)
    forks = host.client.fork(TEAM, copy.id, 2)
    for f in forks:
        check(host, f, want)
        assert see(host, f) == ["on-disk", "in-memory"]
    for b in [copy, *forks]:
        host.client.kill(TEAM, b.id)
    host.client.snapshot_delete(TEAM, kept)


def test_the_disk_of_one_size_boots_with_another(host):
    """Of a snapshot, and paused without its memory, and after a restart of node."""
    box = boot(host, SMALL)
    mark(host, box)
    kept = host.client.snapshot(TEAM, box.id)["snapshotID"]
    host.client.kill(TEAM, box.id)
    box = boot(host, LARGE, template=kept)
    check(host, box, LARGE)
    assert host.run(box, "cat /root/kept; ls /dev/shm") == "on-disk"
    host.run(box, "echo in-memory > /dev/shm/kept")
    host.kill_node()
    host.start_node()
    box = sleeps_and_wakes(host, box, LARGE)
    host.client.pause(TEAM, box.id, flags=["NO_MEMORY"])
    box = host.client.resume(TEAM, box.id).sandbox
    check(host, box, LARGE)
    assert host.run(box, "cat /root/kept; echo $A; ls /dev/shm") == "on-disk\nb"
    host.client.kill(TEAM, box.id)
    host.client.snapshot_delete(TEAM, kept)
