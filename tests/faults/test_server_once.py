"""test_server_once.py - what is sent again is done once, and what nobody was told of does not stay.

Needs a build with -Dfaults=true: node dies between its work and its answer.
"""

import http.client
import json
import threading

import pytest

from server import TEMPLATE, Server, wait_for

PATIENCE = 180  # seconds, for what an emulated guest does on a busy machine


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        yield s


@pytest.fixture(autouse=True)
def nothing_left(server):
    """What one test leaves is not another's."""
    yield
    for sandbox in server.ids():
        server.admin("DELETE", f"/admin/sandboxes/{sandbox}")
    for snapshot in server.must("GET", "/snapshots"):
        server.api("DELETE", f"/templates/{snapshot['snapshotID']}")


@pytest.fixture
def source(server):
    return server.create()


def snapshots_on_disk(server):
    return {path.name for path in (server.base / "node/snapshots").iterdir()}


def snapshots_known(server):
    return {snapshot["snapshotID"] for snapshot in server.admin("GET", "/admin/snapshots").json}


def ask_while_node_dies(server, step, target, body):
    """The answer of a request in whose middle node dies and comes back."""
    answers = []
    server.restart("node", die_at=step)
    server.wait_up()
    client = threading.Thread(target=lambda: answers.append(server.api("POST", target, body, seconds=PATIENCE)))
    client.start()
    server.daemons["node"].wait_dead(PATIENCE)
    server.start("node", die_at="")
    client.join(PATIENCE)
    assert answers, "no answer"
    return answers[0]


def test_a_create_that_node_died_of_is_one_sandbox(server):
    answer = ask_while_node_dies(server, "create.running", "/sandboxes", {"templateID": TEMPLATE, "timeout": 3600})
    assert answer.status == 201, (answer.status, answer.raw)
    assert server.ids() == {answer.json["sandboxID"]}
    assert server.run(answer.json, "echo here") == "here"


def test_a_snapshot_that_node_died_of_is_one_snapshot(server, source):
    answer = ask_while_node_dies(server, "snapshot.row", f"/sandboxes/{source['sandboxID']}/snapshots", {})
    assert answer.status == 201, (answer.status, answer.raw)
    assert {f"{name}:default" for name in snapshots_known(server)} == {answer.json["snapshotID"]}


def test_a_fork_that_node_died_of_has_its_copies_once(server, source):
    answer = ask_while_node_dies(server, "fork.child", f"/sandboxes/{source['sandboxID']}/fork",
                                 {"count": 2, "timeout": 3600})
    assert answer.status == 201, (answer.status, answer.raw)
    copies = {copy["sandbox"]["sandboxID"] for copy in answer.json}
    assert len(copies) == 2
    wait_for(lambda: server.ids() == copies | {source["sandboxID"]}, "nothing but what was answered", PATIENCE, 0.2)


def begin(server, target, body):
    """A request whose answer nobody reads; returns when node works on it."""
    client = http.client.HTTPConnection("127.0.0.1", server.port)
    client.request("POST", target, json.dumps(body), {"X-API-KEY": server.key, "content-type": "application/json"})
    wait_for(lambda: snapshots_on_disk(server), "a snapshot is begun", PATIENCE, 0.01)
    return client


def expect_nothing_but(server, source):
    server.wait_up()
    wait_for(lambda: not snapshots_on_disk(server) and server.ids() == {source["sandboxID"]},
             "nothing but the source stays", PATIENCE, 0.1)
    assert not snapshots_known(server)


COPIES = [("fork", {"count": 2, "timeout": 3600}), ("snapshots", {})]


@pytest.mark.parametrize("what,body", COPIES, ids=["fork", "snapshot"])
def test_nothing_stays_when_the_client_hangs_up(server, source, what, body):
    begin(server, f"/sandboxes/{source['sandboxID']}/{what}", body).close()
    expect_nothing_but(server, source)


def test_nothing_stays_when_the_gateway_dies(server, source):
    """Node waits for it to come back, for 15 seconds."""
    clients = [begin(server, f"/sandboxes/{source['sandboxID']}/{what}", body) for what, body in COPIES]
    clients.append(begin(server, "/sandboxes", {"templateID": TEMPLATE, "timeout": 3600}))
    server.restart("gateway")
    for client in clients:
        client.close()
    expect_nothing_but(server, source)


def test_a_snapshot_with_a_name_stays(server, source):
    """Its name may be asked for, and may have been another's."""
    client = begin(server, f"/sandboxes/{source['sandboxID']}/snapshots", {"name": "kept"})
    client.close()
    wait_for(lambda: [s["names"] for s in server.must("GET", "/snapshots")], "it is listed", PATIENCE, 0.1)
