"""test_copy.py - a VM's memory copied out and in by a copier, and the files a restore is given."""

import contextlib
import os
import pathlib
import re
import signal
import tempfile

import pytest

import copier
import images
from protocol import APPLY, BOOT, Verb, WardenError
from warden import cgroup_trees, is_alive, is_sanitized, overlay, sizes, wait_for

MIB = 1 << 20
MEMORY_MIB = 64
MEMORY_PAGES = MEMORY_MIB * MIB // copier.PAGE
FAR = MEMORY_PAGES - 1
DISK_MIB = 1000
LAYERS = 3


@pytest.fixture(scope="module")
def shared_vm(shared_warden):
    shared_warden.template("t1")
    yield shared_warden


@pytest.fixture
def warden(shared_vm):
    """With a VM that waits for its device state; all that was copied is gone afterwards."""
    shared_vm.vm = shared_vm.restore("vm1", "t1", shared_vm.slot_make())
    wait_mapped(shared_vm, "vm1")
    yield shared_vm
    shared_vm.stop_all()
    shared_vm.check_clean()


def wait_mapped(warden, vm):
    """A QEMU that answers has its memory."""
    warden.qmp(vm).close()


def status(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return dict(re.findall(r"^(\w+):[ \t]*(.*)$", text, re.M))


def members(warden, vm):
    return {int(pid) for pid in
            (cgroup_trees()[0] / warden.cgroup / vm / "cgroup.procs").read_text().split()}


def apply(warden, vm, pages):
    with copier.Files(warden, "t1", copier.pages_file(MEMORY_MIB * MIB, pages)) as files:
        warden.copy(vm, files.fds, APPLY)
        return files.ask(copier.Verb.APPLY).check()


def put_state(warden, vm, state=b"x"):
    """What QEMU does when it is told to save its device state."""
    path, uid = warden.vm_dir(vm) / "own/state", warden.list()[vm].uid
    path.write_bytes(state)
    os.chown(path, uid, uid)


def save(warden, vm, state=b"device state", verbs=(copier.Verb.FIRST, copier.Verb.COPY, copier.Verb.STATE)):
    put_state(warden, vm, state)
    with copier.Files(warden, "t1") as files:
        warden.copy(vm, files.fds)
        for verb in verbs:
            reply = files.ask(verb).check()
        synced = files.ask(copier.Verb.SYNC).check()
        pages = pathlib.Path(files.pages.name).read_bytes()
        assert pathlib.Path(files.state.name).read_bytes() == state
    assert len(pages) == reply.pages_bytes == synced.pages_bytes
    assert copier.crc32c(pages) == reply.pages_crc
    return copier.read_pages(pages)


# --- the memory ---------------------------------------------------------------------------------


def test_pages_go_in_and_come_out(warden):
    pages = {0x200: b"a" * copier.PAGE, 0x201: b"b" * copier.PAGE, 0x203: b"c" * copier.PAGE,
             FAR: os.urandom(copier.PAGE)}
    before = save(warden, "vm1")  # what QEMU itself wrote before the guest runs
    reply = apply(warden, "vm1", pages | {0x202: None})  # zero, as it was: not kept
    assert reply.pages == 4 and reply.zero_pages == 1
    assert save(warden, "vm1") == before | pages
    assert save(warden, "vm1", verbs=(copier.Verb.COPY, copier.Verb.STATE)) == before | pages  # in one pass
    memory = warden.state / "templates/t1/memory"
    assert not any(memory.read_bytes())  # the template of all is as it was
    assert (warden.vm_dir("vm1") / "own/state").read_bytes() == b""


def test_two_vms_do_not_see_each_other(warden):
    warden.restore("vm2", "t1", warden.slot_make())
    wait_mapped(warden, "vm2")
    apply(warden, "vm1", {FAR: b"1" * copier.PAGE})
    apply(warden, "vm2", {FAR: b"2" * copier.PAGE})
    assert save(warden, "vm1")[FAR] == b"1" * copier.PAGE
    assert save(warden, "vm2")[FAR] == b"2" * copier.PAGE
    warden.stop("vm2")


def test_damaged_pages_are_refused(warden):
    whole = copier.pages_file(MEMORY_MIB * MIB, {FAR: b"x" * copier.PAGE})
    other = copier.pages_file(2 * MEMORY_MIB * MIB, {FAR: b"x" * copier.PAGE})
    for content, code in ((whole[:-1], "invalid"), (whole[:copier.PAGE] + b"y" + whole[4097:],
                          "invalid"), (other, "mismatch"), (b"", "invalid")):
        with copier.Files(warden, "t1", content) as files:
            warden.copy("vm1", files.fds, APPLY)
            assert copier.CODES[files.ask(copier.Verb.APPLY).code] == code


def test_another_memory_is_refused(warden):
    warden.template("t2")
    with copier.Files(warden, "t2") as files:
        warden.copy("vm1", files.fds)
        put_state(warden, "vm1")
        assert copier.CODES[files.ask(copier.Verb.COPY).code] == "invalid"
    warden.template_drop("t2")


def test_verbs_of_the_other_kind_are_refused(warden):
    with copier.Files(warden, "t1") as files:
        warden.copy("vm1", files.fds)
        for verb, version in ((copier.Verb.APPLY, copier.VERSION), (copier.Verb.SYNC, copier.VERSION),
                              (copier.Verb.STATE, copier.VERSION), (99, copier.VERSION), (copier.Verb.COPY, 1)):
            assert copier.CODES[files.ask(verb, version).code] == "invalid"


# --- the process --------------------------------------------------------------------------------


def test_it_has_the_uid_of_its_vm_and_nothing_else(warden):
    uid = warden.list()["vm1"].uid
    with copier.Files(warden, "t1") as files:
        pid = warden.copy("vm1", files.fds)
        files.ask(copier.Verb.SYNC)  # an answer: it is confined
        said = status(pid)
        assert said["Uid"].split() == said["Gid"].split() == [str(uid)] * 4
        assert said["Groups"].strip() == ""
        assert {said[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == \
            {"0" * 16}
        for thread in os.listdir(f"/proc/{pid}/task"):
            of_it = status(f"{pid}/task/{thread}")
            assert of_it["NoNewPrivs"] == "1" and of_it["Seccomp"] == "2" and of_it["CapEff"] == "0" * 16
        assert int(said["PPid"]) == warden.pid
        assert members(warden, "vm1") == {pid, warden.vm}
        numbers = {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}
        assert numbers == set(range(11)) or is_sanitized()
        assert os.stat(f"/proc/{pid}/mem").st_uid == 0 or is_sanitized()  # not the VM's to read
        files.hang_up()
        wait_for(lambda: not is_alive(pid), "the copier ends when its client hangs up")
    assert is_alive(warden.vm)


def test_it_ends_with_its_vm(warden):
    warden.restore("vm2", "t1", warden.slot_make())
    with copier.Files(warden, "t1") as files:
        pid = warden.copy("vm2", files.fds)
        os.kill(pid, signal.SIGSTOP)
        warden.stop("vm2", 10)
        assert not is_alive(pid)


def test_warden_answers_while_a_copier_hangs(warden):
    with copier.Files(warden, "t1") as files:
        pid = warden.copy("vm1", files.fds)
        os.kill(pid, signal.SIGSTOP)
        for _ in range(20):
            assert warden.client.call(Verb.LIST, 5).reply.count == 1
        with copier.Files(warden, "t1") as second:
            other = warden.copy("vm1", second.fds)
            second.ask(copier.Verb.SYNC)
            assert members(warden, "vm1") == {pid, other, warden.vm}
        os.kill(pid, signal.SIGKILL)


def test_a_vm_with_a_copier_is_adopted(warden):
    with copier.Files(warden, "t1") as files:
        pid = warden.copy("vm1", files.fds)
        warden.restart()
        warden.check_whole("vm1", warden.vm)
        put_state(warden, "vm1")
        files.ask(copier.Verb.COPY).check()
        files.ask(copier.Verb.STATE).check()  # neither did the copier notice
        assert is_alive(pid)


# --- what is refused ----------------------------------------------------------------------------


def refused(call, *arguments, **fields):
    with pytest.raises(WardenError) as e:
        call(*arguments, **fields)
    return e.value.code


def test_a_copy_needs_a_vm_that_runs(warden):
    with copier.Files(warden, "t1") as files:
        assert refused(warden.copy, "vm2", files.fds) == "not_found"
        warden.open_template("t2")
        warden.build("vm2", "t2", warden.slot_make())
        assert refused(warden.copy, "vm2", files.fds) == "not_found"
        warden.stop("vm2")
        warden.template_drop("t2")


def test_descriptors_of_a_copy(warden):
    with copier.Files(warden, "t1") as files, open("/dev/null", "rb+") as null, \
            open(files.pages.name, "rb") as reading:
        for i, wrong in ((0, null), (0, reading), (1, null), (1, reading), (2, null), (3, null),
                         (3, reading)):
            fds = list(files.fds)
            fds[i] = wrong.fileno()
            assert refused(warden.copy, "vm1", fds) == "invalid", (i, wrong.name)
        assert refused(warden.copy, "vm1", files.fds[:3]) == "invalid"
        assert refused(warden.copy, "vm1", files.fds, APPLY) == "invalid"  # writable pages
    assert members(warden, "vm1") == {warden.vm}


def test_a_copier_that_is_not_there(warden):
    warden.restart(copier=warden.base / "none")
    with copier.Files(warden, "t1") as files:
        assert refused(warden.copy, "vm1", files.fds) == "internal"
    warden.restart()


# --- what a restore is given --------------------------------------------------------------------


@contextlib.contextmanager
def given(warden):
    """An overlay, a device state, the memory, a layer: each as it should be."""
    with overlay() as disk, tempfile.NamedTemporaryFile(dir=warden.base) as file:
        file.write(images.qcow2())
        file.flush()
        with open(file.name, "rb") as reading, \
                open(warden.state / "templates/t1/memory", "rb") as memory:
            yield [disk, reading, memory, reading]


def test_descriptors_of_a_restore(warden):
    with given(warden) as right, open("/dev/null", "rb+") as null:
        appending = os.open(right[1].name, os.O_RDWR | os.O_APPEND)
        path = os.open(right[1].name, os.O_PATH)
        folder = os.open(warden.base, os.O_RDONLY)
        pipe = os.pipe()
        for i in range(4):
            for wrong in (null.fileno(), path, folder, pipe[0], appending,
                          right[1].fileno() if i == 0 else right[0].fileno()):
                fds = [f.fileno() for f in right]
                fds[i] = wrong
                assert refused(warden.restore, "vm2", "t1", warden.slot_make(),
                               fds=fds) == "invalid", (i, wrong)
                wait_for(lambda: set(warden.list()) == {"vm1"}, "the failed start is gone")
        for fd in (appending, path, folder, *pipe):
            os.close(fd)
    slot = warden.slot_make()
    assert refused(warden.client.call, Verb.RESTORE, vm="vm2", template="t1", sizes=sizes(),
                   slot=slot) == "invalid"  # none at all
    warden.slot_drop(slot)


def test_layers_stand_on_each_other(warden):
    with given(warden) as files:
        fds = [f.fileno() for f in files[:3]] + [files[3].fileno()] * LAYERS
        warden.restore("vm2", "t1", warden.slot_make(), fds=fds)
        qmp = warden.qmp("vm2")
        nodes = {node["node-name"]: node for node in qmp.run("query-named-block-nodes")}
        image = nodes["disk"]["image"]
        qmp.close()
    assert not nodes["disk"]["ro"] and nodes["disk"]["drv"] == "qcow2"
    for i in range(LAYERS + 1):
        assert nodes[f"layer{i}"]["ro"] and nodes[f"layer{i}-file"]["ro"]
        assert nodes[f"layer{i}"]["drv"] == ("qcow2" if i else "raw")
    for _ in range(LAYERS + 1):  # the overlay's, then each layer's
        image = image["backing-image"]
    assert image["format"] == "raw" and "backing-image" not in image
    warden.stop("vm2")


def test_memory_of_the_client(warden):
    """Mapped instead of the template's: a copier finds it by that file."""
    with given(warden) as files, tempfile.NamedTemporaryFile(dir=warden.base) as memory:
        memory.truncate(MEMORY_MIB * MIB)
        os.chmod(memory.name, 0o444)
        with open(memory.name, "rb") as reading:
            fds = [files[0].fileno(), files[1].fileno(), reading.fileno()]
            warden.restore("vm2", "t1", warden.slot_make(), fds=fds)
            wait_mapped(warden, "vm2")
            with copier.Files(warden, "t1") as saved:
                warden.copy("vm2", [*saved.fds[:2], reading.fileno(), saved.fds[3]])
                put_state(warden, "vm2")
                saved.ask(copier.Verb.COPY).check()
    warden.stop("vm2")


def test_boot(warden):
    with overlay() as disk:
        warden.restore("vm2", "t1", warden.slot_make(), fds=[disk.fileno()], flags=BOOT)
    states = {}
    for vm in ("vm1", "vm2"):
        qmp = warden.qmp(vm)
        states[vm] = qmp.run("query-status")["status"]
        qmp.close()
    assert states == {"vm1": "inmigrate", "vm2": "prelaunch"}
    save(warden, "vm2")  # its memory is a copy, as that of one that is restored
    warden.stop("vm2")


def kernel_of(pid):
    return pathlib.Path(f"/proc/{pid}/root/kernel").read_bytes()


def test_boot_with_the_kernel_of_another_template(warden):
    other = images.kernel() + b"another"
    warden.template("t2", kernel=other)
    for n, (kernel, found) in enumerate((("", images.kernel()), ("t2", other))):
        pid = warden.restore(f"k{n}", "t1", warden.slot_make(), flags=BOOT, kernel=kernel)
        assert kernel_of(pid) == found
        warden.stop(f"k{n}")
    slot = warden.slot_make()
    for kernel, flags, code in (("../t2", BOOT, "invalid"), ("t2" * 40, BOOT, "invalid"), ("t2", 0, "invalid"),
                                ("t3", BOOT, "not_found")):  # which takes the slot with it
        with pytest.raises(WardenError) as refused:
            warden.restore("k9", "t1", slot, flags=flags, kernel=kernel)
        assert refused.value.code == code, (kernel, refused.value)
    warden.template_drop("t2")


def file_limit(pid):
    text = pathlib.Path(f"/proc/{pid}/limits").read_text()
    return re.search(r"^Max file size +(\S+) +(\S+)", text, re.M).groups()


def test_no_file_of_a_vm_grows_beyond_its_disk(warden):
    pid = warden.restore("vm2", "t1", warden.slot_make(), sizes(disk_mib=DISK_MIB))
    limit = DISK_MIB * MIB * 105 // 100 + 64 * MIB
    assert file_limit(pid) == (str(limit),) * 2
    assert int(status(pid)["SigIgn"], 16) & 1 << signal.SIGXFSZ - 1
    assert file_limit(warden.vm) == ("unlimited",) * 2
    warden.stop("vm2")
