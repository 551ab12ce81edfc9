"""test_routes.py - every route of the API, with no key, a wrong one, another team's and the right one.

The routes are those that `hotcell-gateway --routes` prints: one that is not in the table below fails, so that none
is forgotten.
"""

import pathlib
import re
import subprocess

import pytest

from server import Server
from warden import build_dir, wait_for

TOP = pathlib.Path(__file__).resolve().parents[2]
WRONG_KEY = "e2b_" + "0123456789abcdef" * 2 + "01234567"

# (method, path): (status for the right key, body). 501 is a route of the API that is not built yet.
ROUTES = {
    ("GET", "/health"): (204, None),
    ("POST", "/sandboxes"): (201, {"templateID": "base", "timeout": 600}),
    ("GET", "/sandboxes"): (200, None),
    ("POST", "/v2/sandboxes"): (201, {"templateID": "base", "timeout": 600}),
    ("GET", "/v2/sandboxes"): (200, None),
    ("GET", "/sandboxes/metrics"): (200, None),
    ("GET", "/sandboxes/{sandboxID}"): (200, None),
    ("DELETE", "/sandboxes/{sandboxID}"): (204, None),
    ("POST", "/sandboxes/{sandboxID}/timeout"): (204, {"timeout": 3600}),
    ("POST", "/sandboxes/{sandboxID}/refreshes"): (204, {"duration": 600}),
    ("POST", "/sandboxes/{sandboxID}/connect"): (200, {"timeout": 600}),
    ("POST", "/v2/sandboxes/{sandboxID}/connect"): (200, {"timeout": 600}),
    ("POST", "/sandboxes/{sandboxID}/pause"): (204, None),
    ("POST", "/sandboxes/{sandboxID}/resume"): (201, {}),
    ("POST", "/sandboxes/{sandboxID}/fork"): (201, {"timeout": 600}),
    ("POST", "/sandboxes/{sandboxID}/snapshots"): (201, {}),
    ("PUT", "/sandboxes/{sandboxID}/network"): (204, {}),
    ("POST", "/sandboxes/{sandboxID}/addresses"): (201, None),
    ("GET", "/sandboxes/{sandboxID}/metrics"): (200, None),
    ("GET", "/sandboxes/{sandboxID}/logs"): (200, None),
    ("GET", "/v2/sandboxes/{sandboxID}/logs"): (200, None),
    ("GET", "/snapshots"): (200, None),
    ("GET", "/teams"): (200, None),
    ("GET", "/teams/{teamID}/metrics"): (501, None),
    ("GET", "/teams/{teamID}/metrics/max"): (501, None),
    ("GET", "/api-keys"): (200, None),
    ("POST", "/api-keys"): (201, {"name": "another"}),
    ("PATCH", "/api-keys/{apiKeyID}"): (200, {"name": "renamed"}),
    ("DELETE", "/api-keys/{apiKeyID}"): (204, None),
    ("GET", "/templates"): (200, None),
    ("GET", "/templates/aliases/{alias}"): (200, None),
    ("POST", "/v3/templates"): (202, {"name": "made"}),
    ("POST", "/v2/templates"): (202, {"alias": "made"}),
    ("POST", "/templates"): (400, {}),
    ("GET", "/v2/templates"): (200, None),
    ("POST", "/templates/tags"): (404, {"target": "none", "tags": ["v1"]}),
    ("DELETE", "/templates/tags"): (404, {"name": "none", "tags": ["v1"]}),
    ("GET", "/templates/{templateID}"): (404, None),
    ("DELETE", "/templates/{templateID}"): (404, None),
    ("POST", "/templates/{templateID}"): (400, {}),
    ("PATCH", "/templates/{templateID}"): (404, {}),
    ("PATCH", "/v2/templates/{templateID}"): (404, {}),
    ("GET", "/templates/{templateID}/tags"): (404, None),
    ("GET", "/templates/{templateID}/files/{hash}"): (404, None),
    ("PUT", "/uploads/{team}/{hash}"): (403, None),
    ("POST", "/templates/{templateID}/builds/{buildID}"): (400, {}),
    ("POST", "/v2/templates/{templateID}/builds/{buildID}"): (404, {"fromImage": "none", "steps": []}),
    ("DELETE", "/templates/{templateID}/builds/{buildID}"): (404, None),
    ("GET", "/templates/{templateID}/builds/{buildID}/status"): (404, None),
    ("GET", "/templates/{templateID}/builds/{buildID}/logs"): (404, None),
    ("GET", "/volumes"): (501, None),
    ("POST", "/volumes"): (501, {}),
    ("GET", "/volumes/{volumeID}"): (501, None),
    ("DELETE", "/volumes/{volumeID}"): (501, None),
    ("GET", "/secrets"): (200, None),
    ("POST", "/secrets"): (400, {}),
    ("GET", "/secrets/{secretID}"): (404, None),
    ("POST", "/secrets/{secretID}"): (404, {"value": "v"}),
    ("DELETE", "/secrets/{secretID}"): (404, None),
    ("GET", "/admin/teams"): (200, None),
    ("POST", "/admin/teams"): (201, {"name": "made by admin"}),
    ("DELETE", "/admin/teams/{team}"): (204, None),
    ("PATCH", "/admin/teams/{team}/limits"): (200, {"sandboxes": 100}),
    ("GET", "/admin/teams/{team}/keys"): (200, None),
    ("POST", "/admin/teams/{team}/keys"): (201, {"name": "made by admin"}),
    ("DELETE", "/admin/keys/{apiKeyID}"): (204, None),
    ("PATCH", "/admin/keys/{apiKeyID}/limits"): (200, {"sandboxes": 100}),
    ("POST", "/admin/keys/{apiKeyID}/rotate"): (201, None),
    ("PATCH", "/admin/keys/{apiKeyID}/services"): (200, {"services": []}),
    ("GET", "/admin/sandboxes"): (200, None),
    ("DELETE", "/admin/sandboxes/{sandboxID}"): (204, None),
    ("POST", "/admin/sandboxes/{sandboxID}/pause"): (204, None),
    ("POST", "/admin/sandboxes/{sandboxID}/resume"): (201, {"timeout": 600}),
    ("GET", "/admin/sandboxes/{sandboxID}/why"): (200, None),
    ("GET", "/admin/sandboxes/{sandboxID}/logs"): (200, None),
    ("GET", "/admin/sandboxes/{sandboxID}/explain"): (200, None),
    ("GET", "/admin/explain"): (200, None),
    ("GET", "/admin/sandboxes/{sandboxID}/egress"): (200, None),
    ("POST", "/admin/sandboxes/{sandboxID}/fork"): (201, {"timeout": 600}),
    ("GET", "/admin/snapshots"): (200, None),
    ("GET", "/admin/ended"): (200, None),
    ("GET", "/admin/templates"): (200, None),
    ("GET", "/admin/templates/{templateID}"): (404, None),
    ("DELETE", "/admin/templates/{templateID}"): (404, None),
    ("PATCH", "/admin/templates/{templateID}"): (404, {}),
    ("POST", "/admin/teams/{team}/templates"): (202, {"name": "made-by-admin"}),
    ("GET", "/admin/builds/{buildID}"): (404, None),
    ("DELETE", "/admin/builds/{buildID}"): (404, None),
    ("PUT", "/admin/builds/{buildID}/archive"): (404, "x"),
    ("POST", "/admin/confirm-lost"): (200, None),
    ("GET", "/admin/lost"): (200, None),
    ("POST", "/admin/lost/{id}/restore"): (404, None),
    ("DELETE", "/admin/lost/{id}"): (404, None),
    ("GET", "/admin/status"): (200, None),
    ("GET", "/admin/health"): (200, None),
    ("GET", "/metrics"): (200, None),
}
QUERIES = {"/sandboxes/metrics": "?sandbox_ids={sandboxID}"}
# What names something that belongs to a team: for another team it does not exist.
OWNED = ("{sandboxID}", "{apiKeyID}")


def printed_routes():
    program = build_dir() / "src/gateway/hotcell-gateway"
    lines = subprocess.run([program, "--routes"], check=True, capture_output=True, text=True).stdout.splitlines()
    return [tuple(line.split()) for line in lines]


ALL = printed_routes()
PUBLIC = [(method, path, who) for method, path, who in ALL if who != "admin"]
ADMIN = [(method, path) for method, path, who in ALL if who == "admin"]


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        s.other_team, s.other_key = s.new_team("other")
        s.box = s.create()
        # what was said of the template while it was looked at is said for a second
        wait_for(lambda: s.api("GET", "/health", key=None).status == 204, "the server is healthy", 10)
        s.key_id = s.admin("POST", f"/admin/teams/{s.team}/keys", {"name": "first"}).json["id"]
        yield s


def fill(server, path, **changes):
    names = {"sandboxID": server.box["sandboxID"], "apiKeyID": server.key_id, "teamID": server.team,
             "team": server.team, "alias": "base", "templateID": "base", "buildID": "b", "hash": "h",
             "volumeID": "v", "secretID": "s", "id": "nolost", **changes}
    return (path + QUERIES.get(path, "")).format(**names)


def clean_up(server, target):
    """The sandbox that right_target() made for a pause or a resume."""
    if target.endswith(("/pause", "/resume")):
        assert server.api("DELETE", "/sandboxes/" + target.split("/")[-2]).status == 204


def check_error(answer, status):
    """The body that every SDK reads: a number and a text."""
    assert answer.status == status, (answer.status, answer.raw)
    assert answer.headers["content-type"].startswith("application/json"), answer.headers
    body = answer.json
    assert body["code"] == status and isinstance(body["code"], int)
    assert isinstance(body["message"], str) and body["message"]


def ids(route):
    return f"{route[0]} {route[1]}"


def test_the_table_has_every_route():
    assert {(method, path) for method, path, _ in ALL} == set(ROUTES)


def test_the_page_has_every_route_of_the_admin_door():
    page = (TOP / "docs/admin-api.md").read_text()
    named = {(method, re.sub("{.*?}", "{}", path.split("?")[0]))
             for method, path in re.findall(r"`([A-Z]+) (/(?:admin/|metrics)[^` ]*)`", page)}
    assert {(method, re.sub("{.*?}", "{}", path)) for method, path, who in ALL if who == "admin"} == named


def test_the_page_for_newcomers_has_what_is_not_built():
    """docs/moving-from-e2b.md, What is not there: all that answers 501, and nothing else."""
    text = (TOP / "docs/moving-from-e2b.md").read_text().partition("## What is not there\n")[2].partition("\n## ")[0]
    named = re.findall(r"`(/[^`]*)`", text)
    unbuilt = {path for (_, path), (status, _) in ROUTES.items() if status == 501}
    assert named and all(any(path.startswith(name) for name in named) for path in unbuilt), unbuilt
    assert all(any(path.startswith(name) for path in unbuilt) for name in named), named


def test_the_page_for_newcomers_names_checks_that_there_are():
    """docs/moving-from-e2b.md, What is the same: the numbers are sections of docs/compatibility.md, and all of them."""
    text = (TOP / "docs/moving-from-e2b.md").read_text().partition("## What is the same\n")[2].partition("\n## ")[0]
    there = {int(n) for n in re.findall(r"^## (\d+)\. ", (TOP / "docs/compatibility.md").read_text(), re.M)}
    named = set()
    for cell in re.findall(r"\| ([\d, to]+) \|$", text, re.M):
        for a, b in re.findall(r"(\d+)(?: to (\d+))?", cell):
            named |= set(range(int(a), int(b or a) + 1))
    assert named and named <= there, named - there
    assert there - named <= {28, 30, 41}, there - named  # MCP, builds, keys: said in words


@pytest.mark.parametrize("route", PUBLIC, ids=ids)
def test_no_key(server, route):
    method, path, who = route
    answer = server.api(method, fill(server, path), ROUTES[method, path][1], key=None)
    if who == "none":
        assert answer.status == ROUTES[method, path][0]
    else:
        check_error(answer, 401)


@pytest.mark.parametrize("key", [WRONG_KEY, "nonsense", "e2b_", "e2b_" + "f" * 4000],
                         ids=["unknown", "nonsense", "empty", "long"])
@pytest.mark.parametrize("route", PUBLIC, ids=ids)
def test_wrong_key(server, route, key):
    method, path, who = route
    answer = server.api(method, fill(server, path), ROUTES[method, path][1], key=key)
    if who == "none":
        assert answer.status == ROUTES[method, path][0]
    else:
        check_error(answer, 401)


@pytest.mark.parametrize("route", [r for r in PUBLIC if any(name in r[1] for name in OWNED)], ids=ids)
def test_another_teams_key(server, route):
    """What is somebody else's answers as what never was, to the letter."""
    method, path, _ = route
    body = ROUTES[method, path][1]
    there = server.api(method, fill(server, path), body, key=server.other_key)
    check_error(there, 404)
    unknown = "a" + "z" * (len(server.box["sandboxID"]) - 1)
    absent = {"sandboxID": unknown, "apiKeyID": "00000000-0000-4000-8000-000000000000"}
    never = server.api(method, fill(server, path, **absent), body, key=server.other_key)
    check_error(never, 404)
    swap = {absent["sandboxID"]: server.box["sandboxID"], absent["apiKeyID"]: server.key_id}
    text = never.json["message"]
    for name, real in swap.items():
        text = text.replace(name, real)
    assert text == there.json["message"]


def test_another_teams_lists_do_not_show_it(server):
    assert server.must("GET", "/sandboxes", key=server.other_key) == []
    assert server.must("GET", "/v2/sandboxes", key=server.other_key) == []
    keys = server.must("GET", "/api-keys", key=server.other_key)
    assert server.key_id not in [key["id"] for key in keys]
    teams = server.must("GET", "/teams", key=server.other_key)
    assert [team["teamID"] for team in teams] == [server.other_team]


def test_after_all_that_it_still_runs(server):
    """No refused request did anything."""
    assert server.must("GET", f"/sandboxes/{server.box['sandboxID']}")["state"] == "running"
    assert server.agent(server.box, "GET", "/health").status == 204
    names = {key["id"]: key["name"] for key in server.must("GET", "/api-keys")}
    assert names[server.key_id] == "first"


def right_target(server, method, path):
    """Something that may be destroyed, where that is what the route does."""
    if method == "DELETE" and "{sandboxID}" in path:
        return fill(server, path, sandboxID=server.create()["sandboxID"])
    if path.endswith(("/pause", "/resume")):
        box = server.create()["sandboxID"]
        if path.endswith("/resume"):
            assert server.api("POST", f"/sandboxes/{box}/pause").status == 204
        return fill(server, path, sandboxID=box)
    if method == "DELETE" and "{apiKeyID}" in path:
        return fill(server, path, apiKeyID=server.must("POST", "/api-keys", {"name": "to go"})["id"])
    if method == "DELETE" and "{team}" in path:
        return fill(server, path, team=server.new_team("to go")[0])
    return fill(server, path)


@pytest.mark.parametrize("route", PUBLIC, ids=ids)
def test_right_key(server, route):
    method, path, _ = route
    status, body = ROUTES[method, path]
    target = right_target(server, method, path)
    answer = server.api(method, target, body)
    assert answer.status == status, answer.raw
    clean_up(server, target)
    if status == 501:
        check_error(answer, 501)
    if status == 201 and path.endswith("/sandboxes"):
        assert server.delete(answer.json) == 204


@pytest.mark.parametrize("route", ADMIN, ids=ids)
def test_admin_routes_are_not_at_the_public_door(server, route):
    method, path = route
    for key in (None, WRONG_KEY, server.other_key, server.key):
        answer = server.api(method, fill(server, path), ROUTES[method, path][1], key=key)
        assert answer.status in (401, 404), answer.status
        check_error(answer, answer.status)


@pytest.mark.parametrize("route", ADMIN, ids=ids)
def test_admin_door(server, route):
    method, path = route
    status, body = ROUTES[method, path]
    target = right_target(server, method, path)
    answer = server.admin(method, target, body)
    assert answer.status == status, answer.raw
    clean_up(server, target)
    if path == "/admin/sandboxes" and method == "GET":
        assert server.box["sandboxID"] in [box["sandboxID"] for box in answer.json]


def test_what_is_not_there(server):
    check_error(server.api("GET", "/nothing/here"), 404)
    check_error(server.api("PATCH", "/sandboxes"), 405)
    check_error(server.api("POST", "/sandboxes", b"{not json", headers={"content-type": "application/json"}), 400)
    check_error(server.api("POST", "/sandboxes", {"templateID": "no-such-template"}), 404)


def test_segments_may_be_percent_encoded(server):
    name = server.box["sandboxID"]
    encoded = "".join(f"%{ord(c):02X}" for c in name)
    assert server.must("GET", f"/sandboxes/{encoded}")["sandboxID"] == name
    crooked = server.api("GET", f"/sandboxes/{name}%2F..%2F{name}")
    check_error(crooked, crooked.status)
    assert crooked.status in (400, 404)


def test_a_removed_key_is_of_no_use_at_once(server):
    made = server.must("POST", "/api-keys", {"name": "short life"})
    assert server.api("GET", "/v2/sandboxes", key=made["key"]).status == 200
    assert server.api("DELETE", f"/api-keys/{made['id']}").status == 204
    check_error(server.api("GET", "/v2/sandboxes", key=made["key"]), 401)


def test_a_key_that_a_limited_key_made_is_counted_with_it(server):
    first = server.admin("POST", f"/admin/teams/{server.team}/keys", {"name": "limited"}).json
    assert server.admin("PATCH", f"/admin/keys/{first['id']}/limits", {"sandboxes": 1}).status == 200
    made = server.must("POST", "/api-keys", {"name": "mine"}, key=first["key"])
    assert made["limits"]["sandboxes"] == 1
    box = server.must("POST", "/sandboxes", {"templateID": "base", "timeout": 600}, key=first["key"])
    check_error(server.api("POST", "/sandboxes", {"templateID": "base"}, key=made["key"]), 429)
    assert server.api("DELETE", f"/sandboxes/{box['sandboxID']}", key=made["key"]).status == 204
    assert server.admin("DELETE", f"/admin/keys/{first['id']}").status == 204
    check_error(server.api("GET", "/v2/sandboxes", key=made["key"]), 401)


def test_keys_are_not_kept_in_the_clear(server):
    made = server.must("POST", "/api-keys", {"name": "secret"})
    secret = made["key"].removeprefix("e2b_").encode()
    for path in (server.base / "gateway").iterdir():
        if path.is_file():
            assert secret not in path.read_bytes(), f"{path} has the key"
    assert secret.decode() not in server.daemons["gateway"].log()


@pytest.mark.parametrize("port", [49983, 80, 8080])
def test_a_sandbox_that_is_not_there_has_no_ports(server, port):
    unknown = "a" + "z" * (len(server.box["sandboxID"]) - 1)
    answer = server.api("GET", "/health", key=None,
                        headers={"E2b-Sandbox-Id": unknown, "E2b-Sandbox-Port": str(port)})
    assert answer.status in (404, 502), (answer.status, answer.raw)
    assert answer.json["code"] == answer.status


def test_a_browser_may_ask_first(server):
    answer = server.api("OPTIONS", "/v2/sandboxes", key=None,
                        headers={"origin": "https://example.org", "access-control-request-method": "POST",
                                 "access-control-request-headers": "x-api-key,content-type"})
    assert answer.status in (200, 204)
    assert answer.headers["access-control-allow-origin"] in ("*", "https://example.org")
    assert "x-api-key" in answer.headers["access-control-allow-headers"].lower() or \
        answer.headers["access-control-allow-headers"] == "*"
