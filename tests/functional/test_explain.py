"""test_explain.py - an operator asks why: `hotcell explain`, `egress log` and `keys services` against a whole server.

What they say is compared with what a guest sees. Nobody outside is asked: the only name server is a closed port.
"""

import json
import os
import subprocess

import pytest

from server import Server, wait_for
from warden import build_dir

EGRESS = {"network": "allowlist", "allow": "packages allowed.example 198.51.100.0/24", "services": "db=10.1.2.3:5432",
          "resolvers": "127.0.0.1:9"}
ASK = "python3 -c 'import socket; print(socket.getaddrinfo(\"NAME\", None)[0][4][0])' 2>&1 | tail -n 1"


@pytest.fixture(scope="module")
def server():
    with Server(egress=EGRESS) as s:
        yield s


def hotcell(server, *words):
    done = subprocess.run([build_dir() / "src/cli/hotcell", "--socket", server.admin_socket, "--json", *words],
                          capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def resolved(server, box, name):
    return server.run(box, ASK.replace("NAME", name))


def answer(server, box, question):
    return hotcell(server, "explain", box["sandboxID"], question)["answer"]


def logged(server, box, name):
    return [(entry["kind"], entry["verdict"]) for entry in hotcell(server, "egress", "log", box["sandboxID"])
            if entry.get("name") == name]


def test_what_is_in_force(server):
    box = server.create(network={"allowOut": ["Allowed.example"], "denyOut": ["0.0.0.0/0"]})
    told = hotcell(server, "explain", box["sandboxID"])
    assert told["operator"] == {"mode": "allowlist", "allow": ["packages", "allowed.example", "198.51.100.0/24"]}
    assert told["allowOut"] == ["allowed.example"] and told["denyOut"] == ["0.0.0.0/0"]
    assert told["services"] == [] and "answer" not in told
    assert server.api("PUT", f"/sandboxes/{box['sandboxID']}/network", {}).status == 204
    told = hotcell(server, "explain", box["sandboxID"])
    assert told["allowOut"] == [] and told["denyOut"] == []
    server.delete(box)


def test_why_not(server):
    box = server.create()
    unresolved = answer(server, box, "allowed.example:443")
    assert unresolved["allowed"] is False and "no resolver answers" in unresolved["why"]
    assert "operator: allowed.example" in unresolved["why"], unresolved
    assert answer(server, box, "198.51.100.7:443")["allowed"] is False, "special purpose, whatever a rule says"
    refused = answer(server, box, "other.example:443")
    assert refused["allowed"] is False and "not listed" in refused["why"]
    assert answer(server, box, "169.254.169.254")["allowed"] is False
    assert "gaierror" in resolved(server, box, "other.example")
    told = server.run(box, "hotcell-why other.example || echo exits with $?")
    assert "why: operator: not listed\n  fix: the operator adds other.example to allow in " in told and "exits with 1" in told
    wait_for(lambda: ("name", "refused") in logged(server, box, "other.example"), "its refusal is in the log", 30)
    server.delete(box)


def test_services_belong_to_the_key(server):
    key = next(k for k in server.must("GET", "/api-keys"))["id"]
    without = server.create()
    assert answer(server, without, "db.hotcell.internal:5432")["allowed"] is False
    assert hotcell(server, "keys", "services", key, "db")["services"] == ["db"]
    box = server.create(allow_internet_access=False)
    assert answer(server, box, "db.hotcell.internal:5432")["allowed"] is True
    assert answer(server, box, "db.hotcell.internal:22")["allowed"] is False
    assert resolved(server, box, "db.hotcell.internal").strip() == "10.1.2.3"
    assert "gaierror" in resolved(server, without, "db.hotcell.internal")
    assert hotcell(server, "keys", "services", key, "--none")["services"] == []
    assert server.api("PUT", f"/sandboxes/{box['sandboxID']}/network", {}).status == 204
    assert "gaierror" in resolved(server, box, "db.hotcell.internal")
    server.delete(box)
    server.delete(without)


def test_of_a_paused_one(server):
    box = server.create(network={"denyOut": ["0.0.0.0/0"]})
    assert server.api("POST", f"/sandboxes/{box['sandboxID']}/pause").status == 204
    assert hotcell(server, "explain", box["sandboxID"])["denyOut"] == ["0.0.0.0/0"]
    assert answer(server, box, "allowed.example")["allowed"] is False
    server.delete(box)


# --- the same server, tried as a client would ---------------------------------------------------

def selftest(server, *words, **variables):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("E2B_", "SSL_"))}
    return subprocess.run([build_dir() / "src/cli/hotcell", "--socket", server.admin_socket, "selftest", *words], capture_output=True, text=True,
                          env={**kept, "E2B_API_URL": server.url, "E2B_SANDBOX_URL": server.url, **variables}, timeout=500)


def test_selftest_tries_everything_and_leaves_nothing(server):
    before = {name: hotcell(server, *words) for name, words in (("teams", ["teams"]), ("boxes", ["ps", "--all"]), ("kept", ["snapshots"]))}
    r = selftest(server, "--json")
    said = json.loads(r.stdout)
    assert r.returncode == 0 and said["ok"], r.stdout + r.stderr
    steps = {step["step"]: step for step in said["steps"]}
    expected = {"interpret code": "skip", "allowed name": "warn"}  # neither the template nor a name server is there
    assert {name: step["result"] for name, step in steps.items()} == {name: expected.get(name, "pass") for name in steps}
    assert "allowed.example does not resolve" in steps["allowed name"]["detail"] and len(steps) == 13
    assert all(step["seconds"] >= 0 for step in steps.values()) and steps["create"]["seconds"] > 0
    after = {name: hotcell(server, *words) for name, words in (("teams", ["teams"]), ("boxes", ["ps", "--all"]), ("kept", ["snapshots"]))}
    assert [team["teamID"] for team in after["teams"]] == [team["teamID"] for team in before["teams"]]
    assert {box["sandboxID"] for box in after["boxes"]} == {box["sandboxID"] for box in before["boxes"]} and after["kept"] == before["kept"]


def test_selftest_says_what_failed_and_tries_no_more(server):
    r = selftest(server, "--template", "nosuch", E2B_API_KEY=server.key)
    lines = r.stdout.splitlines()
    assert r.returncode == 1 and lines[0].startswith("FAIL  create ") and "nosuch" in lines[0], r.stdout + r.stderr
    assert all(line.startswith("skip ") and "not tried" in line for line in lines[1:13]) and "something failed" in lines[-1]
    assert selftest(server, E2B_API_URL="http://127.0.0.1:9", E2B_SANDBOX_URL="http://127.0.0.1:9").returncode == 1
    assert all(not team["name"].startswith("selftest") for team in hotcell(server, "teams"))


def test_an_operator_sees_what_a_sandbox_uses(server):
    box = server.create()
    used = wait_for(lambda: [row for row in hotcell(server, "ps", "--usage") if row["sandboxID"] == box["sandboxID"] and "usage" in row],
                    "it was measured", 60, 0.5)[0]["usage"]
    assert 1 << 20 < used["memUsed"] <= used["memTotal"] == 512 << 20 and used["cpuCount"] >= 1
    events = subprocess.run([build_dir() / "src/cli/hotcell", "--socket", server.admin_socket, "logs", box["sandboxID"]], capture_output=True,
                            text=True, timeout=60).stdout
    assert events.splitlines()[0].split()[1] == "info"
    hotcell(server, "kill", box["sandboxID"])
