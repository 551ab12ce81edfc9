"""test_metrics_server.py - the metrics that only VMs move, one failed create in the logs of all daemons, and what a
service manager hears of them.

One server, one template: what is done here is a create, a pause, a resume, a snapshot and a fork.
"""

import concurrent.futures
import os
import signal

import injector
import pytest

from manager import Manager
from scrape import Figures, check_metrics, table
from server import Server
from warden import wait_for

# each is moved by the test that names it
MOVED = ["hotcell_create_duration_seconds", "hotcell_creates_waiting", "hotcell_template_ready", "hotcell_ready",
         "hotcell_pool_sandboxes", "hotcell_pool_target_sandboxes", "hotcell_pool_memory_bytes",
         "hotcell_network_slots_ready", "hotcell_pause_duration_seconds", "hotcell_pauses_failed_total",
         "hotcell_resume_duration_seconds", "hotcell_resumes_failed_total", "hotcell_snapshot_duration_seconds",
         "hotcell_snapshots_failed_total", "hotcell_fork_duration_seconds", "hotcell_turns_waiting", "hotcell_builds",
         "hotcell_builds_ended_total", "hotcell_egress_decisions_total"]
OPEN_SECONDS = 120


@pytest.fixture(scope="module")
def manager(tmp_path_factory):
    folder = tmp_path_factory.mktemp("manager")
    for path in (folder, *folder.parents[:2]):
        path.chmod(0o755)
    with Manager(folder) as m:
        yield m


@pytest.fixture(scope="module")
def server(manager):
    with Server(node={"pool": 0, "saves_max": 1}, images={}, tls="hotcell.localhost") as s:
        yield s


@pytest.fixture(scope="module")
def box(server):
    return server.create()


def scrape(server):
    return Figures(server.admin("GET", "/metrics").raw)


def test_a_server_that_can_create_says_so(server):
    wait_for(lambda: server.api("GET", "/health", key=None).status == 204, "/health says so")
    told = scrape(server)
    assert told.sum("hotcell_ready") == told.sum("hotcell_template_ready") == 1
    assert set(told.families) == set(table())
    check_metrics(told.text)


@pytest.mark.parametrize("name", ["warden", "egress", "images", "node", "signer", "gateway"])
def test_the_service_manager_hears_of_each_daemon(server, manager, name):
    pid = server.pids[name]
    assert manager.heard(pid, "READY=1") == 1
    manager.wait_beat(pid)


def test_the_service_manager_hears_of_the_injector(manager):
    it = injector.Injector().start()
    try:
        manager.wait_ready(it.process.pid)
        manager.wait_beat(it.process.pid)
    finally:
        it.end()


def test_a_loop_that_stands_still_is_not_heard_of(server, manager):
    """What the manager would kill it for."""
    pid = server.pids["egress"]
    os.kill(pid, signal.SIGSTOP)
    try:
        manager.wait_beat(server.pids["node"])  # what egress said before has come, too
        before = manager.heard(pid, "WATCHDOG=1")
        for _ in range(4):
            manager.wait_beat(server.pids["node"])
        assert manager.heard(pid, "WATCHDOG=1") == before
    finally:
        os.kill(pid, signal.SIGCONT)
    manager.wait_beat(pid)


def test_a_create_is_counted_by_where_its_vm_came_from(server, box):
    told = scrape(server)
    assert told.sum("hotcell_create_duration_seconds", path="template") == 1
    assert told.sum("hotcell_team_sandboxes", team=server.team, state="running") == 1
    wait_for(lambda: scrape(server).sum("hotcell_network_slots_ready") > 0, "networks are made ahead")


def test_what_a_guest_tries_to_reach_is_counted(server, box):
    before = scrape(server)
    server.run(box, "getent hosts nobody.example; curl -m 5 http://192.0.2.1/; true")
    after = scrape(server)
    assert after.moved(before, "hotcell_egress_decisions_total", kind="name", verdict="refused") > 0
    assert after.moved(before, "hotcell_egress_decisions_total", kind="connection", verdict="refused") > 0


def test_pauses_and_resumes_are_timed(server, box):
    before, path = scrape(server), f"/sandboxes/{box['sandboxID']}"
    server.must("POST", path + "/pause")
    wait_for(lambda: scrape(server).sum("hotcell_sandboxes", state="paused") == 1, "it is paused")
    server.must("POST", path + "/resume", {"timeout": 3600})
    after = scrape(server)
    assert after.moved(before, "hotcell_pause_duration_seconds") == 1
    assert after.moved(before, "hotcell_resume_duration_seconds") == 1


def test_copies_are_timed(server, box):
    before = scrape(server)
    copies = server.must("POST", f"/sandboxes/{box['sandboxID']}/fork", {"count": 1})
    after = scrape(server)
    assert after.moved(before, "hotcell_fork_duration_seconds") == 1
    assert after.moved(before, "hotcell_snapshot_duration_seconds") == 1
    assert after.moved(before, "hotcell_create_duration_seconds", path="fork") == 1
    for copy in copies:
        server.delete(copy["sandbox"])
    assert scrape(server).moved(before, "hotcell_sandboxes_ended_total", reason="killed") == 1


def test_what_waits_is_told(server, box):
    """While warden stands still, so does what needs it."""
    other = server.create()
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        server.daemons["warden"].process.send_signal(signal.SIGSTOP)
        try:
            made = pool.submit(server.create)
            paused = [pool.submit(server.api, "POST", f"/sandboxes/{one['sandboxID']}/pause") for one in (box, other)]
            wait_for(lambda: (t := scrape(server)).sum("hotcell_creates_waiting") == 1 and
                     t.sum("hotcell_turns_waiting", queue="saves") == 1, "one create and one pause wait")
        finally:
            server.daemons["warden"].process.send_signal(signal.SIGCONT)
        server.delete(made.result(OPEN_SECONDS))
        assert [one.result(OPEN_SECONDS).status for one in paused] == [204, 204]
    server.delete(other)
    server.must("POST", f"/sandboxes/{box['sandboxID']}/resume", {"timeout": 3600})


def test_a_build_is_counted(server):
    made = server.must("POST", "/v3/templates", {"name": "metrics"})
    path = f"/templates/{made['templateID']}/builds/{made['buildID']}"
    server.must("POST", "/v2" + path, {"fromTemplate": "base", "steps": [
        {"type": "RUN", "args": ["sleep 1000"], "force": True}]})
    wait_for(lambda: scrape(server).sum("hotcell_builds", state="running") == 1, "it runs")
    server.must("DELETE", path)
    wait_for(lambda: scrape(server).sum("hotcell_builds_ended_total") == 1, "it ended", OPEN_SECONDS)


def test_a_failed_create_is_found_in_all_logs(server):
    """Its VM cannot be started: the template's memory is not where it was."""
    template = next(p for p in (server.warden.state / "templates").iterdir() if (p / "memory").exists())
    (template / "memory").rename(template / "memory.gone")
    try:
        answer = server.api("POST", "/sandboxes", {"templateID": "base", "timeout": 60})
    finally:
        (template / "memory.gone").rename(template / "memory")
    name = answer.headers["X-Request-Id"]
    assert answer.status >= 400 and "memory" in answer.json["message"], answer.raw
    for daemon in ("gateway", "node", "warden"):
        wait_for(lambda d=daemon: f"request={name}" in server.daemons[d].log(), f"{daemon} names it")
    found = [line for line in server.daemons["warden"].log().splitlines() if name in line]
    assert "memory" in found[0], found


def test_what_fails_is_counted(server, box):
    """No room on the disk, as node sees it."""
    path = f"/sandboxes/{box['sandboxID']}"
    server.restart("node", disk_reserve_mib=1 << 30)
    server.wait_up()
    wait_for(lambda: server.api("GET", path).status == 200, "it is found again")
    assert server.api("POST", path + "/pause").status == 507
    assert server.api("POST", path + "/snapshots", {}).status == 507
    told = scrape(server)
    assert told.sum("hotcell_pauses_failed_total") == 1 and told.sum("hotcell_snapshots_failed_total") == 1
    answer = wait_for(lambda: (a := server.api("GET", "/health", key=None)).status == 503 and a, "/health says so")
    assert answer.json["reason"] == "disk_full"
    assert told.sum("hotcell_ready") == 0
    assert server.api("POST", "/sandboxes", {"templateID": "base", "timeout": 60}).status == 507
    assert scrape(server).sum("hotcell_creates_refused_total", reason="no_space") == 1
    server.restart("node", disk_reserve_mib=1)
    server.wait_up()


def test_a_resume_that_fails_is_counted(server, box):
    path = f"/sandboxes/{box['sandboxID']}"
    wait_for(lambda: server.api("POST", path + "/pause").status == 204, "it is paused")
    state = server.data / "sandboxes" / box["sandboxID"] / "state"
    wait_for(state.exists, "its files are there")
    held = state.read_bytes()
    state.write_bytes(held[:-1] + bytes([held[-1] ^ 1]))
    assert server.api("POST", path + "/resume", {"timeout": 60}).status >= 400
    assert scrape(server).sum("hotcell_resumes_failed_total") == 1
    state.write_bytes(held)


def test_a_pool_is_told(server):
    server.restart("node", pool=1)
    told = wait_for(lambda: (t := scrape(server)).sum("hotcell_pool_sandboxes", source="base") == 1 and t, "it is filled",
                    OPEN_SECONDS)
    assert told.sum("hotcell_pool_target_sandboxes") == 1 and told.sum("hotcell_pool_memory_bytes") > 0
    assert server.api("POST", "/sandboxes", {"templateID": "base", "timeout": 60}).status == 201
    assert scrape(server).sum("hotcell_create_duration_seconds", path="pool") == 1
