"""test_smoke.py - the engine on KVM: a template, three sandboxes from it, each with its identity.

Run by tests/kvm/smoke in the emulated host, where every second of a guest is a minute: it asks for
little, but all of it is real. HOTCELL_KVM_CYCLES (2) says how often one is paused and resumed.
"""

import contextlib
import os
import pathlib
import shutil
import tempfile

import pytest

from driver import DriverError
from engine import Engine

BOXES = 3
CYCLES = int(os.environ.get("HOTCELL_KVM_CYCLES", "2"))
SKEW_US = 100_000
# What is in /dev/shm is memory; the rest is on the disk.
PLACES = "/dev/shm/held /home/user/held"
HOLD = f"for f in {PLACES}; do head -c 3000000 /dev/urandom > $f; done"
CHANGE = (f"for f in {PLACES}; do dd if=/dev/urandom of=$f bs=4096 seek=$((RANDOM % 700)) count=20 conv=notrunc status=none; "
          f"done; sha256sum {PLACES}")
# Nothing is started for a wait: that would take all there is of the emulated processors.
COUNT = ("exec setsid bash -c 'exec 3<> <(:); n=0; while :; do n=$((n+1)); echo $$ $n > /dev/shm/n; "
         "read -t 0.5 -u 3; done'")


@pytest.fixture(scope="module")
def engine():
    with Engine() as e:
        yield e


def test_kvm_is_in_use(engine):
    assert engine.driver.facts["accel"] == "kvm" and not engine.driver.facts["emulated"]
    assert "accelerator: kvm" in engine.warden.log()


def test_three_sandboxes_from_one_template(engine):
    boxes = [engine.create() for _ in range(BOXES)]
    seen = [engine.run(box, "hostname; cat /etc/machine-id /proc/sys/kernel/random/boot_id; "
                            "head -c 16 /dev/urandom | base64; uname -r").split()
            for box in boxes]
    for box, (hostname, machine_id, boot_id, *_) in zip(boxes, seen):
        assert (hostname, machine_id, boot_id) == (box["hostname"], box["machine_id"], box["boot_id"])
    for column in range(4):
        assert len({row[column] for row in seen}) == BOXES
    assert {row[4] for row in seen} == {engine.template["kernel"]}
    for box in boxes:
        clock = engine.driver.call("clock", sandbox=box["sandbox"])
        print(f"skew {clock['skew_us'] / 1000:.1f} ms, uncertainty {clock['uncertainty_us'] / 1000:.1f} ms")
        assert abs(clock["skew_us"]) <= clock["uncertainty_us"] + SKEW_US
        engine.stop(box)


# --- pause and resume: no byte is lost ---


@pytest.fixture
def folder():
    path = pathlib.Path(tempfile.mkdtemp(prefix="hotcell-pause-"))
    yield path
    shutil.rmtree(path)


def counted(engine, box):
    return [int(word) for word in engine.run(box, "until [ -s /dev/shm/n ]; do sleep 0.1; done; cat /dev/shm/n").split()]


def test_paused_again_and_again(engine, folder):
    box = engine.create()
    try:
        engine.run(box, HOLD)
        engine.driver.call("exec", sandbox=box["sandbox"], cmd=COUNT, detach=True)
        pid, before = counted(engine, box)
        for n in range(CYCLES):
            files = {"pages": str(folder / f"{n}.pages"), "state": str(folder / f"{n}.state")}
            sums = engine.run(box, CHANGE)
            saved = engine.driver.call("pause", sandbox=box["sandbox"], **files)
            resumed = engine.driver.call("resume", sandbox=box["sandbox"], **files)
            clock = engine.driver.call("clock", sandbox=box["sandbox"])
            print(f"cycle {n + 1}: stopped {saved['stopped_us'] / 1000:.0f} ms, {saved['pages']} pages, state "
                  f"{saved['state_bytes']} B; resumed in {max(resumed['steps'].values()) / 1000:.0f} ms; "
                  f"clock {clock['skew_us'] / 1000:.1f} +- {clock['uncertainty_us'] / 1000:.1f} ms")
            assert abs(clock["skew_us"]) <= clock["uncertainty_us"] + SKEW_US
            assert engine.run(box, f"sha256sum {PLACES}") == sums
            now, count = counted(engine, box)
            assert now == pid and count >= before, "it is another process"
            before = count
        engine.run(box, "sync; sudo sh -c 'echo 3 > /proc/sys/vm/drop_caches'")
        assert engine.run(box, f"sha256sum {PLACES}") == sums
    finally:
        with contextlib.suppress(DriverError):
            engine.stop(box)
