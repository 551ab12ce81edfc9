"""Templates, builds, tags, aliases and uploads over the API: a real gateway and node, no VM.

Two teams ask for everything: to one what is the other's does not exist, but for what E2B says of aliases.
"""

import hashlib
import http.client
import json
import os
import pathlib
import re
import socket
import sqlite3
import struct
import subprocess
import time
import urllib.parse
import uuid

import pytest

from lone_node import NODE_UID
from lone_pair import LonePair
from warden import wait_for

NOWHERE = "0" * 20
NO_BUILD = str(uuid.UUID(int=0))
HASH = "ab" * 32


@pytest.fixture(scope="module")
def pair():
    with LonePair() as pair:
        pair.other_team, pair.other_key = pair.new_team("other")
        yield pair


def new(pair, name, **more):
    made = pair.ask("POST", "/v3/templates", {"name": name, **more})
    assert made.status == 202, made.raw
    return made.json


def begin(pair, made, **more):
    return pair.ask("POST", f"/v2/templates/{made['templateID']}/builds/{made['buildID']}",
                    {"fromImage": "debian:stable", "steps": [], "force": False, **more})


def status(pair, made, query="", key=True):
    return pair.ask("GET", f"/templates/{made['templateID']}/builds/{made['buildID']}/status{query}", key=key)


def ended(pair, made):
    return wait_for(lambda: (s := status(pair, made).json)["status"] == "error" and s, "the build ended", 10)


def put_ready(pair, made, snapshot, team=None):
    """As if the build had been done: its rows say so, and there is a folder. Node is started again."""
    pair.node.kill()
    folder = pair.node.data / "snapshots" / snapshot
    folder.mkdir(mode=0o700)
    os.chown(folder, NODE_UID, NODE_UID)
    now = time.time_ns()
    pair.node.sql("insert into snapshot (id, team, base_id, parent, source, name, tag, control_token, created_ns,"
                  " memory_bytes, disk_bytes, vcpus, memory_mib, disk_mib, layers, hidden)"
                  " values (?, ?, 'base-0', '', '', '', 'default', '', ?, 0, 0, 2, 1024, 2048, 0, 1)",
                  snapshot, team or pair.team, now)
    pair.node.sql("update build set status = 2, snapshot_id = ?, disk_mib = 2048, finished_ns = ? where id = ?",
                  snapshot, now, made["buildID"])
    tags = "".join(f"{tag} {made['buildID']} {now}\n" for tag in made["tags"])
    pair.node.sql("update template set tags = coalesce(tags, '') || ? where id = ?", tags, made["templateID"])
    pair.node.begin()


# --- create ---

def test_a_template_is_created_as_the_sdks_do(pair):
    made = new(pair, "First", cpuCount=2, memoryMB=1024)
    assert uuid.UUID(made["buildID"]) and len(made["templateID"]) == 20
    assert made["names"] == ["test/first"] and made["aliases"] == ["first"]
    assert made["tags"] == ["default"] and made["public"] is False
    again = new(pair, "test/first:v1", tags=["v2"])
    assert again["templateID"] == made["templateID"] and again["buildID"] != made["buildID"]
    assert again["tags"] == ["v1", "v2"]


@pytest.mark.parametrize(("body", "code"), [
    ({"name": "a b"}, 400), ({}, 400), ({"name": "x", "cpuCount": 3}, 400), ({"name": "x", "cpuCount": 64}, 400),
    ({"name": "x", "memoryMB": 127}, 400), ({"name": "x", "memoryMB": 129}, 400), ({"name": "other/x"}, 403),
    ({"name": "x", "tags": ["a b"]}, 400), ({"name": "x", "tags": [NO_BUILD]}, 400), ({"name": "base"}, 409),
    ({"name": "x" * 200}, 400)])
def test_what_is_not_right_is_refused(pair, body, code):
    said = pair.ask("POST", "/v3/templates", body)
    assert (said.status, said.json["code"]) == (code, code) and said.json["message"]


def test_older_sdks_get_the_whole_template(pair):
    made = pair.ask("POST", "/v2/templates", {"alias": "older", "cpuCount": 1, "memoryMB": 512})
    assert made.status == 202 and made.json["cpuCount"] == 1 and made.json["buildStatus"] == "waiting"
    assert set(made.json) >= {"templateID", "buildID", "public", "aliases", "names", "createdAt", "updatedAt", "createdBy",
                              "lastSpawnedAt", "spawnCount", "buildCount", "envdVersion", "diskSizeMB"}


@pytest.mark.parametrize("target", ["/templates", f"/templates/{NOWHERE}", f"/templates/{NOWHERE}/builds/{NO_BUILD}"])
def test_the_first_way_to_build_says_which_sdk_to_take(pair, target):
    said = pair.ask("POST", target, {"dockerfile": "FROM x"})
    assert said.status == 400 and "2.0 or newer" in said.json["message"]


# --- build ---

def test_a_build_says_why_it_failed(pair):
    made = new(pair, "failing")
    assert status(pair, made).json == {"templateID": made["templateID"], "buildID": made["buildID"], "status": "waiting",
                                       "logs": [], "logEntries": []}
    said = begin(pair, made)
    assert said.status == 202 and said.raw == b"" and said.headers["Content-Length"] == "0"
    seen = ended(pair, made)
    assert seen["reason"]["message"] == "this server has no images daemon: set images_socket"
    assert [entry["level"] for entry in seen["logEntries"]] == ["info", "error"]
    assert all(entry["timestamp"].endswith("Z") and entry["step"] == "base" for entry in seen["logEntries"])
    assert status(pair, made, "?logsOffset=1").json["logEntries"] == seen["logEntries"][1:]
    assert status(pair, made, "?level=error&limit=1").json["logEntries"] == seen["logEntries"][1:]
    assert status(pair, made, "?limit=0").json["logEntries"] == []
    logs = pair.ask("GET", f"/templates/{made['templateID']}/builds/{made['buildID']}/logs?direction=backward")
    assert logs.json == {"logs": seen["logEntries"][::-1]}
    again = begin(pair, made)
    assert again.status == 400 and "waiting" in again.json["message"]


def write_log(pair, made, lines):
    """As a build that says much leaves it; src/node/catalog/build_log.c."""
    folder, at = pair.node.data / "builds" / made["buildID"], 0
    with open(folder / "log", "wb") as log, open(folder / "index", "wb") as index:
        for i in range(lines):
            line = json.dumps({"timestamp": "2026-01-01T00:00:00Z", "level": "info", "message": str(i)}).encode() + b"\n"
            log.write(line)
            index.write(struct.pack("=QIHH", 1000 + i, at, len(line), 1))
            at += len(line)
    for path in (folder / "log", folder / "index"):
        os.chown(path, NODE_UID, NODE_UID)


def test_a_long_log_is_looked_through_without_a_read_for_each_line(pair):
    """Node does nothing else meanwhile."""
    def reads():
        return int(re.search(r"syscr: (\d+)", pathlib.Path(f"/proc/{pair.node.process.pid}/io").read_text())[1])

    made = new(pair, "long-log")
    write_log(pair, made, 20000)
    logs = f"/templates/{made['templateID']}/builds/{made['buildID']}/logs"
    for query, found in [("?level=error", []), ("?cursor=20990", range(19990, 20000)),
                         ("?cursor=1000&limit=3", range(3)), ("?level=info&limit=2&logsOffset=19998", (19998, 19999)),
                         ("?level=info&direction=backward&limit=3&logsOffset=300", (19699, 19698, 19697))]:
        before = reads()
        said = pair.ask("GET", logs + query)
        assert [int(line["message"]) for line in said.json["logs"]] == list(found), query
        assert reads() - before < 500, query


def test_logs_of_a_team_have_so_much_room(pair):
    """Then the oldest go; a build that has none says so."""
    old, middle, newest = [new(pair, "much-said") for _ in range(3)]
    theirs = pair.ask("POST", "/v3/templates", {"name": "much-said"}, key=pair.other_key).json
    for made in (old, middle, newest, theirs):
        (pair.node.data / "builds" / made["buildID"]).mkdir(exist_ok=True)
        write_log(pair, made, 3)
        os.truncate(pair.node.data / "builds" / made["buildID"] / "log", 200 << 20)  # it takes no room
    pair.restart_node()
    assert status(pair, old).json["logEntries"]
    assert begin(pair, new(pair, "much-said")).status == 202
    assert status(pair, old).json["logEntries"] == []
    assert status(pair, middle).json["logEntries"] and status(pair, newest).json["logEntries"]
    assert status(pair, theirs, key=pair.other_key).json["logEntries"], "of others nothing goes"
    assert not (pair.node.data / "builds" / old["buildID"] / "log").exists()


@pytest.mark.parametrize(("body", "words"), [
    ({"fromTemplate": "base"}, "both"), ({"fromImage": ""}, "one of fromImage"),
    ({"fromImageRegistry": {"type": "aws", "awsAccessKeyId": "hidden"}}, "kind aws are not supported"),
    ({"fromImageRegistry": {"type": "gcp", "serviceAccountJson": "hidden"}}, "kind gcp are not supported"),
    ({"steps": [{"type": "ADD", "args": ["a"]}]}, "step 1"),
    ({"steps": [{"type": "USER", "args": ["u"]}] * 257}, "256 steps")])
def test_what_cannot_be_built_is_refused_at_once(pair, body, words):
    made = new(pair, "refused")
    said = begin(pair, made, **body)
    assert said.status == 400 and words in said.json["message"] and "hidden" not in said.json["message"]
    assert status(pair, made).json["status"] == "waiting"


def test_a_long_recipe(pair):
    """A Dockerfile with long heredocs, and many COPY steps."""
    steps = [{"type": "RUN", "args": [f"cat > /tmp/{i} <<'END'\n" + "x" * 4096 + "\nEND"]} for i in range(100)] + \
        [{"type": "COPY", "args": [f"a{i}", f"/srv/{i}", "", ""], "filesHash": HASH} for i in range(100)]
    made = new(pair, "long-recipe")
    assert len(json.dumps(steps)) > 400_000
    assert begin(pair, made, steps=steps).status == 202
    assert "images daemon" in ended(pair, made)["reason"]["message"], "node has read it"
    run = [{"type": "RUN", "args": ["x" * (96 * 1024 + 1)]}]
    said = begin(pair, new(pair, "long-recipe"), steps=run)
    assert said.status == 400 and "more than 96 KiB" in said.json["message"]
    many = [{"type": "RUN", "args": ["x" * 60_000]}]
    assert begin(pair, new(pair, "long-recipe"), steps=many * 17).status == 202
    assert begin(pair, new(pair, "long-recipe"), steps=many * 18).status == 413
    assert pair.ask("POST", "/v3/templates", {"name": "x" * 70_000}).status == 413, "others are short"


def test_few_long_recipes_are_read_at_once(pair):
    """Of one team fewer: another team's are read meanwhile."""
    def half_send(key):
        made = pair.ask("POST", "/v3/templates", {"name": "half-sent"}, key=key).json
        client = socket.create_connection(("127.0.0.1", pair.port), timeout=30)
        client.sendall(f"POST /v2/templates/{made['templateID']}/builds/{made['buildID']} HTTP/1.1\r\nHost: x\r\n"
                       f"X-API-KEY: {key}\r\nContent-Length: 200000\r\n\r\n".encode() + b"x" * 100_000)
        return client

    def refused(client):
        client.settimeout(30)
        return client.recv(100).startswith(b"HTTP/1.1 429")

    held = []
    try:
        for _ in range(4):
            held.append(half_send(pair.key))
        wait_for(lambda: refused(half_send(pair.key)), "four of them are there", 10)
        theirs = pair.ask("POST", "/v3/templates", {"name": "long"}, key=pair.other_key).json
        target = f"/v2/templates/{theirs['templateID']}/builds/{theirs['buildID']}"
        steps = [{"type": "RUN", "args": ["x" * 90_000]}]
        assert pair.ask("POST", target, {"fromImage": "a", "steps": steps}, key=pair.other_key).status == 202
        assert begin(pair, new(pair, "short")).status == 202, "a short one waits for nobody"
    finally:
        for client in held:
            client.close()


def test_a_build_of_no_template_is_not_begun(pair):
    made = new(pair, "on-nothing")
    target = f"/v2/templates/{made['templateID']}/builds/{made['buildID']}"
    for name in ("nothing", "other/first", "base:v7"):
        said = pair.ask("POST", target, {"fromTemplate": name, "steps": []})
        assert said.status == 404, said.raw
    assert pair.ask("POST", target, {"fromTemplate": "base", "steps": []}).status == 202


def test_a_build_is_cancelled(pair):
    made = new(pair, "cancelled")
    target = f"/templates/{made['templateID']}/builds/{made['buildID']}"
    assert pair.ask("DELETE", target, key=pair.other_key).status == 404
    assert pair.ask("DELETE", target).status == 204
    assert ended(pair, made)["reason"]["message"] == "the build was cancelled"
    assert begin(pair, made).status == 400


def test_a_password_is_nowhere_on_disk(pair):
    made = new(pair, "private-image")
    word = "a-password-that-is-looked-for"
    said = begin(pair, made, fromImageRegistry={"type": "registry", "username": "u", "password": word})
    assert said.status == 503 and "images daemon" in said.json["message"], "there is nobody to seal it for"
    for path in (p for base in (pair.base, pair.node.base) for p in base.rglob("*") if p.is_file()):
        assert word.encode() not in path.read_bytes(), path


# --- lists ---

def test_lists_are_those_of_the_team(pair):
    made = new(pair, "listed")
    mine = {t["templateID"]: t for t in pair.ask("GET", "/templates").json}
    assert mine[made["templateID"]]["names"] == ["test/listed"] and mine[made["templateID"]]["buildID"] == made["buildID"]
    theirs = pair.ask("GET", "/templates", key=pair.other_key).json
    assert made["templateID"] not in {t["templateID"] for t in theirs}


def test_pages_hold_each_template_once(pair):
    for i in range(5):
        new(pair, f"paged-{i}")
    everything = [t["templateID"] for t in pair.ask("GET", "/templates").json]
    seen, token = [], ""
    for _ in range(len(everything)):
        page = pair.ask("GET", f"/v2/templates?limit=2{token}")
        assert page.status == 200 and len(page.json) <= 2
        seen += [t["templateID"] for t in page.json]
        if not page.headers["X-Next-Token"]:
            break
        token = f"&nextToken={page.headers['X-Next-Token']}"
    assert seen == everything


def test_a_template_with_its_builds(pair):
    first, second = new(pair, "many-builds"), new(pair, "many-builds")
    got = pair.ask("GET", f"/templates/{first['templateID']}").json
    assert [b["buildID"] for b in got["builds"]] == [second["buildID"], first["buildID"]]
    assert got["names"] == ["test/many-builds"] and got["builds"][0]["status"] == "waiting"
    page = pair.ask("GET", "/templates/many-builds?limit=1")
    rest = pair.ask("GET", f"/templates/many-builds?nextToken={page.headers['X-Next-Token']}")
    assert [b["buildID"] for b in page.json["builds"] + rest.json["builds"]] == [second["buildID"], first["buildID"]]
    assert not rest.headers["X-Next-Token"]


# --- what is ready ---

def test_tags_aliases_and_visibility(pair):
    made = new(pair, "ready-one", tags=["default", "v1"])
    put_ready(pair, made, "readysnapshot1")
    assert status(pair, made).json["status"] == "ready"
    said = pair.ask("POST", "/templates/tags", {"target": "ready-one:v1", "tags": ["prod"]})
    assert said.status == 201 and said.json == {"buildID": made["buildID"], "tags": ["prod"]}
    tags = pair.ask("GET", "/templates/ready-one/tags").json
    assert {t["tag"] for t in tags} == {"default", "v1", "prod"} and tags[0]["buildID"] == made["buildID"]
    assert pair.ask("DELETE", "/templates/tags", {"name": "ready-one", "tags": ["v1"]}).status == 204
    refused = pair.ask("DELETE", "/templates/tags", {"name": "ready-one", "tags": ["default"]})
    assert refused.status == 400 and "default" in refused.json["message"]
    assert pair.ask("POST", "/templates/tags", {"target": "ready-one:v1", "tags": ["x"]}).status == 404

    alias = "/templates/aliases/ready-one"
    assert pair.ask("GET", alias).json == {"templateID": made["templateID"], "public": False}
    assert pair.ask("GET", alias + "%3Aprod").status == 200
    assert pair.ask("GET", alias + "%3Av1").status == 404
    assert pair.ask("GET", alias, key=pair.other_key).status == 404, "a name alone is one of one's own"
    whole = "/templates/aliases/test%2Fready-one"
    assert pair.ask("GET", whole, key=pair.other_key).status == 403
    assert pair.ask("GET", "/templates/aliases/nobody-has-it").status == 404

    changed = pair.ask("PATCH", f"/v2/templates/{made['templateID']}", {"public": True})
    assert changed.status == 200 and changed.json == {"names": ["test/ready-one"]}
    assert pair.ask("GET", whole, key=pair.other_key).json == {"templateID": made["templateID"], "public": True}
    assert pair.ask("GET", alias, key=pair.other_key).status == 404, "though it is public"
    said = pair.ask("POST", "/sandboxes", {"templateID": "ready-one", "timeout": 2000000}, key=pair.other_key)
    assert said.status == 404, "nobody gets sandboxes of others by publishing a name"
    for method, target, body in [("PATCH", f"/v2/templates/{made['templateID']}", {"public": False}),
                                 ("DELETE", f"/templates/{made['templateID']}", None)]:
        assert pair.ask(method, target, body, key=pair.other_key).status == 404
    assert pair.ask("PATCH", f"/templates/{made['templateID']}", {"public": False}).json == {}
    assert pair.ask("GET", whole, key=pair.other_key).status == 403


def test_create_finds_what_the_name_means(pair):
    """No VM starts here: what is found waits, or is refused for another reason than its name."""
    made = new(pair, "to-create")
    put_ready(pair, made, "readysnapshot2")
    for name, key, found in [("to-create", True, True), (made["templateID"], True, True), ("to-create:v9", True, False),
                             ("test/to-create", True, True), ("to-create", pair.other_key, False),
                             (made["templateID"], pair.other_key, False), ("test/to-create", pair.other_key, False)]:
        # a timeout that is too long is refused after the template was found
        said = pair.ask("POST", "/sandboxes", {"templateID": name, "timeout": 2000000}, key=key)
        assert said.status == (400 if found else 404), (name, said.raw)


def test_a_deleted_template_is_gone(pair):
    made = new(pair, "short-lived")
    put_ready(pair, made, "readysnapshot3")
    assert pair.ask("DELETE", f"/templates/{made['templateID']}", key=pair.other_key).status == 404
    assert pair.ask("DELETE", f"/templates/{made['templateID']}").status == 204
    assert pair.ask("DELETE", f"/templates/{made['templateID']}").status == 404
    assert pair.ask("GET", "/templates/short-lived").status == 404
    folder = pair.node.data / "snapshots/readysnapshot3"
    wait_for(lambda: not folder.exists(), "its snapshot is gone", 10)


# --- another team's does not exist ---

def test_another_teams_template_is_a_404_everywhere(pair):
    made = new(pair, "not-yours")
    tid, bid = made["templateID"], made["buildID"]
    for name in (tid, "not-yours", "test%2Fnot-yours"):
        for method, target, body in [
                ("GET", f"/templates/{name}", None), ("DELETE", f"/templates/{name}", None),
                ("PATCH", f"/templates/{name}", {"public": True}), ("PATCH", f"/v2/templates/{name}", {"public": True}),
                ("GET", f"/templates/{name}/tags", None), ("GET", f"/templates/{name}/files/{HASH}", None),
                ("GET", f"/templates/{name}/builds/{bid}/status", None),
                ("GET", f"/templates/{name}/builds/{bid}/logs", None), ("DELETE", f"/templates/{name}/builds/{bid}", None),
                ("POST", f"/v2/templates/{name}/builds/{bid}", {"fromImage": "a", "steps": []}),
                ("POST", "/templates/tags", {"target": name.replace("%2F", "/"), "tags": ["x"]}),
                ("DELETE", "/templates/tags", {"name": name.replace("%2F", "/"), "tags": ["x"]})]:
            said = pair.ask(method, target, body, key=pair.other_key)
            never = pair.ask(method, target.replace(name, NOWHERE), json.loads(json.dumps(body).replace(
                name.replace("%2F", "/"), NOWHERE)), key=pair.other_key)
            assert said.status == never.status == 404, (method, target, said.raw, never.raw)
    assert status(pair, made).json["status"] == "waiting"  # nothing of it came through


def test_a_team_with_templates_is_not_removed(pair):
    """They would be nobody's: used by others if they are public, built on, and never deleted."""
    team, key = pair.new_team("leaving")
    made = pair.ask("POST", "/v3/templates", {"name": "left"}, key=key).json
    refused = pair.admin("DELETE", f"/admin/teams/{team}")
    assert refused.status == 409 and "templates" in refused.json["message"], refused.raw
    assert pair.ask("GET", "/templates", key=key).status == 200, "its key is as it was"
    assert pair.admin("DELETE", f"/admin/templates/{made['templateID']}").status == 204
    assert pair.admin("DELETE", f"/admin/teams/{team}").status == 204
    assert pair.ask("GET", "/templates", key=key).status == 401


# --- a restart ---

def test_a_restart_of_node_keeps_templates(pair):
    made = new(pair, "kept", tags=["v1"])
    half = new(pair, "kept")
    pair.node.kill()
    pair.node.sql("update build set status = 1 where id = ?", half["buildID"])
    pair.node.begin()
    assert status(pair, made).json["status"] == "waiting"
    seen = status(pair, half).json
    assert seen["status"] == "error" and "restarted" in seen["reason"]["message"]
    assert begin(pair, made).status == 202
    ended(pair, made)
    pair.restart_node()
    assert status(pair, made).json["logEntries"], "the log is on disk"


def test_an_older_journal_is_brought_up(pair):
    pair.node.kill()
    journal = pair.node.data / "journal.db"
    db = sqlite3.connect(journal, isolation_level=None)
    before = db.execute("pragma user_version").fetchone()[0]
    for statement in ("drop table template", "drop table build", f"pragma user_version = {before - 1}"):
        db.execute(statement)
    db.close()
    pair.node.begin()
    assert pair.ask("GET", "/templates").status == 200
    assert begin(pair, new(pair, "after-an-upgrade")).status == 202


def test_a_journal_that_is_made_again_has_the_templates(pair):
    """What is ready is found again by its tags; what was deleted is not."""
    made, gone = new(pair, "made-again", tags=["default", "v1"]), new(pair, "made-again-gone")
    assert pair.ask("DELETE", f"/templates/{gone['templateID']}").status == 204
    put_ready(pair, made, "readysnapshot4")
    row = pair.node.data / "builds" / made["buildID"] / "row"
    assert not row.exists(), "put_ready() wrote behind node's back"
    # a change of a tag describes the template, as it is now
    assert pair.ask("POST", "/templates/tags", {"target": "made-again", "tags": ["v2"]}).status == 201
    assert (pair.node.data / "catalog" / made["templateID"] / "row").exists()
    pair.node.kill()
    for path in pair.node.data.glob("journal.db*"):
        path.unlink()
    pair.node.begin()
    assert {t["tag"] for t in pair.ask("GET", "/templates/made-again/tags").json} == {"default", "v1", "v2"}
    assert pair.ask("GET", "/templates/made-again-gone").status == 404
    assert pair.ask("GET", "/templates/first").status == 200


# --- uploads ---

def link(pair, made, digest, key=True):
    return pair.ask("GET", f"/templates/{made['templateID']}/files/{digest}", key=key)


def put(url, body, **more):
    """As the SDKs do: no key, the length said. A bytes object, or an iterable of pieces with `length`."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    target = f"{parts.path}?{parts.query}"
    connection.putrequest("PUT", target)
    for name, value in ({"Content-Length": str(more.pop("length", None) or len(body))} | more).items():
        connection.putheader(name, value)
    connection.endheaders()
    for piece in [body] if isinstance(body, bytes) else body:
        connection.send(piece)
    answer = connection.getresponse()
    return answer.status, answer.read()


def files_of(pair, team=None):
    folder = pair.node.data / "uploads" / (team or pair.team)
    return {p.name: p.stat().st_size for p in folder.iterdir()} if folder.exists() else {}


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def test_an_upload_is_there_afterwards(pair):
    made, name = new(pair, "with-files"), digest("one")
    first = link(pair, made, name)
    assert first.status == 201 and first.json["present"] is False
    assert first.json["url"].startswith(f"{pair.url}/uploads/"), "by the name that the client used"
    assert put(first.json["url"], b"an archive") == (200, b"")
    assert (pair.node.data / "uploads" / pair.team / name).read_bytes() == b"an archive"
    assert link(pair, made, name).json["present"] is True
    other = pair.ask("POST", "/v3/templates", {"name": "theirs"}, key=pair.other_key).json
    assert link(pair, other, name, key=pair.other_key).json["present"] is False, "uploads are a team's own"
    pair.restart_node()
    assert link(pair, made, name).json["present"] is True


@pytest.mark.parametrize("name", ["short", "G" * 64, digest("x").upper()])
def test_a_hash_that_is_none(pair, name):
    assert link(pair, new(pair, "with-files"), name).status == 400


def test_urls_are_signed_and_bound(pair):
    made = new(pair, "with-files")
    url = link(pair, made, digest("two")).json["url"]
    parts = urllib.parse.urlsplit(url)
    query = dict(urllib.parse.parse_qsl(parts.query))
    later = urllib.parse.urlencode({**query, "expires": int(query["expires"]) + 1})
    old = urllib.parse.urlencode({**query, "expires": 1})
    for wrong in (url.replace(digest("two"), digest("three")), url.replace(pair.team, pair.other_team),
                  url.replace(parts.query, later), url.replace(parts.query, old), url.split("?")[0],
                  url.replace(query["signature"], "0" * 64), url + "&signature=x"):
        code, said = put(wrong, b"x")
        assert code == 403 and json.loads(said)["code"] == 403, wrong
    assert int(query["expires"]) - time.time() < 3700
    assert digest("two") not in files_of(pair) and digest("three") not in files_of(pair)


def test_the_key_of_urls_is_the_gateways_own_and_lasts(pair):
    made = new(pair, "with-files")
    url = link(pair, made, digest("kept")).json["url"]
    pair.daemon.kill()
    pair.start()
    assert put(url, b"x")[0] == 200, "another gateway of the same folder knows it"


def test_a_length_must_be_said(pair):
    url = link(pair, new(pair, "with-files"), digest("four")).json["url"]
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    connection.request("PUT", f"{parts.path}?{parts.query}", iter([b"a", b"b"]), {"Transfer-Encoding": "chunked"},
                       encode_chunked=True)
    assert connection.getresponse().status == 411
    assert put(url, b"", length=1 + 2**30)[0] == 413


def test_what_is_broken_off_leaves_nothing(pair):
    url = urllib.parse.urlsplit(link(pair, new(pair, "with-files"), digest("broken")).json["url"])
    before = files_of(pair)
    with socket.create_connection((url.hostname, url.port)) as client:
        client.sendall(f"PUT {url.path}?{url.query} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n".encode() +
                       b"x" * 50000)
        wait_for(lambda: any(n.startswith(".new-") for n in files_of(pair)), "it is being written", 10)
    wait_for(lambda: files_of(pair) == before, "nothing is left of it", 10)


def test_two_at_once_of_one_hash(pair):
    url = urllib.parse.urlsplit(link(pair, new(pair, "with-files"), digest("twice")).json["url"])
    clients = [socket.create_connection((url.hostname, url.port)) for _ in range(2)]
    for c in clients:
        c.sendall(f"PUT {url.path}?{url.query} HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc".encode())
    wait_for(lambda: sum(n.startswith(".new-") for n in files_of(pair)) == 2, "both are being written", 10)
    for c in clients:
        c.sendall(b"def")
        assert c.recv(4096).startswith(b"HTTP/1.1 200")
        c.close()
    assert (pair.node.data / "uploads" / pair.team / digest("twice")).read_bytes() == b"abcdef"
    assert not [n for n in files_of(pair) if n.startswith(".new-")]


def test_room_that_was_promised_is_not_promised_again(pair):
    """Two teams that send at the same time do not fill the disk with what each of them was allowed."""
    small = pair.node.base / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", small], check=True)
    try:
        os.chown(small, NODE_UID, NODE_UID)
        pair.restart_node(data_dir=small, disk_reserve_mib=100)
        theirs = pair.ask("POST", "/v3/templates", {"name": "theirs"}, key=pair.other_key).json
        first = urllib.parse.urlsplit(link(pair, new(pair, "mine"), digest("a")).json["url"])
        second = link(pair, theirs, digest("b"), key=pair.other_key).json["url"]
        with socket.create_connection((first.hostname, first.port)) as client:
            client.sendall(f"PUT {first.path}?{first.query} HTTP/1.1\r\nHost: x\r\nContent-Length: {120 << 20}\r\n\r\nx".encode())
            uploads = small / "uploads" / pair.team
            wait_for(lambda: uploads.exists() and list(uploads.glob(".new-*")), "it is being written", 10)
            assert put(second, b"x", length=120 << 20)[0] == 507
            assert put(second, b"x" * 1000)[0] == 200, "a small one fits"
    finally:
        pair.restart_node()
        subprocess.run(["umount", "-l", small], check=True)


def test_a_restart_removes_what_was_half_written(pair):
    folder = pair.node.data / "uploads" / pair.team
    pair.node.kill()
    (folder / ".new-abc").write_bytes(b"half")
    os.chown(folder / ".new-abc", NODE_UID, NODE_UID)
    pair.node.begin()
    assert ".new-abc" not in files_of(pair)


def memory_kib(pid, what):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{what}:\s+(\d+) kB", text, re.M)[1])


def test_an_upload_of_100_mb_takes_no_memory(pair):
    size, piece = 100 * 1000 * 1000, os.urandom(1 << 20)
    url = link(pair, new(pair, "with-files"), digest("large")).json["url"]
    pid = pair.daemon.process.pid
    before, seen = memory_kib(pid, "VmRSS"), []

    def pieces():
        left = size
        while left > 0:
            seen.append(memory_kib(pid, "VmRSS"))
            yield piece[:min(left, len(piece))]
            left -= len(piece)

    assert put(url, pieces(), length=size)[0] == 200
    assert files_of(pair)[digest("large")] == size
    print(f"100 MB: {before} KiB before, {max(seen)} KiB at most")
    assert max(seen) - before < 8 * 1024


def test_what_was_used_least_goes_first(pair):
    made = new(pair, "with-files")
    pair.restart_node(upload_team_max_mib=2)
    before = files_of(pair)
    names = [digest(f"lru{i}") for i in range(3)]
    for name in names[:2]:
        assert put(link(pair, made, name).json["url"], b"x" * 700_000)[0] == 200
    assert digest("large") not in files_of(pair) and before
    link(pair, made, names[0])  # it is used again
    assert put(link(pair, made, names[2]).json["url"], b"x" * 700_000)[0] == 200
    left = files_of(pair)
    assert names[0] in left and names[1] not in left and names[2] in left
    code, said = put(link(pair, made, digest("too large")).json["url"], b"", length=3 * 1024 * 1024)
    assert code == 429 and "at most 2 MiB" in said.decode()
    pair.restart_node()


def test_urls_are_of_the_name_and_scheme_that_the_client_used():
    with LonePair(proxies="127.0.0.1") as pair:
        made = new(pair, "behind-a-proxy")
        for host, scheme in [("api.hotcell.test", "https"), ("api.hotcell.test:8443", "https"), ("127.0.0.1:7", "http")]:
            said = pair.ask("GET", f"/templates/{made['templateID']}/files/{HASH}", headers={
                "Host": host, "X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": scheme})
            assert said.json["url"].startswith(f"{scheme}://{host}/uploads/{pair.team}/{HASH}?expires="), said.raw


# --- what an operator sees ---

def test_status_tells_of_builds(pair):
    status = pair.admin("GET", "/admin/status").json
    node = status["node"]
    assert node["images"] is None and status["versions"]["images"] is None, "this node was given no images daemon"
    assert (node["buildsRunning"], node["buildsWaiting"], node["buildsMax"]) == (0, 0, 2), node
    assert (node["steps"], node["stepsBytes"], node["stepsMaxBytes"]) == (0, 0, 20480 << 20), node
    assert (node["grounds"], node["groundsSpare"], node["groundsBytes"]) == (0, 0, 0), node


def test_an_operator_sees_what_templates_take_and_what_holds_them(pair):
    """Blocks that another folder has, too, are not the template's own."""
    made = new(pair, "has-size")
    put_ready(pair, made, "readysnapshot5")
    folder, other = (pair.node.data / "snapshots" / name for name in ("readysnapshot5", "othersnapshot"))
    other.mkdir()
    (folder / "layer2").write_bytes(b"o" * (1 << 20))
    (folder / "layer1").write_bytes(b"s" * (3 << 20))
    os.link(folder / "layer1", other / "layer1")

    def row():
        return next(t for t in pair.admin("GET", "/admin/templates").json if t["templateID"] == made["templateID"])

    seen = wait_for(lambda: (r := row())["diskBytes"] and r, "sizes are looked at", 10)
    own = sum(512 * f.stat().st_blocks for f in folder.iterdir() if f.name != "layer1")
    assert (seen["diskBytes"], seen["sharedBytes"]) == (own, 3 << 20) and own >= 1 << 20, seen
    assert (seen["tagNames"], seen["tagCount"], seen["running"], seen["poolWanted"]) == (["default"], 1, 0, 0), seen
    one = pair.admin("GET", f"/admin/templates/{made['templateID']}").json
    assert one["builds"][0]["diskBytes"] == own and one["builds"][0]["tagNames"] == ["default"], one
    assert one["builds"][0]["why"] == [f"it is build {made['buildID']} of template {made['templateID']}"], one
    assert pair.admin("GET", f"/admin/templates/{NOWHERE}").status == 404
    assert pair.admin("GET", "/admin/templates/has-size").status == 404, "a name is of more than one team"
    (other / "layer1").unlink()
    other.rmdir()
    wait_for(lambda: row()["diskBytes"] == own + (3 << 20), "what nobody shares any more is its own", 10)
    assert pair.ask("DELETE", "/templates/has-size").status == 204
    assert "diskBytes" not in json.dumps(pair.ask("GET", "/templates").json), "that is for operators"


def test_an_operator_sees_all_templates_and_logs(pair):
    made = new(pair, "seen-by-operators")
    begin(pair, made)
    ended(pair, made)
    row = next(t for t in pair.admin("GET", "/admin/templates").json if t["templateID"] == made["templateID"])
    assert (row["name"], row["teamID"], row["buildCount"], row["sandboxes"]) == ("seen-by-operators", pair.team, 1, 0)
    said = pair.admin("GET", f"/admin/builds/{made['buildID']}")
    assert said.json["status"] == "error" and said.json["logEntries"][-1]["level"] == "error"
    assert pair.admin("GET", f"/admin/builds/{NO_BUILD}").status == 404
    assert pair.admin("DELETE", "/admin/templates/seen-by-operators").status == 404, "a name is of more than one team"
    assert pair.admin("DELETE", f"/admin/builds/{new(pair, 'seen-by-operators')['buildID']}").status == 204
    assert pair.admin("DELETE", f"/admin/templates/{made['templateID']}").status == 204
    assert pair.ask("GET", "/templates/seen-by-operators").status == 404


def test_node_says_whose_templates_all_teams_find(pair):
    """guest/template makes those of packages there."""
    for shared in ("acme", "", "hotcell"):
        pair.restart_node(shared_team=shared)
        wait_for(pair.serves, "the gateway has node")
        assert pair.admin("GET", "/admin/status").json["node"]["sharedTeam"] == shared
    pair.restart_node()
