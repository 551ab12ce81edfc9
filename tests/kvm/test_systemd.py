"""test_systemd.py - all daemons as services on a KVM host with cgroup v2: restart each, lose nothing.

Run by tests/kvm/systemd in the emulated host, after deploy/install.
"""

import os
import pathlib
import resource
import signal
import subprocess
import sys

import pytest

from server import DAEMONS, Server
from taken import Taken
from warden import is_alive, wait_for

CGROUP = "hotcell.slice/hotcell-vms.service"
GROUPS = pathlib.Path("/sys/fs/cgroup") / CGROUP
FILL = pathlib.Path("/mnt/fill")
FILL_STEP = 16 << 20
HUGE_PAGES = pathlib.Path("/proc/sys/vm/nr_hugepages")
LEFT_KIB = 3 << 19  # to be filled step by step
CORE_PATTERN = pathlib.Path("/proc/sys/kernel/core_pattern")
STATE, RUN = "/var/lib/hotcell", "/run/hotcell"
LEAKS = pathlib.Path(__file__).resolve().parents[1] / "faults/leaks.py"
UID_BASE, UIDS = 786432, 1024
BOXES = 1  # more of them show no more, and take as long again
UNITS = (*DAEMONS, "images", "injector", "signer")
SECONDS = 240


def systemctl(*words):
    return subprocess.run(["systemctl", *words], check=True, capture_output=True, text=True).stdout.strip()


def unit(daemon):
    return "hotcell-gateway@1" if daemon == "gateway" else f"hotcell-{daemon}"


def main_pid(daemon):
    return int(systemctl("show", "-P", "MainPID", unit(daemon)))


def leftovers():
    """What the leak checker says of the whole host."""
    return subprocess.run([sys.executable, LEAKS, "--state", STATE, "--run", RUN, "--cgroup", CGROUP,
                           "--uid-base", str(UID_BASE), "--uids", str(UIDS), "--grace", "30"],
                          capture_output=True, text=True).stdout


class Installed(Server):
    """The installed server, asked like any other."""

    def __init__(self):
        self.port, self.admin_socket = 3000, "/run/hotcell-gateway/admin.sock"
        wait_for(self.answers, "the gateway answers", SECONDS)
        wait_for(self.template_is_ready, "the template is ready", SECONDS, 0.5)
        self.team, self.key = self.new_team("test")

    def answers(self):
        try:
            return self.admin("GET", "/admin/teams").status == 200
        except OSError:
            return False

    def template_is_ready(self):
        answer = self.admin("GET", "/admin/templates")
        return answer.status == 200 and any(t.get("buildStatus") == "ready" for t in answer.json)


@pytest.fixture(scope="module")
def server():
    return Installed()


@pytest.fixture(scope="module")
def counting(server):
    """Sandboxes, each with a process that counts in a file."""
    boxes = [server.create() for _ in range(BOXES)]
    for box in boxes:  # nothing is started for a wait: emulated twice over that takes all there is of the processors
        server.run(box, "nohup bash -c 'exec 3<> <(:); n=0; while :; do n=$((n+1)); echo $$ $n > /tmp/count; "
                        "read -t 1 -u 3; done' > /dev/null 2>&1 &")
        box["counted"] = count(server, box)
    return boxes


def count(server, box):
    # while it is written the file is empty for a moment
    pid, n = server.run(box, "until x=$(cat /tmp/count) && [ -n \"$x\" ]; do sleep 0.1; done; echo $x").split()
    return int(pid), int(n)


def test_each_daemon_runs_as_itself(server):
    for daemon in UNITS:
        status = pathlib.Path(f"/proc/{main_pid(daemon)}/status").read_text()
        uid = int(status.split("Uid:\t")[1].split()[0])
        assert (uid == 0) == (daemon == "warden"), daemon
        if daemon != "warden":
            assert "Seccomp:\t2" in status and "NoNewPrivs:\t1" in status, daemon


def vm_of(box):
    return int((GROUPS / box["sandboxID"] / "cgroup.procs").read_text())


def test_vms_are_below_a_unit_of_their_own(server, counting):
    cells = [entry.name for entry in GROUPS.iterdir() if entry.is_dir() and not entry.name.startswith("_")]
    assert sorted(cells) == sorted(box["sandboxID"] for box in counting)
    assert all(vm_of(box) for box in counting)


def test_systemd_leaves_that_units_group_alone(server):
    """It does so for one that it knows and delegates: of a unit without any process it forgets the group."""
    assert systemctl("show", "-P", "ControlGroup", "hotcell-vms.service") == f"/{CGROUP}"
    assert systemctl("show", "-P", "Delegate", "hotcell-vms.service") == "yes"


def test_a_change_of_the_slice_leaves_the_limits_of_vms(server, counting):
    """systemd sets the slice's group anew: below one that it does not leave alone, it takes controllers away."""
    limits = [GROUPS / box["sandboxID"] / "memory.max" for box in counting]
    before = [limit.read_text() for limit in limits]
    assert "max\n" not in before
    systemctl("set-property", "--runtime", "hotcell.slice", "MemoryMax=80%")
    systemctl("daemon-reload")
    assert [limit.read_text() for limit in limits] == before
    systemctl("set-property", "--runtime", "hotcell.slice", "MemoryMax=90%")


def test_every_unit_is_limited_in_memory(server):
    for name in (*(f"{unit(daemon)}.service" for daemon in UNITS), "hotcell.slice"):
        assert systemctl("show", "-P", "MemoryMax", name) != "infinity", name


def test_certificates_are_renewed_by_a_unit_that_may_do_nothing_else(server):
    """One whose key is gone is due."""
    subprocess.run(["hotcell", "tls", "init"], check=True, capture_output=True)
    key = pathlib.Path("/etc/hotcell/tls/hotcell.localhost/privkey.pem")
    before = key.read_bytes()
    key.unlink()
    systemctl("start", "hotcell-tls-renew.service")
    assert key.read_bytes() != before
    assert key.owner() == "hotcell-signer" and key.stat().st_mode & 0o777 == 0o400
    assert systemctl("is-active", "hotcell-tls-renew.timer") == "active"
    subprocess.run(["rm", "-r", "/etc/hotcell/tls/authority", "/etc/hotcell/tls/hotcell.localhost"], check=True)


@pytest.mark.parametrize("daemon", UNITS)
def test_a_restart_leaves_every_vm(server, counting, daemon):
    vms, old = [vm_of(box) for box in counting], main_pid(daemon)
    systemctl("restart", unit(daemon))
    assert main_pid(daemon) != old
    wait_for(server.answers, "the gateway answers", SECONDS)
    wait_for(lambda: server.ids() == {box["sandboxID"] for box in counting}, "they are listed", SECONDS)
    assert [vm_of(box) for box in counting] == vms


def test_and_each_counts_on_as_the_same_process(server, counting):
    for box in counting:
        pid, n = box["counted"]
        wait_for(lambda: counts_on(server, box, pid, n), f"{box['sandboxID']} counts on", SECONDS)


def counts_on(server, box, pid, n):
    now, counted = count(server, box)
    assert now == pid, "it is another process"
    return counted > n


def test_node_injector_and_signer_have_no_network(server):
    host = os.readlink("/proc/1/ns/net")
    for daemon in ("node", "injector", "signer"):
        assert os.readlink(f"/proc/{main_pid(daemon)}/ns/net") != host, daemon


@pytest.fixture
def collected():
    """The host pipes cores to a program of root's: which processes it was given."""
    seen, handler = pathlib.Path("/var/tmp/cores"), pathlib.Path("/var/tmp/collect")
    handler.write_text(f"#!/bin/sh\necho $1 >> {seen}\ncat > /dev/null\n")
    handler.chmod(0o755)
    before = CORE_PATTERN.read_text()
    CORE_PATTERN.write_text(f"|{handler} %P\n")
    yield lambda: [int(pid) for pid in seen.read_text().split()]
    CORE_PATTERN.write_text(before)


def test_no_core_reaches_the_hosts_collector(server, collected):
    """A limit of 0 does not keep it away, as the first process shows."""
    crash = subprocess.Popen(["/bin/sh", "-c", "kill -SEGV $$"],
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
    assert crash.wait() == -signal.SIGSEGV
    box = server.create()
    vm = vm_of(box)
    with Taken(vm) as qemu:  # as process 1 of its namespace it heeds no signal from others: a real fault
        qemu.before.rip = 0
    wait_for(lambda: not is_alive(vm) and box["sandboxID"] not in server.ids(), "the sandbox ended", SECONDS)
    for daemon in UNITS:
        pid = main_pid(daemon)
        os.kill(pid, signal.SIGSEGV)
        wait_for(lambda: main_pid(daemon) not in (0, pid), f"{daemon} is started again", SECONDS)
    assert collected() == [crash.pid]
    wait_for(server.answers, "the gateway answers", SECONDS)


@pytest.fixture
def fill():
    """Takes memory of the host that is no process's: writes a step more into a file that has no disk. Most is taken at
    once, as huge pages that nobody uses: to write so much takes minutes here."""
    meminfo = dict(line.split(":") for line in pathlib.Path("/proc/meminfo").read_text().splitlines())
    available, size = (int(meminfo[name].split()[0]) for name in ("MemAvailable", "Hugepagesize"))
    HUGE_PAGES.write_text(str(max(available - LEFT_KIB, 0) // size))
    FILL.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100%", "fill", FILL], check=True)
    with open(FILL / "file", "wb", buffering=0) as f:
        yield lambda: f.write(bytes(FILL_STEP))
    subprocess.run(["umount", FILL], check=True)
    FILL.rmdir()
    HUGE_PAGES.write_text("0")


@pytest.fixture
def service():
    """A service of the host as any other: its main process."""
    subprocess.run(["systemd-run", "--unit=bystander", "sleep", "infinity"], check=True)
    yield lambda: int(systemctl("show", "-P", "MainPID", "bystander"))
    systemctl("stop", "bystander")


def why(server, box):
    ended = {e["sandboxID"]: e["reason"] for e in server.admin("GET", "/admin/ended").json}
    return ended.get(box["sandboxID"])


def test_a_full_host_ends_a_sandbox_and_no_service(server, counting, fill, service):
    """Each has the score 500 and every service 0, daemons -900: what is largest of those with 500 goes."""
    large = server.create()
    server.run(large, "head -c 200M /dev/zero > /dev/shm/large")
    vm, before = vm_of(large), [service(), *map(main_pid, UNITS)]
    steps = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // FILL_STEP
    while steps and is_alive(vm):
        fill()
        steps -= 1
    assert not is_alive(vm), "the host is full, and the sandbox lives"
    wait_for(lambda: why(server, large), "it ended", SECONDS)
    assert why(server, large) == "oom_host"
    assert [service(), *map(main_pid, UNITS)] == before
    assert server.ids() == {box["sandboxID"] for box in counting}


def test_a_create_after_all_of_it(server, counting):
    box = server.create()
    assert server.run(box, "echo alive") == "alive"
    assert server.delete(box) == 204


def test_nothing_is_left(server, counting):
    for box in counting:
        assert server.delete(box) == 204
    assert server.ids() == set()
    systemctl("stop", "hotcell-http.socket", "hotcell-admin.socket", "hotcell-gateway@1", "hotcell-node", "hotcell-egress",
              "hotcell-images", "hotcell-injector", "hotcell-signer")
    assert leftovers() == ""
    systemctl("stop", "hotcell-warden")
    assert leftovers() == ""
