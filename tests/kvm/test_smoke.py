"""test_smoke.py - the engine on KVM: a template, three sandboxes from it, each with its identity.

Run by tests/kvm/smoke in the emulated host, where every second of a guest is a minute: it asks for
little, but all of it is real.
"""

import pytest

from engine import Engine

BOXES = 3


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
        assert abs(clock["skew_us"]) <= clock["uncertainty_us"] + 100_000
        engine.stop(box)
