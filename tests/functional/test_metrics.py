"""test_metrics.py - metrics, the access log, ids of requests and /health, of a real gateway and a real node without VMs.

What needs a VM to be moved is in test_metrics_server.py; every metric of the tables must be moved by one of the two.
"""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import sqlite3
import subprocess
import time

import pytest

import test_metrics_server
from daemon import free_port
from lone_gateway import LoneGateway
from lone_node import NODE_UID, LoneNode, running
from lone_pair import LonePair
from scrape import Figures, check_metrics, table
from warden import is_sanitized, wait_for

SANDBOXES, TEAMS = 5000, 200
SCRAPE_SECONDS = 0.05  # of a loop, as it is promised
SCRAPES = 20
TOP = pathlib.Path(__file__).resolve().parents[2]
needs_prometheus = pytest.mark.skipif(not shutil.which("promtool"), reason="prometheus is not installed (tools/deps)")
ID = re.compile(r"[a-z0-9]{20}")


@pytest.fixture(scope="module")
def pair():
    with LonePair(metrics_listen=f"127.0.0.1:{free_port()}") as p:
        p.metrics_port = int(p.daemon.settings["metrics_listen"].rsplit(":", 1)[1])
        yield p


def scrape(gateway):
    answer = gateway.admin("GET", "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return Figures(answer.raw)


def at_address(port, target, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        connection.request(method, target)
        response = connection.getresponse()
        return response.status, response.read()


# --- what is told, and where ---

def test_promtool_finds_nothing(pair):
    check_metrics(scrape(pair).text)


def test_all_that_is_told_is_in_the_tables_and_the_other_way_round(pair):
    told, rows = scrape(pair), table()
    egress = {name for name in rows if name.startswith("hotcell_egress_")}  # there is none here
    assert set(told.families) == set(rows) - egress
    for (name, labels) in told.values:
        family = re.sub("_(bucket|sum|count)$", "", name) if name not in rows else name
        assert {n for n, _ in labels} - {"le"} == set(rows[family][1]), name


def test_the_address_has_metrics_and_nothing_else(pair):
    status, text = at_address(pair.metrics_port, "/metrics")
    assert status == 200 and set(Figures(text).families) == set(scrape(pair).families)
    for target in ("/", "/health", "/sandboxes", "/admin/teams", "/admin/status", "/metrics/", "/metrics?x"):
        assert at_address(pair.metrics_port, target)[0] == 404, target
    assert at_address(pair.metrics_port, "/metrics", "POST")[0] == 405


def test_the_public_door_has_no_metrics(pair):
    assert pair.ask("GET", "/metrics").status == 404
    assert pair.ask("GET", "/metrics", key=None).status == 404


def test_a_scrape_without_node_tells_that(pair):
    with LoneGateway() as gateway:
        assert scrape(gateway).sum("hotcell_node_up") == 1
        gateway.node.stop()
        told = wait_for(lambda: (t := scrape(gateway)) and t.sum("hotcell_node_up") == 0 and t, "node is seen to be away")
        check_metrics(told.text)
        assert not told.has("hotcell_sandboxes")


# --- what the documents promise of it ---

def documented_config(port):
    page = (TOP / "docs/metrics.md").read_text()
    config, = re.findall(r"```yaml\n(.*?)```", page, re.S)
    return "global: {scrape_interval: 1s}\n" + config.replace("127.0.0.1:9464", f"127.0.0.1:{port}")


@needs_prometheus
def test_the_rules_for_alerts_are_sound():
    rules = TOP / "deploy/prometheus/hotcell.rules.yml"
    said = subprocess.run(["promtool", "check", "rules", rules], capture_output=True, text=True, check=False, timeout=60)
    assert said.returncode == 0 and "SUCCESS: 9 rules" in said.stdout, said
    used = set(re.findall(r"\b(hotcell_[a-z_]+)", " ".join(re.findall(r"expr: (.*)", rules.read_text()))))
    assert len(used) > 5 and {re.sub("_bucket$", "", name) for name in used} <= set(table())


@needs_prometheus
def test_a_real_prometheus_reads_it(pair, tmp_path):
    (tmp_path / "prometheus.yml").write_text(documented_config(pair.metrics_port))
    port = free_port()
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
                                    f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)

    def value_of(query):
        with contextlib.suppress(OSError, http.client.HTTPException):
            status, body = at_address(port, f"/api/v1/query?query={query}")
            found = json.loads(body)["data"]["result"] if status == 200 else []
            return found and found[0]["value"][1]
    try:
        wait_for(lambda: value_of("up") == "1", "it has scraped", 60)
        assert value_of("hotcell_node_up") == "1" and value_of("hotcell_sandboxes_max")
    finally:
        process.kill()
        process.wait()


# --- each is moved by what it counts ---

def open_stream(gateway):
    box = gateway.node.add("istream", gateway.team)
    server = gateway.node.listen(8080)
    client = socket.create_connection(("127.0.0.1", gateway.port))
    client.sendall(f"GET / HTTP/1.1\r\nHost: {gateway.host(box, 8080)}\r\n\r\n".encode())
    guest, _ = server.accept()
    return client, guest, server


def test_traffic_and_its_codes_are_counted():
    with LoneGateway() as gateway:
        before = scrape(gateway)
        client, guest, server = open_stream(gateway)
        during = scrape(gateway)
        assert during.moved(before, "hotcell_sandbox_streams") == 1
        assert during.moved(before, "hotcell_connections") == 1
        guest.sendall(b"HTTP/1.1 418 teapot\r\ncontent-length: 0\r\n\r\n")
        assert b"418" in client.recv(4096)
        wait_for(lambda: scrape(gateway).moved(before, "hotcell_http_requests_total", **{"class": "traffic", "code": "4xx"}) == 1,
                 "the answer is counted")
        assert not scrape(gateway).has("hotcell_http_requests_total", code="418")  # guests choose it
        for s in (client, guest, server):
            s.close()


def cause_refusal(pair):
    assert pair.ask("POST", "/sandboxes", {"templateID": "nosuch"}).status == 404


def cause_team_sandbox(pair):
    row = running(1, team=pair.team)
    pair.node.kill()
    pair.node.put(row)
    pair.node.warden.cells = {row["id"]: 1}
    pair.node.begin()
    wait_for(lambda: pair.ask("GET", "/v2/sandboxes").json, "the sandbox is there")


def cause_end(pair):
    box = pair.ask("GET", "/v2/sandboxes").json[0]["sandboxID"]
    assert pair.ask("DELETE", f"/sandboxes/{box}").status == 204


def nothing(_):
    pass


# metric, labels, what moves it, and how: "up", or "told": its value is other than 0
CAUSES = [
    ("hotcell_http_requests_total", {"class": "sandboxes", "code": "404"}, cause_refusal, "up"),
    ("hotcell_http_request_duration_seconds", {"class": "sandboxes"}, cause_refusal, "up"),
    ("hotcell_creates_refused_total", {"reason": "not_found"}, cause_refusal, "up"),
    ("hotcell_team_sandboxes", {"state": "running"}, cause_team_sandbox, "up"),
    ("hotcell_sandboxes", {"state": "running"}, nothing, "told"),
    ("hotcell_memory_promised_bytes", {}, nothing, "told"),
    ("hotcell_sandboxes_ended_total", {"reason": "killed"}, cause_end, "up"),
    ("hotcell_journal_write_duration_seconds", {}, nothing, "told"),
    ("hotcell_daemon_up", {"daemon": "warden"}, nothing, "told"),
    ("hotcell_http_requests_under_way", {}, nothing, "told"),  # the scrape itself
    ("hotcell_connections_max", {}, nothing, "told"),
    ("hotcell_node_up", {}, nothing, "told"),
    ("hotcell_build_info", {}, nothing, "told"),
    ("hotcell_node_build_info", {}, nothing, "told"),
    ("process_cpu_seconds_total", {}, cause_refusal, "up"),
    ("process_resident_memory_bytes", {}, nothing, "told"),
    ("process_start_time_seconds", {}, nothing, "told"),
    ("hotcell_node_cpu_seconds_total", {}, cause_refusal, "up"),
    ("hotcell_node_resident_memory_bytes", {}, nothing, "told"),
    ("hotcell_node_start_time_seconds", {}, nothing, "told"),
    ("hotcell_sandboxes_max", {}, nothing, "told"),
    ("hotcell_host_memory_bytes", {}, nothing, "told"),
    ("hotcell_host_memory_available_bytes", {}, nothing, "told"),
    ("hotcell_memory_promised_max_bytes", {}, nothing, "told"),
    ("hotcell_disk_bytes", {}, nothing, "told"),
    ("hotcell_disk_free_bytes", {}, nothing, "told"),
    ("hotcell_disk_reserve_bytes", {}, nothing, "told"),
]
ELSEWHERE = {"hotcell_connections", "hotcell_sandbox_streams",  # test_traffic_and_its_codes_are_counted
             "hotcell_journal_writes_failed_total",  # tests/unit/test_node_journal.c
             "hotcell_egress_bytes_total"}  # security/test_network_policy.py, which has an internet


def test_no_metric_is_without_a_cause():
    moved = {name for name, *_ in CAUSES} | ELSEWHERE | set(test_metrics_server.MOVED)
    assert set(table()) == moved


@pytest.mark.parametrize("name, labels, cause, how", CAUSES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CAUSES)])
def test_it_is_moved(pair, name, labels, cause, how):
    before = scrape(pair)
    cause(pair)
    after = scrape(pair)
    if how == "told":
        assert after.sum(name, **labels) > 0
    elif cause is cause_team_sandbox:  # node was another one before
        assert after.sum(name, team=pair.team, **labels) == 1 and before.sum(name, team=pair.team, **labels) == 0
    else:
        assert after.moved(before, name, **labels) > 0


def test_a_warden_that_goes_is_told(pair):
    pair.node.warden.version += 1
    pair.node.warden.hang_up()
    try:
        wait_for(lambda: scrape(pair).sum("hotcell_daemon_up", daemon="warden") == 0, "it is away")
        answer = wait_for(lambda: (a := pair.ask("GET", "/health", key=None)).json and
                          a.json["reason"] == "version_mismatch" and a, "/health says so")
        assert answer.status == 503 and "warden" in answer.json["message"]
    finally:
        pair.node.warden.version -= 1
        pair.node.warden.hang_up()
    wait_for(lambda: scrape(pair).sum("hotcell_daemon_up", daemon="warden") == 1, "it is back")


# --- how many there may be, and what it costs ---

def put_many(node):
    """Running sandboxes of many teams, in one write."""
    info = {name: kind for _, name, kind, *_ in node.sql("pragma table_info(sandbox)")}
    blank = {name: "" if kind == "TEXT" else 0 for name, kind in info.items()}
    rows = [{**blank, "text": None, "known": None, **running(i, team=f"team{i % TEAMS}")} for i in range(SANDBOXES)]
    with contextlib.closing(sqlite3.connect(node.data / "journal.db")) as db, db:
        db.executemany(f"insert into sandbox values ({','.join('?' * len(info))})", [tuple(r.values()) for r in rows])
    for row in rows:
        folder = node.folder(row["id"])
        folder.mkdir(mode=0o700)
        (folder / "disk").write_bytes(b"a disk")
        for path in (folder, folder / "disk"):
            os.chown(path, NODE_UID, NODE_UID)
    node.warden.cells = {row["id"]: row["slot"] for row in rows}


def test_a_scrape_of_five_thousand_sandboxes_costs_little():
    with LonePair() as pair:
        pair.node.kill()
        put_many(pair.node)
        pair.node.begin()
        first = wait_for(lambda: (t := scrape(pair)).sum("hotcell_sandboxes", state="running") == SANDBOXES and t,
                         "all are there", 120)
        teams = {dict(labels)["team"] for name, labels in first.values if name == "hotcell_team_sandboxes"}
        assert len(teams) == 65 and "other" in teams  # TABLE_PLACES, and the rest
        assert first.sum("hotcell_team_sandboxes", state="running") == SANDBOXES
        took = []
        for _ in range(SCRAPES):
            before = scrape(pair)
            after = scrape(pair)
            took.append([after.moved(before, name) for name in
                         ("hotcell_node_cpu_seconds_total", "process_cpu_seconds_total")])
        node, gateway = (sorted(column)[SCRAPES // 2] for column in zip(*took))
        print(f"a scrape with {SANDBOXES} sandboxes: node {node * 1000:.2f} ms, gateway {gateway * 1000:.2f} ms, "
              f"{len(first.text)} bytes")
        limit = SCRAPE_SECONDS * (10 if is_sanitized() else 1)
        assert node <= limit and gateway <= limit


# --- one line for each request, and its id ---

def lines_with(log, word):
    return [line for line in log.splitlines() if word in line]


def test_an_id_leads_from_the_answer_to_the_logs(pair):
    answer = pair.ask("POST", "/sandboxes", {"templateID": "secret-name"}, headers={"X-Request-Id": "mine"})
    name = answer.headers["X-Request-Id"]
    assert answer.status == 404 and ID.fullmatch(name) and answer.headers["X-E2B-Trace-ID"] == name
    line, = wait_for(lambda: lines_with(pair.daemon.log(), f"request={name}"), "the gateway's line")
    assert re.search(rf" access method=POST route=/sandboxes status=404 ms=\d+ team={pair.team} name=test request={name}$", line)
    refused, = lines_with(pair.node.log(), f"request={name}")
    assert "NODE_CREATE refused, not_found" in refused
    assert pair.key not in pair.daemon.log() and "request=mine" not in pair.daemon.log()


@pytest.mark.parametrize("method, target, key, route, status", [
    ("GET", "/sandboxes/inosuch?token=hunter2", True, "GET route=/sandboxes/{sandboxID}", 404),
    ("GET", "/v2/sandboxes?metadata=hunter2", "e2b_" + "0" * 40, "GET route=/v2/sandboxes", 401),
    ("GET", "/no/hunter2", True, "- route=-", 404),
    ("DELETE", "/health", None, "- route=-", 405),
    ("GET", "/health", None, "GET route=/health", 503),
])
def test_every_refusal_has_one_line_without_values(pair, method, target, key, route, status):
    answer = pair.ask(method, target, key=key)
    name = answer.headers["X-Request-Id"]
    line, = wait_for(lambda: lines_with(pair.daemon.log(), f"request={name}"), "its line")
    assert answer.status == status and f"access method={route} status={status} " in line
    assert "hunter2" not in pair.daemon.log()


def test_a_client_that_leaves_is_a_line_too():
    with LoneGateway() as gateway:
        gateway.node.serve_get = lambda *_: None  # never answers
        with socket.create_connection(("127.0.0.1", gateway.port)) as client:
            client.sendall(f"GET /sandboxes/iany HTTP/1.1\r\nHost: x\r\nX-API-KEY: {gateway.key}\r\n\r\n".encode())
            wait_for(lambda: "GET" in gateway.node.verbs, "node is asked")
        wait_for(lambda: lines_with(gateway.daemon.log(), "status=499"), "its line")


def test_the_access_log_can_be_turned_off():
    with LoneGateway(access_log="no") as gateway:
        assert gateway.ask("GET", "/sandboxes/inosuch").status == 404
        assert scrape(gateway).sum("hotcell_http_requests_total", code="404") == 1
        assert "access " not in gateway.daemon.log()


# --- /health ---

def test_health_says_why_nothing_can_be_created():
    with LoneGateway() as gateway:
        assert gateway.ask("GET", "/health", key=None).status == 204
        gateway.node.unready = {"reason": "disk_full", "message": "/data: the host's disk is full"}
        answer = wait_for(lambda: (a := gateway.ask("GET", "/health", key=None)).status == 503 and a, "it says so")
        assert answer.json == {"code": 503, "message": "/data: the host's disk is full", "reason": "disk_full"}
        assert answer.headers["retry-after"] == "1"
        gateway.node.unready = None
        wait_for(lambda: gateway.ask("GET", "/health", key=None).status == 204, "it can again")
        gateway.node.stop()
        answer = wait_for(lambda: (a := gateway.ask("GET", "/health", key=None)).status == 503 and a, "node is away")
        assert answer.json["reason"] == "node_away"


def test_health_asks_node_once_in_a_second():
    with LoneGateway() as gateway:
        gateway.node.verbs.clear()
        began = time.monotonic()
        for _ in range(50):
            assert gateway.ask("GET", "/health", key=None).status == 204
        assert gateway.node.verbs.count("READY") <= 2 + (time.monotonic() - began)


def reason(node):
    return (node.client.ready() or {}).get("reason")


def test_node_says_what_it_lacks():
    with LoneNode() as node:
        node.start(disk_reserve_mib=1)
        assert reason(node) == "template_failed"  # this host has no kernel for it
        node.warden.__exit__()
        wait_for(lambda: reason(node) == "warden_away", "warden is away")
        node.kill()
        os.unlink(node.warden.path)
        with node.warden:
            node.start(disk_reserve_mib=1 << 30)
            said = wait_for(lambda: (r := node.client.ready()) and r["reason"] == "disk_full" and r, "the disk is full")
            assert str(node.data) in said["message"]
