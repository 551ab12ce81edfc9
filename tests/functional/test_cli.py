"""test_cli.py - the `hotcell` command line against a gateway that is played here.

What is asked, how answers and failures are shown, which exit status comes. That the real gateway
answers like this one is what the tests of the server see.
"""

import datetime
import http.server
import json
import os
import pty
import re
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time

import pytest

from warden import build_dir

TEAM = {"teamID": "11111111-2222-3333-4444-555555555555", "name": "acme", "slug": "acme",
        "createdAt": "2026-01-02T03:04:05.000000000Z"}
KEY = {"id": "k-1", "name": "ci", "createdAt": "2026-01-02T03:04:05.000000000Z", "createdBy": None,
       "mask": {"prefix": "e2b_", "valueLength": 40, "maskedValuePrefix": "ab",
                "maskedValueSuffix": "1234"}, "lastUsed": None}


def sandbox(name):
    return {"sandboxID": name, "teamID": TEAM["teamID"], "templateID": "base", "state": "running",
            "startedAt": "2026-01-02T03:04:05Z", "endAt": "2026-01-02T03:09:05Z", "cpuCount": 1,
            "memoryMB": 512, "metadata": {}}


class Played(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """A gateway that answers from a table and remembers what it was asked."""

    daemon_threads = True

    def __init__(self, path):
        self.asked, self.answers = [], {}
        super().__init__(str(path), Handler)

    def handle_error(self, request, client_address):
        """A client that has its answer may go without a word."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def __call__(self, method, target, status, body=None, **headers):
        self.answers[method, target] = status, body, headers


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self):
        return "unix"

    def log_message(self, *_):
        pass

    def answer(self):
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        self.server.asked.append((self.command, self.path, body))
        status, body, headers = self.server.answers.get(
            (self.command, self.path), (404, {"code": 404, "message": "no such thing"}, {}))
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if status != 204:
            self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = do_PATCH = answer


@pytest.fixture
def gateway(tmp_path):
    with Played(tmp_path / "admin.sock") as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        server.socket_path = tmp_path / "admin.sock"
        yield server
        server.shutdown()
        thread.join()


APART = ["unshare", "--net"]  # doctor asks resolvers where no node answers, and support asks doctor: here nobody is there to be asked


def hotcell(gateway, *words, **env):
    path = gateway.socket_path if gateway else "/nonexistent/admin.sock"
    apart = APART if words and words[0] in ("doctor", "support") else []
    return subprocess.run([*apart, build_dir() / "src/cli/hotcell", *words], capture_output=True, text=True,
                          env={**os.environ, "HOTCELL_ADMIN_SOCKET": str(path), **env}, timeout=60)


def test_teams_are_a_table_with_aligned_columns(gateway):
    gateway("GET", "/admin/teams", 200, [TEAM, {**TEAM, "name": "a much longer name"}])
    r = hotcell(gateway, "teams")
    assert r.returncode == 0, r.stderr
    lines = r.stdout.splitlines()
    assert lines[0].split() == ["TEAM", "NAME", "CREATED", "SANDBOXES", "CPUS", "MEMORY", "DISK", "PAUSED"]
    assert len({line.index("2026") for line in lines[1:]} | {lines[0].index("CREATED")}) == 1


def test_json_is_what_the_gateway_said(gateway):
    gateway("GET", "/admin/teams", 200, [TEAM])
    assert json.loads(hotcell(gateway, "teams", "--json").stdout) == [TEAM]


def test_a_team_is_made_and_its_id_is_all_that_is_printed(gateway):
    gateway("POST", "/admin/teams", 201, TEAM)
    assert hotcell(gateway, "teams", "add", "acme").stdout == TEAM["teamID"] + "\n"
    assert gateway.asked == [("POST", "/admin/teams", {"name": "acme"})]


def test_a_name_that_is_taken_says_what_to_do(gateway):
    gateway("POST", "/admin/teams", 409, {"code": 409, "message": "a team named 'acme' exists"})
    r = hotcell(gateway, "teams", "add", "acme")
    assert r.returncode == 1 and "a team named 'acme' exists" in r.stderr
    assert r.stderr.endswith("fix: choose another name: hotcell teams lists them\n")
    gateway("DELETE", "/admin/teams/acme", 409, {"code": 409, "message": "the team has sandboxes: kill them first"})
    assert "fix: see what is in the way: hotcell ps --all" in hotcell(gateway, "teams", "rm", "acme").stderr


@pytest.mark.parametrize("words", [("ps",), ("status",), ("teams", "add", "x"), ("logs", "i"), ("top",), ("templates",), ("lost",)])
def test_who_may_not_use_the_socket_is_told_so(words):
    """It may well run: that it does not is no advice."""
    with tempfile.TemporaryDirectory() as folder:  # 0700, root's
        r = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", build_dir() / "src/cli/hotcell", *words], capture_output=True,
                           text=True, env={**os.environ, "HOTCELL_ADMIN_SOCKET": f"{folder}/admin.sock"}, timeout=60, check=False)
    assert r.returncode == 1 and "Permission denied" in r.stderr, r
    assert "fix: run it as root (sudo), or as the gateway's admin_uid\n" in r.stderr, r.stderr


def test_a_key_alone_is_on_standard_output(gateway):
    gateway("POST", "/admin/teams/acme/keys", 201, {**KEY, "key": "e2b_" + "0" * 40})
    r = hotcell(gateway, "keys", "add", "acme", "ci")
    assert r.stdout == "e2b_" + "0" * 40 + "\n"
    assert "once" in r.stderr


def test_keys_of_every_team(gateway):
    gateway("GET", "/admin/teams", 200, [TEAM])
    gateway("GET", f"/admin/teams/{TEAM['teamID']}/keys", 200, [KEY])
    assert re.search(r"k-1 .*ci .*ab .*1234 .*2026", hotcell(gateway, "keys").stdout)
    keys = json.loads(hotcell(gateway, "keys", "--json").stdout)
    assert keys == [{**KEY, "teamID": TEAM["teamID"]}]


def test_what_is_typed_cannot_change_the_address(gateway):
    gateway("DELETE", "/admin/teams/a%2F..%2Fb%20c%3Fd", 204)
    assert hotcell(gateway, "teams", "rm", "a/../b c?d").returncode == 0
    assert gateway.asked == [("DELETE", "/admin/teams/a%2F..%2Fb%20c%3Fd", None)]


def test_ps_follows_the_pages(gateway):
    gateway("GET", "/admin/sandboxes?state=running", 200, [sandbox("a1"), sandbox("a2")], X_Next_Token="x+/=")
    gateway("GET", "/admin/sandboxes?state=running&nextToken=x%2B%2F%3D", 200, [sandbox("a3")])
    lines = hotcell(gateway, "ps").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["SANDBOX", "a1", "a2", "a3"]


def test_ps_all_shows_paused_ones(gateway):
    gateway("GET", "/admin/sandboxes", 200, [sandbox("a1"), {**sandbox("a2"), "state": "paused"}], X_Next_Token="t")
    gateway("GET", "/admin/sandboxes?nextToken=t", 200, [sandbox("a3")])
    lines = hotcell(gateway, "ps", "--all").stdout.splitlines()
    assert [line.split()[3] for line in lines] == ["STATE", "running", "paused", "running"]


@pytest.mark.parametrize("word, done", [("pause", "paused"), ("resume", "resumed")])
def test_pause_and_resume(gateway, word, done):
    gateway("POST", f"/admin/sandboxes/a1/{word}", 204 if word == "pause" else 201, None if word == "pause" else {})
    gateway("POST", f"/admin/sandboxes/a2/{word}", 409, {"code": 409, "message": "it is so already"})
    r = hotcell(gateway, word, "a1", "a2")
    assert r.returncode == 1 and r.stdout == f"{done} a1\n"
    assert "a2" in r.stderr and "it is so already" in r.stderr
    assert json.loads(hotcell(gateway, word, "a1", "--json").stdout) == {done: ["a1"]}


def test_resume_from_the_disk(gateway):
    gateway("POST", "/admin/sandboxes/a1/resume", 201, {})
    gateway("POST", "/admin/sandboxes/a2/resume", 412, {"code": 412, "message": "cpu_model", "reason": "saved_elsewhere"})
    assert hotcell(gateway, "resume", "--boot", "a1").stdout == "resumed a1\n"
    assert gateway.asked[-1][2] == {"memory": False}
    r = hotcell(gateway, "resume", "a2")
    assert r.returncode == 1 and "cpu_model" in r.stderr and "fix: " in r.stderr and "hotcell resume --boot" in r.stderr
    assert gateway.asked[-1][2] == {"memory": True}
    assert hotcell(gateway, "pause", "--boot", "a1").returncode == 2


ENDED = {"sandboxID": "a1", "teamID": "t", "templateID": "base", "startedAt": "2026-01-02T03:04:05Z",
         "endedAt": "2026-01-02T03:09:05Z", "reason": "oom_guest"}


def test_forks(gateway):
    copies = [{"sandbox": sandbox("i1")}, {"error": {"code": 429, "message": "no more room"}}, {"sandbox": sandbox("i2")}]
    gateway("POST", "/admin/sandboxes/i0/fork", 201, copies)
    r = hotcell(gateway, "fork", "i0", "--count", "3")
    assert r.returncode == 1 and r.stdout == "i1\ni2\n" and "no more room" in r.stderr
    assert gateway.asked == [("POST", "/admin/sandboxes/i0/fork", {"count": 3})]
    assert json.loads(hotcell(gateway, "fork", "i0", "--json").stdout) == copies
    assert gateway.asked[-1][2] == {"count": 1}
    gateway("POST", "/admin/sandboxes/i0/fork", 201, [{"sandbox": sandbox("i\x1b[2J")}])
    assert "\x1b" not in hotcell(gateway, "fork", "i0").stdout


def test_what_is_lost_is_shown_restored_and_dropped(gateway):
    row = {"id": "i1", "kind": "sandbox", "since": "2026-01-02T03:04:05Z", "until": "2026-01-09T03:04:05Z", "bytes": 5,
           "described": True, "folder": "20260102t030405z-sandbox-i1"}
    gateway("GET", "/admin/lost", 200, [row])
    for command in (["lost"], ["lost", "list"]):
        assert re.search(r"i1 +sandbox +2026-01-02.* 2026-01-09.* 5 B +yes", hotcell(gateway, *command).stdout)
    assert json.loads(hotcell(gateway, "--json", "lost").stdout) == [row]
    gateway("POST", "/admin/lost/i1/restore", 204)
    gateway("DELETE", "/admin/lost/i1", 204)
    assert json.loads(hotcell(gateway, "--json", "lost", "restore", "i1").stdout) == {"restored": ["i1"]}
    assert json.loads(hotcell(gateway, "--json", "lost", "drop", "i1").stdout) == {"dropped": ["i1"]}
    gateway("POST", "/admin/lost/i1/restore", 503, {"code": 503, "message": "mounted?", "reason": "files_missing"})
    r = hotcell(gateway, "lost", "restore", "i1")
    assert r.returncode == 1 and "mount the disk" in r.stderr


@pytest.mark.parametrize("node, verdict, said", [
    ({}, "ok", "what is saved has its files"),
    ({"lost": 2, "lostBytes": 3 << 20}, "warn", "2 folders are set aside, for a week or a day: 3 MiB"),
    ({"lost": 2, "unloaded": [{"id": "i1", "kind": "sandbox", "why": "it is damaged"}]}, "FAIL",
     "1 saved sandboxes and snapshots could not be loaded; sandbox i1: it is damaged"),
    ({"savedElsewhere": 3}, "warn", "3 paused sandboxes were saved with another QEMU: their memory does not fit this one"),
    ({"filesMissing": 4}, "FAIL", "the files of 4 paused sandboxes and snapshots are not there"),
    ({"lost": 2, "filesMissing": 4, "unloaded": [{"id": "i1", "kind": "sandbox", "why": "it is damaged"}]}, "FAIL",
     "the files of 4 paused sandboxes and snapshots are not there; nothing was deleted; 2 folders are set aside, for a week or a day: "
     "0 MiB; 1 saved sandboxes and snapshots could not be loaded; sandbox i1: it is damaged")])
def test_doctor_knows_what_is_lost_or_missing(gateway, node, verdict, said):
    gateway("GET", "/admin/status", 200, {"gateway": {}, "node": {"warden": True, "egress": True, **node}})
    found = {c["check"]: c for c in json.loads(hotcell(gateway, "doctor", "--json").stdout)}["saved"]
    assert found["verdict"] == verdict and said in found["found"], found


@pytest.mark.parametrize("states, verdict, said", [
    (["ready"], "ok", "none is known to be damaged"),
    (["building"], "ok", "none is known to be damaged"),
    (["error"], "FAIL", "no sandbox can be made of it; t0: why t0"),
    (["ready", "damaged"], "warn", "1 damaged or missing; t1: why t1"),
    (["ready", "missing, in use", "damaged"], "FAIL", "2 damaged or missing; t1: why t1; t2: why t2"),
    (["error", "damaged"], "FAIL", "1 damaged or missing; t0: why t0; t1: why t1")])
def test_doctor_names_templates_that_are_no_use(gateway, states, verdict, said):
    gateway("GET", "/admin/status", 200, {"gateway": {}, "node": {"warden": True, "egress": True}})
    gateway("GET", "/admin/templates", 200, [
        {"templateID": f"t{n}", "buildStatus": state.split(",")[0], "inUse": "in use" in state, "message": f"why t{n}"}
        for n, state in enumerate(states)])
    found = {c["check"]: c for c in json.loads(hotcell(gateway, "doctor", "--json").stdout)}["templates"]
    assert found["verdict"] == verdict and said in found["found"], found


NOT_THERE = "inactive dead 0 0 no"
MADE = "inactive dead 0 7 yes"


@pytest.mark.parametrize("browser, desktop, verdict, said", [
    (None, None, "ok", "not known: systemd does not answer"),
    (NOT_THERE, NOT_THERE, "ok", "no package with a template is installed"),
    ("inactive dead 0 7 no", MADE, "ok", "desktop is made"),
    ("activating start 0 7 yes", MADE, "ok", "browser is being made; desktop is made"),
    ("activating auto-restart 0 7 yes", MADE, "FAIL", "browser could not be made, and is tried again (failures so far: 1); desktop is made"),
    ("activating start 3 7 yes", NOT_THERE, "FAIL", "browser could not be made, and is tried again (failures so far: 3)"),
    (MADE, "failed failed 0 7 yes", "FAIL", "browser is made; desktop could not be made"),
    ("activating auto-restart-queued 3 7 yes", "failed failed 0 7 yes", "FAIL", "browser could not be made, and is tried again (failures so far: 4); desktop could not be made")])
def test_doctor_knows_how_the_templates_of_packages_are_made(gateway, tmp_path, browser, desktop, verdict, said):
    """By their units, whose states, restarts, time of the last look and condition these are; None: nobody can be asked."""
    systemctl = tmp_path / "systemctl"
    systemctl.write_text("#!/bin/sh\nfor last; do :; done\ncase $last in\n" + "".join(
        f"hotcell-template@{name}.service) set -- {states or ''} ;;\n" for name, states in (("code-interpreter-v1", browser and NOT_THERE), ("browser", browser), ("desktop", desktop))) +
        "esac\n[ $# = 5 ] || { echo 'not booted with systemd'; exit 1; }\n"
        "printf '%s\\n' ActiveState=$1 SubState=$2 Result=x NRestarts=$3 ConditionTimestampMonotonic=$4 ConditionResult=$5\n")
    systemctl.chmod(0o755)
    gateway("GET", "/admin/status", 200, {"gateway": {}, "node": {"warden": True, "egress": True}})
    found = {c["check"]: c for c in json.loads(hotcell(gateway, "doctor", "--json", PATH=f"{tmp_path}:{os.environ['PATH']}").stdout)}["template-units"]
    assert found["verdict"] == verdict and found["found"] == said, found
    failed = "browser" if "browser could" in said else "desktop"
    assert verdict == "ok" or f"journalctl -u hotcell-template@{failed} " in found["fix"], found


def of_team(state, message):
    return {"templateID": "t1", "teamID": "team1", "namespace": "acme", "name": "web", "build": {"status": "ready"},
            "refreeze": {"buildID": "b1", "state": state, "message": message}}


@pytest.mark.parametrize("state, verdict", [("freezing again", "ok"), ("not frozen again", "warn")])
def test_templates_that_are_frozen_again(gateway, state, verdict):
    gateway("GET", "/admin/status", 200, {"gateway": {}, "node": {"warden": True, "egress": True}})
    gateway("GET", "/admin/templates", 200, [of_team(state, "exit status 4")])
    said = hotcell(gateway, "templates").stdout
    assert f"\nacme/web:\n  {state}: exit status 4\n" in said, said
    found = {c["check"]: c for c in json.loads(hotcell(gateway, "doctor", "--json").stdout)}["templates"]
    assert found["verdict"] == verdict, found
    assert verdict == "ok" or "1 could not be frozen again for this QEMU; t1: exit status 4" in found["found"], found


def test_snapshots_and_what_keeps_them(gateway):
    row = {"snapshotID": "abc", "teamID": "t", "name": "work", "tag": "v1", "sandboxID": "i0", "parentID": "base-1",
           "createdAt": "2026-01-02T03:04:05Z", "memoryBytes": 5, "diskBytes": 6, "sandboxes": 2, "hidden": False,
           "keptBy": ["i1", "i2"]}
    gateway("GET", "/admin/snapshots", 200, [row])
    assert re.search(r"abc +t +work +v1 +i0 +base-1 +\d+d \d+h ago +5 B +6 B +2", hotcell(gateway, "snapshots").stdout)
    assert json.loads(hotcell(gateway, "snapshots", "--json").stdout) == [row]
    gateway("GET", "/admin/snapshots?name=abc", 200, [{**row, "why": ["sandbox i1, made of it, runs", "a\x1b[2J"]}])
    assert hotcell(gateway, "snapshots", "abc").stdout.splitlines()[1:] == ["sandbox i1, made of it, runs", "a?[2J"]
    gateway("GET", "/admin/snapshots?name=none", 200, [])
    r = hotcell(gateway, "snapshots", "none")
    assert r.returncode == 1 and "no snapshot none" in r.stderr


def test_what_ended_and_why(gateway):
    gateway("GET", "/admin/ended", 200, [ENDED])
    assert re.search(r"a1 .*\d+d \d+h ago +oom_guest", hotcell(gateway, "ended").stdout)
    assert json.loads(hotcell(gateway, "ended", "--json").stdout) == [ENDED]
    gateway("GET", "/admin/sandboxes/a1/why", 200, {**ENDED, "state": "ended"})
    gateway("GET", "/admin/sandboxes/a2/why", 200, {"sandboxID": "a2", "state": "paused", "pausedAt": "2026-01-02"})
    gateway("GET", "/admin/sandboxes/a3/why", 200, {"sandboxID": "a3", "state": "running", "endAt": "2026-01-03"})
    why = "a1 ended 2026-01-02T03:09:05Z: oom_guest (its own memory was full)\n"
    assert hotcell(gateway, "why", "a1").stdout == why
    assert hotcell(gateway, "why", "a2").stdout == "a2 is paused since 2026-01-02\n"
    assert hotcell(gateway, "why", "a3").stdout == "a3 is running, until 2026-01-03\n"
    assert json.loads(hotcell(gateway, "why", "a1", "--json").stdout)["reason"] == "oom_guest"
    assert hotcell(gateway, "why", "a4").returncode == 1


def test_limits_of_a_key(gateway):
    limits = {"sandboxes": 3, "vcpus": None, "memoryMB": 512, "diskMB": None, "paused": 9}
    gateway("PATCH", "/admin/keys/k-1/limits", 200, {**KEY, "limits": limits})
    r = hotcell(gateway, "keys", "limits", "k-1", "--sandboxes", "3", "--memory", "512", "--vcpus", "0",
                "--paused", "9")
    assert r.returncode == 0, r.stderr
    assert gateway.asked == [("PATCH", "/admin/keys/k-1/limits",
                              {"sandboxes": 3, "vcpus": 0, "memoryMB": 512, "paused": 9})]
    assert r.stdout.splitlines()[1].split()[-7:] == ["3", "-", "512", "MiB", "-", "9", "-"]
    assert json.loads(hotcell(gateway, "keys", "limits", "k-1", "--json").stdout)["limits"] == limits
    assert gateway.asked[-1][2] == {}


def test_limits_of_a_team(gateway):
    limits = {"sandboxes": 3, "vcpus": None, "memoryMB": None, "diskMB": 512, "paused": None}
    gateway("PATCH", "/admin/teams/acme/limits", 200, {**TEAM, "limits": limits})
    r = hotcell(gateway, "teams", "limits", "acme", "--sandboxes", "3", "--disk", "512", "--paused", "0")
    assert r.returncode == 0, r.stderr
    assert gateway.asked == [("PATCH", "/admin/teams/acme/limits", {"sandboxes": 3, "diskMB": 512, "paused": 0})]
    assert r.stdout.splitlines()[1].split()[-6:] == ["3", "-", "-", "512", "MiB", "-"]
    assert json.loads(hotcell(gateway, "teams", "limits", "acme", "--json").stdout)["limits"] == limits
    gateway("GET", "/admin/teams", 200, [{**TEAM, "limits": limits}])
    assert hotcell(gateway, "teams").stdout.splitlines()[1].split()[-6:] == ["3", "-", "-", "512", "MiB", "-"]
    r = hotcell(gateway, "teams", "limits", "nobody")
    assert r.returncode == 1 and r.stdout == ""


def test_rotate_prints_the_new_key_alone(gateway):
    gateway("POST", "/admin/keys/k-1/rotate", 201, {**KEY, "key": "e2b_" + "0" * 40})
    r = hotcell(gateway, "keys", "rotate", "k-1")
    assert r.returncode == 0 and r.stdout == "e2b_" + "0" * 40 + "\n"
    assert "once" in r.stderr
    assert [asked[:2] for asked in gateway.asked] == [("POST", "/admin/keys/k-1/rotate")]
    assert json.loads(hotcell(gateway, "keys", "rotate", "k-1", "--json").stdout)["key"] == "e2b_" + "0" * 40
    r = hotcell(gateway, "keys", "rotate", "k-2")
    assert r.returncode == 1 and r.stdout == "" and "fix: " in r.stderr


def test_services_of_a_key(gateway):
    gateway("PATCH", "/admin/keys/k-1/services", 200, {**KEY, "limits": {}, "services": ["db", "cache"]})
    r = hotcell(gateway, "keys", "services", "k-1", "db", "cache")
    assert r.returncode == 0, r.stderr
    assert r.stdout.splitlines()[1].endswith(" db cache")
    hotcell(gateway, "keys", "services", "k-1")
    hotcell(gateway, "keys", "services", "k-1", "--none")
    assert [body for _, _, body in gateway.asked] == [{"services": ["db", "cache"]}, {}, {"services": []}]


@pytest.mark.parametrize("flags, said", [((), "hotcell: warning: no service db is published\n"),
                                         (("--json",), '{"warning":"no service db is published"}\n')])
def test_a_warning_of_the_server_is_shown(gateway, flags, said):
    gateway("PATCH", "/admin/keys/k-1/services", 200, {**KEY, "limits": {}, "services": ["db"]},
            X_Hotcell_Warning="no service db is published")
    r = hotcell(gateway, "keys", "services", "k-1", "db", *flags)
    assert r.returncode == 0 and r.stderr == said


RULES = {"operator": {"mode": "allowlist", "allow": ["packages"]}, "packages": ["deb.example", "pypi.example"],
         "allowOut": [], "denyOut": ["0.0.0.0/0"], "opened": [],
         "services": [{"name": "db.hotcell.internal", "address": "10.1.2.3", "port": 5432}]}


def test_explain_shows_whose_rules_hold(gateway):
    gateway("GET", "/admin/sandboxes/a1/explain", 200, RULES)
    lines = [line.split() for line in hotcell(gateway, "explain", "a1").stdout.splitlines()]
    assert lines == [["WHOSE", "RULE"], ["operator:", "mode", "allowlist"], ["operator:", "allow", "packages"],
                     ["template:", "packages", "deb.example"], ["template:", "packages", "pypi.example"],
                     ["sandbox:", "allowOut", "-"], ["sandbox:", "denyOut", "0.0.0.0/0"], ["sandbox:", "rules", "-"],
                     ["key:", "services", "db.hotcell.internal:5432"]]
    assert json.loads(hotcell(gateway, "explain", "a1", "--json").stdout) == RULES


def test_explain_answers(gateway):
    answer = {"question": "a.example:443", "allowed": False, "opened": False, "why": "not among the packages"}
    gateway("GET", "/admin/sandboxes/a1/explain?to=a.example%3A443", 200, {**RULES, "answer": answer})
    r = hotcell(gateway, "explain", "a1", "a.example:443")
    assert r.returncode == 0, r.stderr
    assert re.fullmatch(r"a.example:443 +no +no +not among the packages", r.stdout.splitlines()[1])
    assert hotcell(gateway, "explain", "a2").returncode == 1


def test_egress_log(gateway):
    entry = {"at": "2026-01-02T03:04:05.678Z", "kind": "tls", "verdict": "refused", "name": "a.example", "port": 443,
             "why": "not among the packages"}
    gateway("GET", "/admin/sandboxes/a1/egress", 200, [entry])
    r = hotcell(gateway, "egress", "log", "a1")
    assert r.returncode == 0, r.stderr
    assert r.stdout.splitlines()[1].split() == ["2026-01-02T03:04:05.678Z", "tls", "refused", "a.example", "-", "443",
                                                "not", "among", "the", "packages"]
    assert json.loads(hotcell(gateway, "egress", "log", "a1", "--json").stdout) == [entry]


def test_kill_tries_each_and_says_which_failed(gateway):
    gateway("DELETE", "/admin/sandboxes/a1", 204)
    gateway("DELETE", "/admin/sandboxes/a3", 204)
    r = hotcell(gateway, "kill", "a1", "a2", "a3")
    assert r.returncode == 1
    assert r.stdout == "killed a1\nkilled a3\n"
    assert "a2" in r.stderr and "no such thing" in r.stderr and "fix:" in r.stderr


def test_a_name_with_escape_codes_does_not_reach_the_terminal(gateway):
    gateway("GET", "/admin/templates", 200, [{"templateID": "b-1", "alias": "\x1b[2Jx base\x9b2Jé\xa0"}])
    r = hotcell(gateway, "templates")
    assert "\x1b" not in r.stdout and "?[2Jx" in r.stdout
    assert "\x9b" not in r.stdout and "base??2Jé\xa0" in r.stdout, "one character, in two bytes, that begins a sequence"


def test_templates_of_teams_are_beside_the_hosts(gateway):
    host = {"templateID": "base-1", "alias": "base", "cpuCount": 1, "memoryMB": 512, "buildStatus": "ready"}
    team = {"templateID": "t1", "teamID": "team1", "namespace": "acme", "name": "web", "public": False, "buildCount": 3,
            "sandboxes": 2, "build": {"buildID": "b1", "status": "error", "cpuCount": 4, "memoryMB": 1024}}
    gateway("GET", "/admin/templates", 200, [host, team])
    lines = hotcell(gateway, "templates").stdout.splitlines()
    assert lines[0].split() == ["NAME", "PUB", "CPUS", "MIB", "DISK", "BUILD", "POOL", "RUN", "USED"]
    assert lines[1].split() == ["base", "-", "1", "512", "-", "ready", "-", "-", "never"]
    assert lines[2].split() == ["acme/web", "no", "4", "1024", "-", "error", "-", "-", "never"]
    assert json.loads(hotcell(gateway, "templates", "--json").stdout) == [host, team]


def ago(seconds):
    return datetime.datetime.fromtimestamp(time.time() - seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_templates_are_short_enough_for_a_terminal(gateway):
    """Whatever names and numbers there are: 100 columns, and no control."""
    most = {"cpuCount": 16, "memoryMB": 65536, "status": "building", "buildID": "b" * 36}
    team = {"templateID": "t1", "teamID": "team1", "namespace": "acme", "name": "web", "public": True, "running": 10000,
            "tagNames": ["default", "v2"], "diskBytes": 3 << 29, "poolReady": 10, "poolWanted": 10, "poolMemoryMB": 1024,
            "lastSpawnedAt": ago(3 * 3600), "build": most}
    lost = {"templateID": "base-2", "alias": "", "buildStatus": "damaged", "message": "its memory is \x1b[2J\u009b2J damaged " * 9}
    gateway("GET", "/admin/templates", 200, [team, {**team, "namespace": "n" * 63, "name": "m" * 63}, lost])
    said = hotcell(gateway, "templates").stdout
    lines = said.splitlines()
    assert lines[1].split() == ["acme/web:default,v2", "yes", "16", "65536", "1.5G", "building", "10/10", "1024M", "10000", "3h"]
    assert lines[2].startswith("n" * 33 + "~ ") and lines[3].split()[0] == "base-2"
    assert "base-2:\n  its memory is ?[2J" in said and "\x1b" not in said and "\u009b" not in said
    assert max(map(len, lines)) <= 100, said


def test_one_template_with_its_builds_and_what_holds_them(gateway):
    listed = {"templateID": "t1", "teamID": "team1", "namespace": "acme", "name": "web", "public": False, "sandboxes": 3, "running": 2,
              "diskBytes": 5 << 20, "sharedBytes": 7 << 30, "poolReady": 1, "poolWanted": 2, "poolMemoryMB": 65,
              "build": {"cpuCount": 2, "memoryMB": 512, "diskSizeMB": 2048}}
    builds = [{"buildID": "b" * 36, "status": "error", "createdAt": "2026-01-02T03:04:05.000000Z", "finishedAt": "2026-01-02T03:14:05Z",
               "reason": {"message": "step \x1b[2J " * 30, "step": "3"}, "tagNames": [], "why": []},
              {"buildID": "c" * 36, "status": "ready", "createdAt": "2026-01-01T03:04:05.000000Z", "finishedAt": "2026-01-01T03:05:00Z",
               "reason": None, "tagNames": ["default", "a-long-tag"], "diskBytes": 5 << 20, "why": ["sandbox i1, made of it, runs"]}]
    gateway("GET", "/admin/templates", 200, [listed, {**listed, "templateID": "t2", "namespace": "other"}])
    gateway("GET", "/admin/templates/t1", 200, {**listed, "builds": builds})
    for name in ("t1", "acme/web"):
        r = hotcell(gateway, "templates", "show", name)
        assert r.returncode == 0, r.stderr
        for words in ("template +t1", "name +acme/web", "team +team1", "public +no", "sizes +2 vCPUs, 512 MiB", "on disk +5.0M of its own, 7.0G shared",
                      "pool +1/2 65M", "sandboxes +3, of which 2 run", "b{36} +error +2026-01-02T03:04 +10m", "c{36} +ready .* 55s +5.0M .*default a-l",
                      "b{36} failed at step 3:\n  step \\?\\[2J", "c{36} is kept:\n  sandbox i1, made of it, runs"):
            assert re.search(words, r.stdout), (words, r.stdout)
        assert "\x1b" not in r.stdout and max(map(len, r.stdout.splitlines())) <= 100, r.stdout
    assert json.loads(hotcell(gateway, "templates", "show", "t1", "--json").stdout)["builds"] == builds
    two = hotcell(gateway, "templates", "show", "web")
    assert two.returncode == 1 and "2 teams have a template web: say TEAM/NAME" in two.stderr
    assert hotcell(gateway, "templates", "show", "nope").returncode == 1
    gateway("DELETE", "/admin/templates/t2", 204)
    assert hotcell(gateway, "templates", "delete", "other/web").stdout == "deleted t2\n"


def test_base_is_shown_like_any_other(gateway):
    base = {"templateID": "base-1-2", "alias": "base", "cpuCount": 1, "memoryMB": 512, "diskSizeMB": 2048, "buildStatus": "ready", "poolReady": 1,
            "poolWanted": 2, "poolMemoryMB": 65, "diskBytes": 800 << 20, "sandboxes": 4, "running": 3, "snapshots": 7, "lastSpawnedAt": ago(10)}
    gateway("GET", "/admin/templates", 200, [base])
    said = hotcell(gateway, "templates", "show", "base").stdout
    for words in ("template +base-1-2", "the host's", "on disk +800M\n", "used +1[0-9]s ago", "4, of which 3 run", "snapshots +7 differ from it"):
        assert re.search(words, said), (words, said)
    assert json.loads(hotcell(gateway, "templates", "show", "base", "--json").stdout) == base


def test_templates_logs_shows_every_page(gateway):
    lines = [{"timestamp": "2026-01-02T03:04:05Z", "level": "info", "message": f"line {i}", "step": "1"} for i in range(150)]
    lines[7]["message"] = "line " + "x" * 4085 + "end"
    build = {"buildID": "b1", "templateID": "t1", "status": "error", "reason": {"message": "it\x1b[2J failed", "step": "1"}}
    for at in (0, 100, 150):
        gateway("GET", f"/admin/builds/b1?logsOffset={at}&limit=100", 200, {**build, "logEntries": lines[at:at + 100]})
    said = hotcell(gateway, "templates", "logs", "b1").stdout
    assert said.count("line ") == 150 and "xend\n" in said and "it?[2J failed" in said and "\x1b" not in said
    assert json.loads(hotcell(gateway, "templates", "logs", "b1", "--json").stdout)["logEntries"] == lines
    assert hotcell(gateway, "templates", "logs", "b2").returncode == 1


def test_templates_cancel(gateway):
    gateway("DELETE", "/admin/builds/b1", 204)
    assert hotcell(gateway, "templates", "cancel", "b1").stdout == "cancelled b1\n"
    gateway("DELETE", "/admin/templates/t1", 204)
    assert hotcell(gateway, "templates", "delete", "t1").stdout == "deleted t1\n"


def test_status_shows_what_node_says(gateway):
    gateway("GET", "/admin/status", 200, {"gateway": {"connections": 3}, "node": {"running": 7}})
    assert re.search(r"running +7", hotcell(gateway, "status").stdout)


def test_status_and_templates_show_pools(gateway):
    pool = {"name": "work", "templateID": "abc", "teamID": "t", "ready": 1, "starting": 0, "wanted": 3, "allowed": 2, "memoryMB": 64}
    status = {"gateway": {}, "node": {"running": 7, "pools": [pool], "poolMemoryMB": 64, "poolMemoryMaxMB": 1024}}
    gateway("GET", "/admin/status", 200, status)
    said = hotcell(gateway, "status").stdout
    assert re.search(r"poolMemoryMB +64\n +poolMemoryMaxMB +1024", said) and re.search(r"work +abc +t +1 +0 +3 +2 +64", said)
    assert json.loads(hotcell(gateway, "status", "--json").stdout) == status
    gateway("GET", "/admin/templates", 200, [{"templateID": "b-1", "alias": "base", "buildStatus": "ready", "poolReady": 1,
                                              "poolWanted": 2, "poolMemoryMB": 65}])
    assert re.search(r"base .*ready +1/2 65M", hotcell(gateway, "templates").stdout)


def test_an_operator_says_that_they_are_lost(gateway):
    gateway("POST", "/admin/confirm-lost", 200, {"sandboxes": 12})
    assert hotcell(gateway, "confirm-lost").stdout == "12 sandboxes are ended: their VMs are lost\n"
    assert json.loads(hotcell(gateway, "confirm-lost", "--json").stdout) == {"sandboxes": 12}


def test_a_refusal_has_its_own_exit_status(gateway):
    gateway("POST", "/admin/teams", 409, {"code": 409, "message": "the name is taken"})
    r = hotcell(gateway, "teams", "add", "acme", "--json")
    assert r.returncode == 1 and r.stdout == ""
    said = json.loads(r.stderr)
    assert said["error"] == "exists" and "the name is taken" in said["message"] and said["fix"]


def test_no_server_names_component_cause_and_fix():
    r = hotcell(None, "ps")
    assert r.returncode == 3
    assert "gateway: /nonexistent/admin.sock" in r.stderr and "No such file" in r.stderr
    assert "fix:" in r.stderr and "--socket" in r.stderr


# --- what is shown to people -----------------------------------------------------------------

def used(name, cpu, memory, disk, **more):
    return {**sandbox(name), "alias": "base", "usage": {"cpuCount": 2, "cpuUsedPct": cpu, "memUsed": memory << 20, "memTotal": 512 << 20,
                                                       "memCache": 0, "diskUsed": disk << 20, "diskTotal": 10 << 30}, **more}


GREEDY = [used("lazy", 0.5, 30, 700), used("full", 1.0, 480, 20), used("busy", 99.25, 40, 10), sandbox("new")]


@pytest.mark.parametrize("words, order", [
    (["ps", "--usage"], ["full", "busy", "lazy", "new"]), (["ps", "--usage", "--sort", "memory"], ["full", "busy", "lazy", "new"]),
    (["ps", "--usage", "--sort", "cpu"], ["busy", "full", "lazy", "new"]), (["top", "--sort", "disk"], ["lazy", "full", "busy", "new"])])
def test_who_uses_most(gateway, words, order):
    gateway("GET", "/admin/sandboxes?usage=true&state=running", 200, GREEDY)
    gateway("GET", "/admin/teams", 200, [TEAM])
    r = hotcell(gateway, *words)
    assert r.returncode == 0, r.stderr
    lines = r.stdout.splitlines()
    assert lines[0].split() == ["SANDBOX", "TEAM", "TEMPLATE", "STATE", "CPU", "MEMORY", "OF", "DISK"]
    assert [line.split()[0] for line in lines[1:]] == order and max(map(len, lines)) <= 100
    assert re.search(r"^busy +acme +base +running +198\.5% +40 MiB +512 MiB +10 MiB$", r.stdout, re.M)
    assert re.search(r"^new +acme +base +running +- +- +- +-$", r.stdout, re.M)
    assert len(gateway.asked) == 2  # one for all sandboxes, one for the names of teams
    assert [row["sandboxID"] for row in json.loads(hotcell(gateway, *words, "--json").stdout)] == order


def test_paused_sandboxes_have_no_end_and_teams_have_names(gateway):
    soon = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=5)).isoformat()
    gateway("GET", "/admin/sandboxes", 200, [{**sandbox("runs"), "endAt": soon}, {**sandbox("rests"), "state": "paused"},
                                             {**sandbox("stuck"), "stalled": "disk_full", "teamID": "other"}])
    gateway("GET", "/admin/teams", 200, [TEAM])
    text = hotcell(gateway, "ps", "--all").stdout
    assert re.search(r"^runs +acme +base +running +1 +512 MiB +\d+d \d+h ago +in [45]m \d+s$", text, re.M), text
    assert re.search(r"^rests +acme +base +paused .* when killed$", text, re.M) and re.search(r"^stuck +other +base +stalled: disk_full ", text, re.M)
    assert max(map(len, text.splitlines())) <= 100


def test_top_draws_again_and_leaves_the_terminal_as_it_was(gateway):
    gateway("GET", "/admin/sandboxes?usage=true&state=running", 200, GREEDY)
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(HOTCELL_ADMIN_SOCKET=str(gateway.socket_path), TERM="xterm")
        os.environ.pop("NO_COLOR", None)
        os.execv(build_dir() / "src/cli/hotcell", ["hotcell", "top"])
    seen, end, keys = b"", time.monotonic() + 30, [(rb"by memory;.*\r\nfull", b"c"), (rb"by cpu;.*\r\nbusy", b"q")]
    while time.monotonic() < end:
        if keys and re.search(keys[0][0], seen, re.S):
            os.write(fd, keys.pop(0)[1])
        try:
            seen += os.read(fd, 65536)
        except OSError:
            break
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0 and not keys, seen
    os.close(fd)
    assert seen.startswith(b"\x1b[?1049h") and seen.endswith(b"\x1b[?25h\x1b[?1049l") and b"\x1b[1mhotcell top" in seen


def event(second, message, **more):
    return {"timestamp": f"2026-01-02T03:04:{second:02d}.500000Z", "level": "info", "message": message, "fields": {}, **more}


def test_logs_are_printed_and_followed_to_the_end(gateway):
    first = "/admin/sandboxes/i1/logs?direction=forward&cursor=0"
    gateway("GET", first, 200, {"logs": [event(5, "Sandbox created"), event(6, "bad \x1b[2J")]})
    r = hotcell(gateway, "logs", "i1")
    assert r.stdout == "2026-01-02T03:04:05.500000Z  info   Sandbox created\n2026-01-02T03:04:06.500000Z  info   bad ?[2J\n"
    assert [json.loads(line)["message"] for line in hotcell(gateway, "logs", "i1", "--json").stdout.splitlines()][0] == "Sandbox created"
    gateway("GET", first.replace("cursor=0", "cursor=1767323046500"), 200, {"logs": [event(6, "bad \x1b[2J"), event(7, "Sandbox paused")]})
    r = hotcell(gateway, "logs", "-f", "i1")  # then it is gone: 404
    assert [line.split(None, 2)[2] for line in r.stdout.splitlines()] == ["Sandbox created", "bad ?[2J", "Sandbox paused"]
    assert r.returncode == 0 and "no more" in r.stderr


@pytest.mark.parametrize("words", [["ended"], ["ended", "--json"], ["--help"], ["ps", "--usage", "--all"]])
def test_a_reader_that_goes_hears_no_complaint(gateway, words):
    many = [{**used(f"i{n:020d}", 1, 2, 3), "endedAt": TEAM["createdAt"], "reason": "killed"} for n in range(2000)]
    for path in ("/admin/ended", "/admin/sandboxes?usage=true"):
        gateway("GET", path, 200, many)
    p = subprocess.Popen([build_dir() / "src/cli/hotcell", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env={**os.environ, "HOTCELL_ADMIN_SOCKET": str(gateway.socket_path)})
    p.stdout.close()
    assert p.stderr.read() == b"" and p.wait(60) in (0, 141, -signal.SIGPIPE)
    p.stderr.close()


# --- a support bundle ---------------------------------------------------------------------------

SECRETS = {
    "key": "e2b_" + "0123456789abcdef" * 2 + "01234567", "short_key": "e2b_deadbeef1", "token": "q7Zx-9dLm_3kPw0RtYb2VnHc5JsAe8Gf", "password": "hunter2", "pass word": "correct horse",
    "basic": "dXNlcjpwYXNzd29yZDEyMw==", "hex": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "url": "geheim99", "pem": "MC4CAQAwBQYDK2VwBCIEIJ",
}
PLANTED = f"""# a comment
listen = 127.0.0.1:3000
api_key = {SECRETS["key"]}
access_token={SECRETS["token"]}
registry_password = "{SECRETS["pass word"]}"
proxy = http://me:{SECRETS["url"]}@proxy.example:3128/path
said {SECRETS["short_key"]} once, and {SECRETS["hex"]}
Authorization: Basic {SECRETS["basic"]}
{{"password":"{SECRETS["password"]}","x-access-token": "{SECRETS["token"]}","sealed":{{"db":"{SECRETS["hex"]}"}}}}
-----BEGIN PRIVATE KEY-----
{SECRETS["pem"]}{"A" * 30}
-----END PRIVATE KEY-----
key_file = /etc/hotcell/tls/privkey.pem
"""


def test_a_support_bundle_has_no_secret(gateway, tmp_path):
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "gateway.conf").write_text(PLANTED)
    (conf / "seal.key").write_text(SECRETS["hex"])
    (conf / "other.conf").symlink_to("/etc/shadow")
    planted = {**sandbox("i1"), "alias": SECRETS["key"], "metadata": {"token": SECRETS["password"]}}
    gateway("GET", "/admin/sandboxes", 200, [planted])
    gateway("GET", "/admin/status", 200, {"gateway": {"note": PLANTED, "api_key": SECRETS["short_key"], "domain": "box.test"}, "node": None})
    gateway("GET", "/admin/ended", 200, [{**ENDED, "reason": f"token {SECRETS['token']}"}])
    file = tmp_path / "bundle.txt"
    r = hotcell(gateway, "support", "--conf", str(conf), str(file))
    assert r.returncode == 0 and r.stdout == f"{file}\n", r.stderr
    text = file.read_text()
    assert [name for name, secret in SECRETS.items() if secret in text] == []
    assert file.stat().st_mode & 0o777 == 0o600
    for kept in ("listen = 127.0.0.1:3000", "key_file = /etc/hotcell/tls/privkey.pem", "http://[redacted]@proxy.example:3128/path", "==== hotcell doctor --json",
                 "==== hotcell ps --all", "i1", "box.test", "[redacted: a private key]", "==== gateway.conf", "PRETTY_NAME"):
        assert kept in text, kept
    assert "root:" not in text and "seal.key" not in text.split("==== gateway.conf")[1]
    again = hotcell(gateway, "support", "--conf", str(conf), str(file))
    assert again.returncode == 1 and "fix:" in again.stderr and file.read_text() == text
    assert "[redacted]" in hotcell(gateway, "support", "--conf", str(conf), "-").stdout


@pytest.mark.parametrize("words", [[], ["nope"], ["kill"], ["ps", "--sort", "cpu"], ["ps", "--usage", "--sort", "age"], ["top", "x"], ["logs"], ["ps", "-f"], ["ps", "x"], ["teams", "add"], ["templates", "logs"], ["templates", "show"], ["templates", "delete"], ["templates", "logs", "a", "b"], ["templates", "x"],
                                   ["--nope"], ["ps", "--leaks"], ["pause"], ["resume"], ["why"], ["ended", "x"], ["fork"],
                                   ["fork", "i", "--count", "x"], ["ps", "--count", "2"], ["snapshots", "x", "y"], ["lost", "find"], ["lost", "drop"],
                                   ["kill", "--all", "a"], ["ps", "--sandboxes", "1"], ["keys", "--disk", "1"],
                                   ["keys", "limits", "k", "--vcpus", "many"],
                                   ["teams", "limits", "t", "--vcpus", "many"], ["teams", "limits"], ["teams", "--disk", "1"],
                                   ["keys", "rotate", "k", "more"], ["keys", "rotate", "k", "--disk", "1"], ["explain"], ["explain", "a", "b", "c"], ["tls"], ["ps", "--tls-dir", "/x"],
                                   ["egress"], ["egress", "a"], ["confirm-lost", "x"], ["keys", "--none"], ["run"], ["run", "a.py", "b.py"], ["exec", "i"], ["ps", "--lang", "r"], ["ps", "--keep"], ["exec", "i", "1", "--keep"], ["exec", "i", "1", "--sandbox", "j"],
                                   ["exec", "i", "1", "--lang", "r", "--context", "c"], ["run", "a.py", "--env", "=x"], ["run", "a.py", "--env", "x"], ["run", "a.py", "--timeout", "soon"],
                                   ["run", "a.py", "--sandbox", "i", "--keep"], ["run", "a.py", "--context", "c"], ["keys", "services", "k", "db", "--none"], ["doctor", "--uids", "x"], ["doctor", "--before", "--leaks"], ["ps", "--before"], ["browser"], ["browser", "i", "j"]])
def test_wrong_usage(words):
    r = hotcell(None, *words)
    assert r.returncode == 2 and "hotcell" in r.stderr and r.stdout == ""


def test_version():
    assert re.fullmatch(r"hotcell \d+\.\d+\.\d+\n", hotcell(None, "--version").stdout)


def test_doctor_has_a_verdict_and_a_fix_for_every_check():
    checks = {c["check"]: c for c in json.loads(hotcell(None, "doctor", "--json").stdout)}
    assert {"accelerator", "kernel", "cgroups", "descriptors", "disk", "qemu", "nft", "clock", "dns", "ports", "limits", "folders", "users"} <= set(checks)
    assert all(c["verdict"] == "ok" or c["fix"] for c in checks.values())


def test_doctor_fails_when_the_server_does_not_answer(tmp_path):
    """Somebody said where it is, or it is installed; the exit status is that of every command."""
    r = hotcell(None, "doctor")
    assert r.returncode == 3 and re.search("^FAIL  server .*does not answer.*No such file", r.stdout, re.M), r.stdout
    status, found = doctor_of(tmp_path, f"data_dir = {tmp_path}\n")
    assert status == 3 and found["server"]["verdict"] == "FAIL" and "systemctl start hotcell.target" in found["server"]["fix"], found["server"]


def doctor_of(conf, text):
    """Of an installation at the usual places but for what `text` says, which does not run."""
    (conf / "node.conf").write_text(text)
    r = subprocess.run([*APART, build_dir() / "src/cli/hotcell", "doctor", "--conf", str(conf), "--json"], capture_output=True, text=True, check=False,
                       env={k: v for k, v in os.environ.items() if k != "HOTCELL_ADMIN_SOCKET"}, timeout=60)
    return r.returncode, {c["check"]: c for c in json.loads(r.stdout)}


def test_doctor_of_an_installation_that_was_never_started_names_setup(tmp_path):
    """What only a start makes is not called missing."""
    status, found = doctor_of(tmp_path, "disk = /nowhere/base.raw\n")
    assert status == 3 and found["server"]["verdict"] == "FAIL" and "hotcell setup" in found["server"]["fix"], found["server"]
    assert {"kernel", "disk", "clock", "ports"} <= set(found) and not {"guest", "image-rules", "journal", "names"} & set(found)


@pytest.mark.parametrize("words", [["--before"], []])
def test_doctor_before_an_installation_looks_at_the_host_alone(words, tmp_path):
    env = {k: v for k, v in os.environ.items() if k != "HOTCELL_ADMIN_SOCKET"}
    r = subprocess.run([*APART, build_dir() / "src/cli/hotcell", "doctor", "--json", "--conf", str(tmp_path / "none"), *words], capture_output=True, text=True, check=False,
                       env=env, timeout=60)
    found = {c["check"]: c for c in json.loads(r.stdout)}
    assert found["server"]["verdict"] == "ok" and "the host alone" in found["server"]["found"]
    assert {"kernel", "disk", "clock", "ports"} <= set(found) and not {"journal", "users", "tls", "registries"} & set(found)
    assert r.returncode == (1 if any(c["verdict"] == "FAIL" for c in found.values()) else 0)


def test_doctor_judges_package_hosts_as_egress_does(gateway):
    gateway("GET", "/admin/status", 200, {"gateway": {}, "node": {"warden": True, "egress": True}})
    gateway("GET", "/admin/explain", 200, {"packages": ["a.example", "b.example"]})
    gateway("GET", "/admin/explain?to=a.example", 200, {"answer": {"allowed": True, "why": "packages"}})
    gateway("GET", "/admin/explain?to=b.example", 200, {"answer": {"allowed": False, "why": "the address is private"}})
    found = {c["check"]: c for c in json.loads(hotcell(gateway, "doctor", "--json").stdout)}["dns"]
    assert found["verdict"] == "warn" and found["found"] == "b.example: the address is private" and "resolvers" in found["fix"], found
    gateway("GET", "/admin/explain?to=b.example", 200, {"answer": {"allowed": True, "why": "packages"}})
    assert re.search("^ok    dns .*their 2 package hosts", hotcell(gateway, "doctor").stdout, re.M)


@pytest.mark.parametrize("node, said", [
    (None, "node does not answer"), ({"warden": False, "egress": True}, "warden does not answer"),
    ({"warden": True, "egress": False}, "egress does not answer"), ({"warden": True, "egress": True}, "all daemons answer")])
def test_doctor_says_which_daemon_is_gone(gateway, node, said):
    gateway("GET", "/admin/status", 200, {"gateway": {}, "node": node})
    found = {c["check"]: c for c in json.loads(hotcell(gateway, "doctor", "--json").stdout)}["server"]
    assert found["verdict"] == ("ok" if "all" in said else "FAIL")
    assert said in json.dumps(found)


@pytest.mark.parametrize("status, verdict, said", [
    ({"domain": None}, "warn", "domain is not set"), ({}, "warn", "domain is not set"),
    ({"domain": "hotcell.localhost:8443"}, "ok", "PORT-ID.hotcell.localhost:8443")])
def test_doctor_says_whether_names_are_set(gateway, status, verdict, said):
    gateway("GET", "/admin/status", 200, {"gateway": status, "node": {"warden": True, "egress": True}})
    found = {c["check"]: c for c in json.loads(hotcell(gateway, "doctor", "--json").stdout)}["names"]
    assert found["verdict"] == verdict and said in found["found"]
    assert verdict == "ok" or "hotcell tls init" in found["fix"]
DAY = 86400


def certificate(left=90 * DAY, refused=None, served=True):
    return {"name": "a.example", "served": served, "names": ["a.example"], "secondsLeft": left, "refused": refused}


@pytest.mark.parametrize("tls, verdict, said", [
    (None, "ok", "not spoken"),
    ({"signer": True, "certificates": [certificate()]}, "ok", "1 certificates are served"),
    ({"signer": True, "certificates": [certificate(13 * DAY)]}, "warn", "a.example expires in 13 days"),
    ({"signer": True, "certificates": [certificate(15 * DAY)]}, "ok", "served"),
    ({"signer": True, "certificates": [certificate(-1)]}, "FAIL", "a.example expired"),
    ({"signer": True, "certificates": [certificate(refused="it has no key")]}, "warn", "it has no key"),
    ({"signer": True, "certificates": [certificate(0, "it has no key", False)]}, "FAIL", "it has no key"),
    ({"signer": True, "certificates": []}, "FAIL", "there is no certificate"),
    ({"signer": False, "certificates": [certificate()]}, "FAIL", "signer does not answer")])
def test_doctor_looks_at_certificates(gateway, tls, verdict, said):
    gateway("GET", "/admin/status", 200, {"gateway": {}, "node": None, "tls": tls})
    found = {c["check"]: c for c in json.loads(hotcell(gateway, "doctor", "--json").stdout)}["tls"]
    assert found["verdict"] == verdict and said in found["found"]
    assert verdict == "ok" or found["fix"]


def test_of_a_node_that_does_not_answer_doctor_knows_nothing(gateway):
    """Neither good nor bad."""
    gateway("GET", "/admin/status", 200, {"gateway": {}, "node": None})
    gateway("GET", "/admin/templates", 200, [])
    found = {c["check"]: c for c in json.loads(hotcell(gateway, "doctor", "--json").stdout)}
    for check in ("journal", "vms", "saved", "templates"):
        assert found[check]["verdict"] == "warn" and "not known" in found[check]["found"], found[check]


@pytest.mark.parametrize("images, verdict, said", [
    (True, "ok", "answers, build 1.2"), (False, "FAIL", "does not answer"), (None, "ok", "none is wanted")])
def test_doctor_says_whether_images_can_be_fetched(gateway, images, verdict, said):
    node = {"warden": True, "egress": True, "images": images, "buildsRunning": 1, "buildsMax": 2, "buildsWaiting": 3,
            "steps": 4, "stepsBytes": 5 << 20, "stepsMaxBytes": 20 << 30, "grounds": 6, "groundsBytes": 7 << 30}
    gateway("GET", "/admin/status", 200, {"gateway": {}, "node": node, "versions": {"images": "1.2"}})
    found = {c["check"]: c for c in json.loads(hotcell(gateway, "doctor", "--json").stdout)}
    assert found["images"]["verdict"] == verdict and said in found["images"]["found"] and (verdict == "ok" or found["images"]["fix"]), found
    assert found["builds"]["found"] == ("1 run (at most 2), 3 wait; 4 steps take 5 of 20480 MiB; "
                                        "6 images that were booted take 7168 MiB"), found["builds"]


def doctor(gateway, conf):
    """In the network of this test, whose loopback has registries; nobody answers for names there."""
    settings = conf.parent / "conf"
    settings.mkdir(exist_ok=True)
    (settings / "egress.conf").write_text("resolvers = 127.0.0.1:9\n")
    r = subprocess.run([build_dir() / "src/cli/hotcell", "doctor", "--json", "--conf", settings, "--images-conf", conf], capture_output=True, text=True,
                       env={**os.environ, "HOTCELL_ADMIN_SOCKET": str(gateway.socket_path)}, timeout=60)
    return {c["check"]: c for c in json.loads(r.stdout)}


def test_doctor_looks_at_registries_that_are_configured_and_no_others(gateway, tmp_path):
    conf = tmp_path / "images.conf"
    found = doctor(gateway, conf)
    for check in ("skopeo", "image-store", "image-rules", "registries"):
        assert found[check]["verdict"] == "ok" and "not wanted" in found[check]["found"], found[check]
    conf.write_text(f"user = nobody\ndata_dir = {tmp_path}\nreserve_mib = 0\nimage_mib = 1\n")
    found = doctor(gateway, conf)
    assert found["registries"]["found"] == "none is configured: none was looked at"
    assert found["skopeo"]["found"].startswith("skopeo version"), found["skopeo"]
    assert found["image-store"]["verdict"] == "ok" and str(tmp_path) in found["image-store"]["found"], found["image-store"]
    assert found["image-rules"]["verdict"] == "FAIL" and found["image-rules"]["fix"], "nobody made rules for this user"
    with socket.create_server(("127.0.0.1", 0)) as there, socket.create_server(("127.0.0.1", 0)) as gone:
        there.settimeout(10)
        host, closed = (f"127.0.0.1:{s.getsockname()[1]}" for s in (there, gone))
        gone.close()
        with conf.open("a") as file:
            file.write(f"default_registry = {host}\nmirrors = public.example={host}/somewhere\n")
        found = doctor(gateway, conf)["registries"]
        assert (found["verdict"], found["found"]) == ("ok", "1 can be reached"), found
        connection, _ = there.accept()
        with connection:
            connection.settimeout(10)
            assert connection.recv(1) == b"", "nothing was sent"
        with conf.open("a") as file:
            file.write(f"map = public.example={closed}/path other.example={host}\n")
        found = doctor(gateway, conf)["registries"]
        assert found["verdict"] == "FAIL" and f"1 of 2 cannot be reached: {closed}: Connection refused" in found["found"] and found["fix"], found
    with conf.open("a") as file:
        file.write("skopeo = /nonexistent/skopeo\nimage_mib = 1048576\nuser = no-such-user\n")
    found = doctor(gateway, conf)
    assert found["skopeo"]["verdict"] == "FAIL" and "/nonexistent/skopeo does not run" in found["skopeo"]["found"] and found["skopeo"]["fix"]
    assert found["image-store"]["verdict"] == "warn" and found["image-store"]["fix"], found["image-store"]
    assert "there is no user no-such-user" in found["image-rules"]["found"], found["image-rules"]


def test_doctor_finds_the_kernels_rules_for_images(gateway, tmp_path):
    """In a network of its own, so that the host's rules stay as they are."""
    conf = tmp_path / "images.conf"
    conf.write_text(f"user = nobody\ndata_dir = {tmp_path}\nresolvers = 127.0.0.53\n")
    program = build_dir() / "src"
    script = f"{program}/images/hotcell-images --nft {conf} | /usr/sbin/nft -f - && exec {program}/cli/hotcell doctor --json --images-conf {conf}"
    r = subprocess.run(["unshare", "--net", "sh", "-c", script], capture_output=True, text=True, timeout=60,
                       env={**os.environ, "HOTCELL_ADMIN_SOCKET": str(gateway.socket_path)})
    found = {c["check"]: c for c in json.loads(r.stdout)}["image-rules"]
    assert (found["verdict"], found["found"]) == ("ok", "user nobody is kept to registries and resolvers"), (found, r.stderr)


def test_doctor_says_that_the_journal_cannot_be_written(gateway):
    gateway("GET", "/admin/status", 200, {"gateway": {}, "node": {"warden": True, "egress": True, "journalFailure": "malformed"}})
    found = {c["check"]: c for c in json.loads(hotcell(gateway, "doctor", "--json").stdout)}["journal"]
    assert found["verdict"] == "FAIL" and found["found"] == "it could not be written: malformed", found
    gateway("GET", "/admin/status", 200, {"gateway": {}, "node": {"warden": True, "egress": True, "journalFailure": ""}})
    assert re.search("^ok    journal", hotcell(gateway, "doctor").stdout, re.M)


def test_doctor_names_rows_that_node_set_aside(gateway):
    rows = [{"id": "ia1", "kind": "sandbox", "why": "reason 99 is not known"},
            {"id": "s1", "kind": "snapshot", "why": "team is too long"}]
    node = {"warden": True, "egress": True, "quarantined": 2, "quarantine": rows}
    gateway("GET", "/admin/status", 200, {"gateway": {}, "node": node})
    found = {c["check"]: c for c in json.loads(hotcell(gateway, "doctor", "--json").stdout)}["journal"]
    assert found["verdict"] == "FAIL" and "hotcell kill ID" in found["fix"]
    assert found["found"] == ("2 rows are set aside and kept; sandbox ia1: reason 99 is not known; "
                              "snapshot s1: team is too long")
    gateway("GET", "/admin/status", 200, {"gateway": {}, "node": {**node, "quarantined": 0, "quarantine": []}})
    assert re.search("^ok    journal", hotcell(gateway, "doctor").stdout, re.M)


@pytest.mark.parametrize("node, verdict, said", [
    ({"vmsAbsent": 12, "vmsOfOthers": 3}, "FAIL", "of 12 sandboxes the VM is not found"),
    ({"vmsAbsent": 0, "vmsOfOthers": 3}, "warn", "3 VMs are of another installation"),
    ({"vmsAbsent": 0, "vmsOfOthers": 0}, "ok", "all are this installation's")])
def test_doctor_says_whose_vms_there_are(gateway, node, verdict, said):
    gateway("GET", "/admin/status", 200, {"gateway": {}, "node": {"warden": True, "egress": True, **node}})
    found = {c["check"]: c for c in json.loads(hotcell(gateway, "doctor", "--json").stdout)}["vms"]
    assert found["verdict"] == verdict and said in found["found"] and (verdict == "ok" or found["fix"])


def test_doctor_fails_on_an_old_qemu(tmp_path):
    old = tmp_path / "qemu"
    old.write_text("#!/bin/sh\necho 'QEMU emulator version 7.2.11 (Debian)'\n")
    old.chmod(0o755)
    r = hotcell(None, "doctor", "--qemu", str(old))
    assert r.returncode == 3, "nor does a server answer"
    assert re.search(r"^FAIL  qemu .*7\.2\.11.*8\.2 or newer", r.stdout, re.M)
    old.write_text("#!/bin/sh\necho 'QEMU emulator version 10.1.91 (v10.2.0-rc1)'\n")
    assert re.search(r"^warn  qemu .*never released", hotcell(None, "doctor", "--qemu", str(old)).stdout, re.M)
    old.write_text("#!/bin/sh\necho 'QEMU emulator version 10.0.2 (Debian)'\n")
    assert re.search(r"^ok    qemu", hotcell(None, "doctor", "--qemu", str(old)).stdout, re.M)


@pytest.fixture
def state(tmp_path):
    for name in ("listed", "forgotten", "pooled"):
        (tmp_path / "state/vms" / name).mkdir(parents=True)
    for name in ("sandboxes", "snapshots"):
        (tmp_path / "data" / name).mkdir(parents=True)
    return ["--state", str(tmp_path / "state"), "--data", str(tmp_path / "data"), "--cgroup", f"hotcell-cli-{os.getpid()}",
            "--uid-base", "1900000000", "--uids", "4"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees everything")
def test_leaks_are_what_node_does_not_know_or_what_is_not_whole(gateway, state):
    gateway("GET", "/admin/sandboxes", 200, [sandbox("listed"), sandbox("vanished"), {**sandbox("rests"), "state": "paused"}])
    gateway("GET", "/admin/snapshots", 200, [])
    gateway("GET", "/admin/status", 200, {"node": {"pooledIDs": ["pooled"]}})
    r = hotcell(gateway, "doctor", "--leaks", "--json", *state)
    assert r.returncode == 1, r.stderr
    found = {(leak["kind"], leak["what"], leak["why"]) for leak in json.loads(r.stdout)}
    assert {(kind, what) for kind, what, why in found if "know" in why} == {("folder", "forgotten")}
    assert ("sandbox", "vanished") in {(kind, what) for kind, what, _ in found}
    assert {what for _, what, why in found if "no process" in why} == {"listed", "forgotten", "pooled"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees everything")
def test_leaks_are_looked_for_where_the_daemons_say(gateway, state, tmp_path):
    """Folders, group and uids are node's word; without it those of the files; a flag decides."""
    places = {"stateDir": str(tmp_path / "state"), "dataDir": str(tmp_path / "data"), "cgroup": state[5], "uidBase": 1900000000, "uids": 4}
    gateway("GET", "/admin/sandboxes", 200, [])
    gateway("GET", "/admin/snapshots", 200, [])
    gateway("GET", "/admin/status", 200, {"node": {"places": places}})
    r = hotcell(gateway, "doctor", "--leaks", "--json")
    assert {leak["what"] for leak in json.loads(r.stdout)} == {"listed", "forgotten", "pooled"}, r.stdout
    gateway("GET", "/admin/status", 200, {"node": {}})
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/warden.conf").write_text(f"state_dir = {tmp_path}/state\ncgroup = {state[5]}\nuid_base = 1900000000\nvms_max = 4\n")
    (tmp_path / "conf/node.conf").write_text(f"data_dir = {tmp_path}/data\n")
    r = hotcell(gateway, "doctor", "--leaks", "--json", "--conf", str(tmp_path / "conf"))
    assert {leak["what"] for leak in json.loads(r.stdout)} == {"listed", "forgotten", "pooled"}, r.stdout
    for name in ("listed", "forgotten", "pooled"):
        (tmp_path / "state/vms" / name).rmdir()
    gateway("GET", "/admin/status", 200, {"node": {"places": {**places, "stateDir": "/nonexistent"}}})
    r = hotcell(gateway, "doctor", "--leaks", "--state", str(tmp_path / "state"))
    assert r.returncode == 0, r.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees everything")
def test_a_process_of_a_sandbox_uid_is_a_leak(gateway, state, tmp_path):
    gateway("GET", "/admin/sandboxes", 200, [])
    gateway("GET", "/admin/snapshots", 200, [])
    gateway("GET", "/admin/status", 200, {"node": {}})
    for name in ("listed", "forgotten", "pooled"):
        (tmp_path / "state/vms" / name).rmdir()
    assert hotcell(gateway, "doctor", "--leaks", *state).returncode == 0
    stray = subprocess.Popen(["sleep", "600"], user=1900000003, group=1900000003)
    try:
        r = hotcell(gateway, "doctor", "--leaks", *state)
        assert r.returncode == 1 and f"pid {stray.pid}, uid 1900000003" in r.stdout
    finally:
        stray.kill()
        stray.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees everything")
def test_a_file_or_folder_of_node_without_a_row_is_a_leak(gateway, state, tmp_path):
    gateway("GET", "/admin/sandboxes", 200, [sandbox("runs"), {**sandbox("rests"), "state": "paused"}])
    gateway("GET", "/admin/snapshots", 200, [{"snapshotID": "kept"}])
    gateway("GET", "/admin/status", 200, {"node": {"pooledIDs": ["pooled"], "builderIDs": ["built"]}})
    for path in ("sandboxes/runs/disk", "sandboxes/runs/pages", "sandboxes/rests/disk", "sandboxes/rests/pages",
                 "sandboxes/rests/state", "sandboxes/rests/core", "sandboxes/gone/disk", "sandboxes/pooled/disk",
                 "sandboxes/built/disk", "sandboxes/built/blank",
                 "snapshots/kept/memory", "snapshots/kept/layer1", "snapshots/lost/memory", "snapshots/.new-x/pages"):
        (tmp_path / "data" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / path).touch()
    r = hotcell(gateway, "doctor", "--leaks", "--json", *state)
    assert r.returncode == 1, r.stderr
    assert {leak["what"] for leak in json.loads(r.stdout) if "/" in leak["what"]} == {
        "sandboxes/runs/pages", "sandboxes/rests/core", "sandboxes/gone", "snapshots/lost", "snapshots/.new-x"}
    r = hotcell(gateway, "doctor", "--leaks", *state, "--data", str(tmp_path / "nowhere"))
    assert r.returncode == 1 and "--data" in r.stdout
