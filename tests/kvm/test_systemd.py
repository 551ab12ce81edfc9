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

SLICE = pathlib.Path("/sys/fs/cgroup/hotcell.slice")
CORE_PATTERN = pathlib.Path("/proc/sys/kernel/core_pattern")
STATE, RUN = "/var/lib/hotcell", "/run/hotcell"
LEAKS = pathlib.Path(__file__).resolve().parents[1] / "faults/leaks.py"
UID_BASE, UIDS = 786432, 1024
BOXES = 2
UNITS = (*DAEMONS, "opener")
SECONDS = 240


def systemctl(*words):
    return subprocess.run(["systemctl", *words], check=True, capture_output=True, text=True).stdout.strip()


def main_pid(daemon):
    return int(systemctl("show", "-P", "MainPID", f"hotcell-{daemon}"))


def leftovers():
    """What the leak checker says of the whole host."""
    return subprocess.run([sys.executable, LEAKS, "--state", STATE, "--run", RUN, "--cgroup", SLICE.name,
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
    for box in boxes:
        server.run(box, "nohup bash -c 'n=0; while :; do n=$((n+1)); echo $$ $n > /tmp/count; sleep 0.2; done' "
                        "> /dev/null 2>&1 &")
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


def test_vms_are_in_a_slice_of_their_own(server, counting):
    cells = [entry.name for entry in SLICE.iterdir() if entry.is_dir() and not entry.name.startswith("_")]
    assert sorted(cells) == sorted(box["sandboxID"] for box in counting)
    for box in counting:
        pid = (SLICE / box["sandboxID"] / "cgroup.procs").read_text().split()
        assert len(pid) == 1


@pytest.mark.parametrize("daemon", UNITS)
def test_a_restart_loses_nothing(server, counting, daemon):
    before = [count(server, box) for box in counting]
    old = main_pid(daemon)
    systemctl("restart", f"hotcell-{daemon}")
    assert main_pid(daemon) != old
    wait_for(server.answers, "the gateway answers", SECONDS)
    for box, (pid, n) in zip(counting, before):
        wait_for(lambda: count(server, box) > (pid, n) and count(server, box)[0] == pid,
                 f"{box['sandboxID']} counts on", SECONDS)
    assert server.ids() == {box["sandboxID"] for box in counting}


def test_node_and_opener_have_no_network(server):
    host = os.readlink("/proc/1/ns/net")
    for daemon in ("node", "opener"):
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
    vm = int((SLICE / box["sandboxID"] / "cgroup.procs").read_text())
    with Taken(vm) as qemu:  # as process 1 of its namespace it heeds no signal from others: a real fault
        qemu.before.rip = 0
    wait_for(lambda: not is_alive(vm) and box["sandboxID"] not in server.ids(), "the sandbox ended", SECONDS)
    for daemon in UNITS:
        pid = main_pid(daemon)
        os.kill(pid, signal.SIGSEGV)
        wait_for(lambda: main_pid(daemon) not in (0, pid), f"{daemon} is started again", SECONDS)
    assert collected() == [crash.pid]
    wait_for(server.answers, "the gateway answers", SECONDS)


def test_a_create_after_all_of_it(server, counting):
    box = server.create()
    assert server.run(box, "echo alive") == "alive"
    assert server.delete(box) == 204


def test_nothing_is_left(server, counting):
    for box in counting:
        assert server.delete(box) == 204
    assert server.ids() == set()
    systemctl("stop", "hotcell-gateway", "hotcell-node", "hotcell-egress", "hotcell-opener")
    assert leftovers() == ""
    systemctl("stop", "hotcell-warden")
    assert leftovers() == ""
