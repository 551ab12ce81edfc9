"""test_template_rows.py - 1,000 templates of ten teams, 200 of them with a folder: a real gateway and node, no VM.

Times are printed. What is asserted is far above them, and below what a table that is searched badly would take.
"""

import contextlib
import os
import sqlite3
import time
import uuid

import pytest

from lone_node import NODE_UID
from lone_pair import LonePair
from warden import wait_for

TEMPLATES, ON_DISK, TEAMS = 1000, 200, 10
EACH = TEMPLATES // TEAMS
QUICK_S = 5  # a busy machine, with sanitizers


def fill(pair):
    """Rows as node writes them; of some what came of a build."""
    now = time.time_ns()
    with contextlib.closing(sqlite3.connect(pair.node.data / "journal.db")) as db, db:
        for i in range(TEMPLATES):
            team, template, build = pair.teams[i % TEAMS][0], f"t{i:019}", str(uuid.UUID(int=i + 1))
            snapshot = f"s{i:019}" if i < ON_DISK else ""
            tags = f"default {build} {now}\nv{i} {build} {now}\n" if snapshot else ""
            db.execute("insert into template values (?, ?, ?, ?, ?, ?, 0, 0, 0, ?)",
                       (template, team, f"team{i % TEAMS}", f"name{i}", now + i, now + i, tags))
            db.execute("insert into build values (?, ?, ?, '', ?, ?, ?, 2, 1024, 2048, 0, 0, 'default', null)",
                       (build, template, snapshot, now + i, now + i if snapshot else 0, 2 if snapshot else 0))
            if snapshot:
                db.execute("insert into snapshot (id, team, base_id, parent, source, name, tag, control_token, created_ns,"
                           " memory_bytes, disk_bytes, vcpus, memory_mib, disk_mib, layers, hidden, kind)"
                           " values (?, ?, 'base-0', '', '', '', 'default', '', ?, 0, 0, 2, 1024, 2048, 1, 0, 2)", (snapshot, team, now + i))
                folder = pair.node.data / "snapshots" / snapshot
                folder.mkdir(mode=0o700)
                (folder / "layer1").write_bytes(b"o" * 4096)
                for path in (folder, folder / "layer1"):
                    os.chown(path, NODE_UID, NODE_UID)


@pytest.fixture(scope="module")
def pair():
    with LonePair() as pair:
        pair.teams = [pair.new_team(f"team{i}") for i in range(TEAMS)]
        pair.node.kill()
        fill(pair)
        begun = time.monotonic()
        pair.node.begin()
        pair.start_s = time.monotonic() - begun
        wait_for(lambda: pair.ask("GET", "/templates", key=pair.teams[0][1]).status == 200, "the gateway has node again", 10)
        yield pair


def timed(what, call):
    begun = time.monotonic()
    done = call()
    took = time.monotonic() - begun
    print(f"{what}: {took * 1000:.0f} ms")
    assert took < QUICK_S, what
    return done


def test_node_starts_quickly(pair):
    print(f"\nnode starts with {TEMPLATES} templates, {ON_DISK} on disk: {pair.start_s * 1000:.0f} ms")
    assert pair.start_s < QUICK_S


def test_lists_are_whole_and_quick(pair):
    key = pair.teams[3][1]
    mine = timed("list of a team", lambda: pair.ask("GET", "/templates", key=key).json)
    assert len([t for t in mine if t["names"][0].startswith("team3/")]) == EACH == len(mine) - 1, "base, and all of the team's"
    pages, token = [], ""
    while token is not None:
        page = timed("a page", lambda at=token: pair.ask("GET", f"/v2/templates?limit=40&nextToken={at}", key=key))
        pages += page.json
        token = page.headers.get("x-next-token")
        assert len(pages) <= EACH + 1
    assert [t["templateID"] for t in pages] == [t["templateID"] for t in mine]
    everything = timed("list of an operator, with sizes", lambda: pair.admin("GET", "/admin/templates").json)
    assert len({t["templateID"] for t in everything}) == len(everything) == TEMPLATES + 1
    assert sum((t.get("diskBytes") or 0) >= 4096 for t in everything) == ON_DISK


def test_names_are_found_quickly(pair):
    for i in (0, 7, ON_DISK - 1):
        key = pair.teams[i % TEAMS][1]
        said = timed("create by name", lambda name=f"name{i}:v{i}", key=key: pair.ask("POST", "/sandboxes", {"templateID": name}, key=key))
        assert said.status == 503, said.raw  # it is found; this host has no VM for it
        assert pair.ask("POST", "/sandboxes", {"templateID": f"name{i}:nope"}, key=key).status == 404
        tags = timed("a tag more", lambda name=f"name{i}", key=key: pair.ask("POST", "/templates/tags", {"target": name, "tags": ["more"]}, key=key))
        assert tags.status == 201, tags.raw
    other = pair.ask("POST", "/sandboxes", {"templateID": "name1"}, key=pair.teams[0][1])
    assert other.status == 404, "of another team"


def test_the_limit_of_the_host_is_named(pair):
    key = pair.teams[0][1]
    refused = pair.ask("POST", "/v3/templates", {"name": "one-more"}, key=key)
    assert refused.status == 429 and f"this host has {TEMPLATES} templates, as it may" in refused.json["message"], refused.raw
    assert timed("delete", lambda: pair.ask("DELETE", f"/templates/name{TEMPLATES - TEAMS}", key=key)).status == 204
    assert timed("create", lambda: pair.ask("POST", "/v3/templates", {"name": "one-more"}, key=key)).status == 202
