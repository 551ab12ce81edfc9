"""test_template_names.py - templates and snapshots share their names: sandboxes of a template's tags, with real VMs.

A snapshot that is taken with a template's name is a build of it. That is a ready build without the minutes of one.
"""

import pytest

from server import Server, wait_for


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        s.other_team, s.other_key = s.new_team("other")
        yield s


def test_a_sandbox_of_a_template_says_so(server):
    made = server.must("POST", "/v3/templates", {"name": "web"})
    tid = made["templateID"]
    source = server.create()
    server.must("POST", f"/sandboxes/{source['sandboxID']}/snapshots", {"name": "web:v1"})
    assert [t["tag"] for t in server.must("GET", f"/templates/{tid}/tags")] == ["v1"]
    assert {b["status"] for b in server.must("GET", f"/templates/{tid}")["builds"]} == {"waiting", "ready"}

    box = server.create(templateID="web:v1")
    assert (box["templateID"], box["alias"]) == (tid, "web")
    by_id = server.create(templateID=f"{tid}:v1")
    seen = server.must("GET", f"/v2/sandboxes?template={tid}")
    assert {s["sandboxID"] for s in seen} == {box["sandboxID"], by_id["sandboxID"]}
    assert {(s["templateID"], s["alias"]) for s in seen} == {(tid, "web")}
    assert server.must("GET", "/templates")[-1]["spawnCount"] == 2
    base, mine = server.admin("GET", "/admin/templates").json
    assert (base["running"], base["sandboxes"], base["snapshots"]) == (1, 1, 1) and base["diskBytes"] > 100 << 20, base
    assert base["lastSpawnedAt"] < mine["lastSpawnedAt"] and (mine["running"], mine["sandboxes"]) == (2, 2), mine
    assert mine["diskBytes"] > 1 << 20 and mine["tagNames"] == ["v1"], mine
    assert any(box["sandboxID"] in line for line in server.admin("GET", f"/admin/templates/{tid}").json["builds"][0]["why"])

    # another team: not by any name, until it is public; never to write
    for name in ("web:v1", f"{tid}:v1", "test/web:v1"):
        assert server.api("POST", "/sandboxes", {"templateID": name}, key=server.other_key).status == 404
    server.must("PATCH", f"/v2/templates/{tid}", {"public": True})
    theirs = server.create(templateID=f"{tid}:v1", key=server.other_key)
    assert theirs["templateID"] == tid
    assert server.api("DELETE", f"/templates/{tid}", key=server.other_key).status == 404

    # after a restart of node the same is said
    server.restart("node")
    assert server.must("GET", f"/sandboxes/{box['sandboxID']}")["templateID"] == tid

    # what is used is not deleted
    refused = server.api("DELETE", f"/templates/{tid}")
    assert refused.status == 400 and "because there are 3 sandboxes using it" in refused.json["message"]
    for each, key in [(box, True), (by_id, True), (theirs, server.other_key)]:
        assert server.delete(each, key) == 204
    assert server.api("DELETE", f"/templates/{tid}").status == 204
    assert server.api("POST", "/sandboxes", {"templateID": "web:v1"}).status == 404
    # nobody has made it: who asked for it by its default name reads how it is made
    said = server.api("POST", "/sandboxes", {"templateID": "code-interpreter-v1"})
    assert said.status == 404 and said.json["message"].startswith("template 'code-interpreter-v1' not found: "), said.raw
    assert "guest/template" in said.json["message"]
    wait_for(lambda: server.must("GET", "/snapshots") == [], "its snapshot went with it")
    assert server.delete(source) == 204
