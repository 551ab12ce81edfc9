"""test_warden_faults.py - warden dies at every named step; the next one leaves VMs whole or gone.

Needs a build with -Dfaults=true. The steps are read from the source, so that none is forgotten.
"""

import contextlib
import fcntl
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

import copier
from protocol import Gone, State, Verb
from warden import cgroup_trees, is_alive, sizes, wait_for
from warden_fixtures import Watched

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src/warden"
STEPS = sorted({name for path in SOURCES.rglob("*.c")
                for name in re.findall(r'\bstep\("([\w.]+)"\)', path.read_text())})
WITNESS = "witness"
BUILD_SECONDS = 5
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, IMMUTABLE = 0x80086601, 0x40086602, 0x10
TRIES_PER_SECOND = 20
RANDOM_KILLS, RANDOM_VMS, RANDOM_SECONDS = 15, 4, 0.15
RANDOM_KILLS_MAX = 60  # if chance never left a VM running before


def cases():
    for step in STEPS:
        phase = step.partition(".")[0]
        if phase == "slot":
            yield step, Verb.SLOT_MAKE
            continue
        if phase == "copy":
            yield step, Verb.COPY
            continue
        yield step, Verb.RESTORE
        yield step, Verb.BUILD


@pytest.fixture(scope="module")
def shared_host():
    """A template, a VM that runs through all of it, and no warden."""
    with Watched() as warden:
        warden.start()
        warden.template("t1")
        warden.witness = warden.restore(WITNESS, "t1", warden.slot_make())
        warden.check_whole(WITNESS)
        check_build(warden)
        yield warden
        if warden.process is None:
            warden.start()
        warden.stop_all()
        warden.check_clean()


@pytest.fixture
def host(shared_host):
    """The same; a test that fails does not spoil the next."""
    yield shared_host
    shared_host.kill()
    for path in (shared_host.state / "vms").iterdir():
        if path.name != WITNESS:
            shared_host.end_processes(path.name)  # warden does not start beside one without a folder
            shutil.rmtree(path)


def check_build(warden):
    """Without -Dfaults=true nothing here would be tested."""
    warden.restart(die_at=next(step for step in STEPS if step.startswith("slot.")))
    warden.client.send(Verb.SLOT_MAKE)
    warden.wait_dead(BUILD_SECONDS)


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
    if verb == Verb.BUILD:
        tag = warden.client.send(verb, vm="vm1", template=template, slot=slot, sizes=sizes())
    else:
        tag = warden.restore_send("vm1", template, slot)
    if step.startswith("start."):
        return None
    pid = warden.client.receive(tag).check().reply.count
    if verb == Verb.COPY:
        with copier.Files(warden, "t1") as files:
            warden.client.send(Verb.COPY, vm="vm1", fds=files.fds)
            warden.wait_dead()
    else:
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
    assert {step.partition(".")[0] for step in STEPS} == {"slot", "start", "stop", "copy"}


@pytest.mark.parametrize("step,verb", list(cases()), ids=lambda v: getattr(v, "name", v))
def test_death_at(host, step, verb):
    host.start(die_at=step)
    pid = provoke(host, step, verb)
    if host.process:
        host.wait_dead()
    assert is_alive(host.witness)

    host.start()
    found = check_whole_or_gone(host, {WITNESS: host.witness, "vm1": pid})
    assert WITNESS in found and set(found) <= {WITNESS, "vm1"}
    if step == "stop.kill" or verb == Verb.COPY:
        assert "vm1" in found  # nothing was done to it
    if step in ("stop.cgroup", "stop.files", "stop.reply"):
        assert "vm1" not in found
    if "vm1" in found:
        host.stop("vm1")
    host.template_drop("t2")
    host.check_clean(keep=[WITNESS])


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


def test_vm_ends_while_no_warden_runs(host):
    host.start()
    pid = host.restore("vm1", "t1", host.slot_make())
    host.kill()
    os.kill(pid, signal.SIGKILL)
    host.start()
    assert set(check_whole_or_gone(host)) == {WITNESS}


# In the VM's place with its uid, as a start leaves it that was interrupted before exec.
NOT_YET = """
import ctypes, os, sys, time
uid, groups = int(sys.argv[1]), sys.argv[2:]
assert ctypes.CDLL(None).unshare(0x20000000) == 0  # CLONE_NEWPID
pid = os.fork()
if pid:
    print(pid, flush=True)
    os.waitpid(pid, 0)
    sys.exit()
for group in groups:
    with open(group + "/cgroup.procs", "w") as f:
        f.write("0")
os.setgroups([])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
print("ready", flush=True)
time.sleep(600)
"""


def test_process_that_never_became_a_vm_is_not_adopted(host):
    """Warden died before exec. The process would end by itself, later, as a VM that is listed."""
    host.start()
    pid = host.restore("vm1", "t1", host.slot_make())
    uid = os.stat(f"/proc/{pid}").st_uid
    host.kill()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(pid), "the VM's process ended")
    groups = [tree / host.cgroup / "vm1" for tree in cgroup_trees()]
    with subprocess.Popen([sys.executable, "-c", NOT_YET, str(uid), *map(str, groups)],
                          stdout=subprocess.PIPE, text=True) as p:
        pid = int(p.stdout.readline())
        try:
            assert p.stdout.readline() == "ready\n"
            host.start()
            assert set(check_whole_or_gone(host)) == {WITNESS} and not is_alive(pid)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("damage", [b"", b"x", bytes(4096)], ids=["empty", "short", "zero"])
def test_damaged_record(host, damage):
    """What cannot be adopted is removed, its process included."""
    host.start()
    pid = host.restore("vm1", "t1", host.slot_make())
    host.kill()
    (host.vm_dir("vm1") / "record").write_bytes(damage)
    host.start()
    assert set(check_whole_or_gone(host)) == {WITNESS} and not is_alive(pid)


def set_immutable(path, yes):
    """Even root cannot remove it then. Not every filesystem knows this."""
    fd = os.open(path, os.O_RDONLY)
    flags = bytearray(8)
    try:
        fcntl.ioctl(fd, FS_IOC_GETFLAGS, flags)
        flags[0] = flags[0] | IMMUTABLE if yes else flags[0] & ~IMMUTABLE
        fcntl.ioctl(fd, FS_IOC_SETFLAGS, flags)
    except OSError as e:
        pytest.skip(f"the filesystem has no immutable files: {e}")
    finally:
        os.close(fd)


def test_removal_that_fails_is_tried_again_not_all_the_time(host):
    host.start()
    host.restore("vm1", "t1", host.slot_make())
    rock = host.vm_dir("vm1") / "own/rock"
    rock.touch()
    set_immutable(rock, True)
    try:
        tag = host.client.send(Verb.STOP, vm="vm1")
        before = host.log().count("vm1")
        with pytest.raises(TimeoutError):
            host.client.receive(tag, 1)
        tries = host.log().count("vm1") - before
        host.check_whole(WITNESS)
    finally:
        set_immutable(rock, False)
    assert host.client.receive(tag, 5).code == "ok"
    assert 1 <= tries <= TRIES_PER_SECOND


def test_group_and_folder_without_each_other(host):
    """Half of a VM: a control group alone, a folder alone, a folder that was half removed."""
    for tree in cgroup_trees():
        (tree / host.cgroup / "vm1").mkdir()
    (host.vm_dir("vm2") / "own").mkdir(parents=True)
    for i in range(20):
        (host.vm_dir("vm3") / f".removed-{i}/d/d").mkdir(parents=True)
        (host.vm_dir("vm3") / f"own/{i}/d/d").mkdir(parents=True)
    host.start()
    assert set(check_whole_or_gone(host)) == {WITNESS}


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
            tag = self.warden.restore_send(vm, "t1", answer.reply.slot)
            self.waiting[tag] = vm, Verb.RESTORE
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
    for number in range(RANDOM_KILLS_MAX):
        if number >= RANDOM_KILLS and len(seen) > 1:
            break
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
    assert len(seen) > 1, f"every kill found the same (seed {seed})"
