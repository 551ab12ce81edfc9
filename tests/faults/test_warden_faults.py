"""test_warden_faults.py - warden dies at every named step; the next one leaves VMs whole or gone.

Needs a build with -Dfaults=true. The steps are read from the source, so that none is forgotten.
"""

import pathlib
import random
import re
import time

import pytest

from protocol import Gone, State, Verb
from warden import is_alive, sizes
from warden_fixtures import Watched

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src/warden"
STEPS = sorted({name for path in SOURCES.glob("*.c")
                for name in re.findall(r'\bstep\("([\w.]+)"\)', path.read_text())})
ONLY_RESTORE = {"start.overlay"}  # a VM that is built has no overlay of its own
WITNESS = "witness"
RANDOM_KILLS, RANDOM_VMS, RANDOM_SECONDS = 15, 4, 0.15


def cases():
    for step in STEPS:
        phase = step.partition(".")[0]
        if phase == "slot":
            yield step, Verb.SLOT_MAKE
            continue
        yield step, Verb.RESTORE
        if step not in ONLY_RESTORE:
            yield step, Verb.BUILD


@pytest.fixture(scope="module")
def host():
    """A template, a VM that runs through all of it, and no warden."""
    with Watched() as warden:
        warden.start()
        warden.template("t1")
        warden.witness = warden.restore(WITNESS, "t1", warden.slot_make())
        warden.check_whole(WITNESS)
        warden.kill()
        yield warden
        if warden.process is None:
            warden.start()
        warden.stop_all()
        warden.check_clean()


def provoke(warden, step, verb):
    """Lead warden to the step. Returns the VM's pid if it ran before."""
    if verb == Verb.SLOT_MAKE:
        warden.client.send(Verb.SLOT_MAKE)
        return None
    template = "t1"
    if verb == Verb.BUILD:
        template = "t2"
        warden.open_template(template)
    slot = warden.slot_make()
    tag = warden.client.send(verb, vm="vm1", template=template, slot=slot, sizes=sizes())
    if step.startswith("start."):
        return None
    pid = warden.client.receive(tag).check().reply.count
    warden.client.send(Verb.STOP, vm="vm1")
    return pid


def check_whole_or_gone(warden, pids=None):
    """Every VM that is listed is whole; everything else of it is gone within the grace period."""
    found = warden.list()
    for vm in found:
        warden.check_whole(vm, (pids or {}).get(vm))
    warden.check_clean(keep=found)
    return found


def test_steps_are_known():
    assert len(STEPS) >= 12
    assert {step.partition(".")[0] for step in STEPS} == {"slot", "start", "stop"}


@pytest.mark.parametrize("step,verb", list(cases()), ids=lambda v: getattr(v, "name", v))
def test_death_at(host, step, verb):
    host.start(die_at=step)
    pid = provoke(host, step, verb)
    host.wait_dead()
    assert is_alive(host.witness)

    host.start()
    found = check_whole_or_gone(host, {WITNESS: host.witness, "vm1": pid})
    assert WITNESS in found and set(found) <= {WITNESS, "vm1"}
    if step == "stop.kill":
        assert "vm1" in found  # nothing was done to it yet
    if step in ("stop.cgroup", "stop.files", "stop.reply"):
        assert "vm1" not in found
    if "vm1" in found:
        host.stop("vm1")
    host.template_drop("t2")
    host.check_clean(keep=[WITNESS])
    host.kill()


@pytest.mark.parametrize("step", ["stop.cgroup", "stop.files"])
def test_death_while_cleaning_up(host, step):
    """The second warden dies over what the first one left; the third does it."""
    host.start(die_at="start.jail")
    provoke(host, "start.jail", Verb.RESTORE)
    host.wait_dead()
    host.launch(die_at=step)
    host.wait_dead()
    host.start()
    assert set(check_whole_or_gone(host, {WITNESS: host.witness})) == {WITNESS}
    host.kill()


class Churn:
    """Starts and stops a few VMs for ever, never waiting for one of them."""

    def __init__(self, warden):
        self.warden = warden
        self.running = {vm for vm, cell in warden.list().items() if cell.state == State.RUNNING}
        self.waiting = {}
        for i in range(RANDOM_VMS):
            self.go_on(f"churn{i}")

    def send(self, verb, vm, **fields):
        self.waiting[self.warden.client.send(verb, vm=vm, **fields)] = vm, verb

    def go_on(self, vm):
        if vm in self.running:
            self.send(Verb.STOP, vm)
        else:
            self.send(Verb.SLOT_MAKE, vm)

    def handle(self, answer):
        vm, verb = self.waiting.pop(answer.reply.tag)
        answer.check()
        if verb == Verb.SLOT_MAKE:
            self.send(Verb.RESTORE, vm, template="t1", slot=answer.reply.slot, sizes=sizes())
            return
        (self.running.add if verb == Verb.RESTORE else self.running.discard)(vm)
        self.go_on(vm)

    def run(self, seconds):
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            try:
                self.handle(self.warden.client.receive_any(left))
            except TimeoutError:
                return


def test_death_at_random(host):
    """While four VMs come and go. The seed is in the name of the assertion that fails."""
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    seen = set()
    host.start()
    for number in range(RANDOM_KILLS):
        try:
            Churn(host).run(chance.uniform(0.01, RANDOM_SECONDS))
        except Gone:
            pytest.fail(f"warden hung up (seed {seed}): {host.log()[-2000:]}")
        host.restart()
        found = host.list()
        assert WITNESS in found, f"seed {seed}, kill {number}"
        for vm in found:
            host.check_whole(vm, host.witness if vm == WITNESS else None)
        seen.add(len(found))
    host.check_clean(keep=host.list())
    for vm in set(host.list()) - {WITNESS}:
        host.stop(vm)
    host.check_clean(keep=[WITNESS])
    host.kill()
    assert len(seen) > 1, f"every kill found the same (seed {seed})"
