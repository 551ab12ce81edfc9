"""test_installation.py - whose VM it is; and a warden that is started with a wrong path ends none."""

import subprocess

import pytest

from protocol import ID_MAX, Verb, WardenError
from warden import START_SECONDS, build_dir, is_alive, overlay, sizes

OURS, OTHERS = "a" * 32, "b" * 32
FIRST_RECORD = 4 * 4 + 2 * (ID_MAX + 1)  # bytes of a record before it told an installation


def installations(warden):
    return {vm: cell.installation.decode() for vm, cell in warden.list().items()}


def refused(code, call, *args, **kw):
    with pytest.raises(WardenError) as e:
        call(*args, **kw)
    assert e.value.code == code, e.value


def test_the_list_tells_whose_vm_it_is_also_of_the_next_warden(stand_in):
    stand_in.template("t1", kernel=b"idle")
    for vm, installation in (("vm1", OURS), ("vm2", OTHERS), ("vm3", "")):
        stand_in.restore(vm, "t1", stand_in.slot_make(), installation=installation)
    wanted = {"vm1": OURS, "vm2": OTHERS, "vm3": ""}
    assert installations(stand_in) == wanted
    stand_in.restart()
    assert installations(stand_in) == wanted


def test_a_vm_of_the_warden_before_is_adopted(stand_in):
    stand_in.template("t1", kernel=b"idle")
    pid = stand_in.restore("vm1", "t1", stand_in.slot_make(), installation=OURS)
    stand_in.kill()
    record = stand_in.vm_dir("vm1") / "record"
    record.write_bytes(record.read_bytes()[:FIRST_RECORD])
    stand_in.start()
    assert installations(stand_in) == {"vm1": ""} and stand_in.list()["vm1"].pid == pid


def test_nobody_touches_a_vm_of_another_installation(stand_in):
    stand_in.template("t1", kernel=b"idle")
    pid = stand_in.restore("vm1", "t1", stand_in.slot_make(), installation=OURS)
    call, spare = stand_in.client.call, stand_in.slot_make()
    refused("denied", call, Verb.STOP, vm="vm1", installation=OTHERS)
    refused("denied", call, Verb.SOCKETS, vm="vm1", count=1, installation=OTHERS)
    with overlay() as disk:
        refused("denied", call, Verb.RESTORE, vm="vm1", template="t1", slot=spare, sizes=sizes(),
                fds=[disk.fileno()], installation=OTHERS)
    refused("invalid", call, Verb.STOP, vm="vm1", installation=b"x" * (ID_MAX + 1))
    assert is_alive(pid)
    call(Verb.STOP, vm="vm1", installation=OURS)
    stand_in.slot_drop(spare)
    assert not stand_in.list()


def test_a_template_of_which_a_vm_was_made_is_not_dropped(stand_in):
    stand_in.template("t1", kernel=b"idle")
    stand_in.restore("vm1", "t1", stand_in.slot_make(), installation=OURS)
    refused("exists", stand_in.client.call, Verb.TEMPLATE_DROP, template="t1", installation=OTHERS)
    assert (stand_in.state / "templates/t1/memory").exists()
    stand_in.stop("vm1")
    stand_in.template_drop("t1")


def test_a_start_with_a_wrong_path_ends_no_vm(stand_in):
    """It does not start, says what is wrong, and with the right path all is as it was."""
    stand_in.template("t1", kernel=b"idle")
    pid = stand_in.restore("vm1", "t1", stand_in.slot_make())
    rows = {"another cgroup": ({"cgroup": stand_in.cgroup + "-other"}, "vm1", "set cgroup"),
            "another state_dir": ({"state_dir": stand_in.base / "other"}, "vm1", "set state_dir")}
    for name, (wrong, vm, fix) in rows.items():
        stand_in.kill()
        before = len(stand_in.log())
        stand_in.launch(**wrong)
        assert stand_in.process.wait(START_SECONDS) == 1, name
        stand_in.process = None
        said = stand_in.log()[before:]
        assert vm in said and str(pid) in said and fix in said, said
        assert is_alive(pid) and stand_in.vm_dir("vm1").exists(), name
        stand_in.start()
        assert stand_in.list()["vm1"].pid == pid
    for tree_cgroup in [g.parent.parent / (stand_in.cgroup + "-other") for g in stand_in.groups()]:
        if tree_cgroup.is_dir():
            for child in tree_cgroup.iterdir():
                if child.is_dir():
                    child.rmdir()
            tree_cgroup.rmdir()


def test_want_of_descriptors_at_the_start_ends_no_vm(stand_in):
    """Whoever cannot look must not say that nothing is there."""
    stand_in.template("t1", kernel=b"idle")
    pids = [stand_in.restore(f"vm{i}", "t1", stand_in.slot_make()) for i in range(6)]
    stand_in.kill()
    config = stand_in.base / "warden.conf"
    config.write_text("".join(f"{k} = {v}\n" for k, v in stand_in.settings.items()))
    ended = 0
    for most in range(10, 24):
        run = subprocess.Popen(["prlimit", f"--nofile={most}:{most}", build_dir() / "src/warden/hotcell-warden", config],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            for line in run.stderr:
                if "serving" in line or "remove leftovers" in line:
                    break
            else:
                ended += 1
        finally:
            run.kill()
            run.wait()
            run.stderr.close()
        assert all(is_alive(pid) for pid in pids), f"with {most} descriptors"
    assert ended > 0
    stand_in.start()
    assert [stand_in.list()[f"vm{i}"].pid for i in range(6)] == pids
