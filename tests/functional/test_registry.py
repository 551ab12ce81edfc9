"""test_registry.py - a build from a private registry: its password goes from a client to the images daemon, and to nobody between.

A real gateway, node, images daemon, skopeo and registry; no VM: a build ends soon after its image was found.
"""

import contextlib
import json
import pathlib
import secrets
import socket

import pytest

from lone_images import LoneImages, new_folder, processes_of
from lone_images import UID as IMAGES_UID
from lone_node import NODE_UID
from lone_pair import LonePair
from made_images import Image
from node_client import NodeError, value
from registry import USER, Registry
from search import Needles
from warden import is_sanitized, wait_for

PATIENCE = 60
PASSWORD, WRONG = secrets.token_urlsafe(48), secrets.token_urlsafe(48)


class Place:
    def __init__(self, base, registry, images, pair):
        self.base, self.registry, self.images, self.pair = base, registry, images, pair
        self.image = Image([{"etc/os-release": b"ID=test\n"}])
        self.name = registry.push("team/app", "1", self.image)

    def restart_node(self, **settings):
        self.pair.restart_node(images_socket=self.images.socket, **settings)
        wait_for(self.knows_the_key, "node knows whom to seal for", PATIENCE, 0.02)

    def knows_the_key(self):
        with contextlib.suppress(NodeError):
            return self.pair.node.client.call("SEAL_KEY", flags=value("NODE_FOR_IMAGES")).text["sealKey"]
        return None

    def begin(self, password=None, key=True, **more):
        """A template of its own each time, so that nothing is found again."""
        if password:
            more["fromImageRegistry"] = {"type": "registry", "username": USER, "password": password}
        made = self.pair.ask("POST", "/v3/templates", {"name": f"t{secrets.token_hex(8)}"}, key=key).json
        target = f"/v2/templates/{made['templateID']}/builds/{made['buildID']}"
        said = self.pair.ask("POST", target, {"fromImage": self.name, "steps": [], "force": False, **more}, key=key)
        return made, said

    def look(self, made, key=True):
        return self.pair.ask("GET", f"/templates/{made['templateID']}/builds/{made['buildID']}/status", key=key).json

    def end_of(self, password=None):
        made, said = self.begin(password)
        assert said.status == 202, said.raw
        seen = wait_for(lambda: (s := self.look(made))["status"] == "error" and s, "the build ended", PATIENCE)
        return seen["reason"], [line["message"] for line in seen["logEntries"]]


@pytest.fixture(scope="module")
def place():
    with new_folder() as made, LonePair() as pair:
        base = pathlib.Path(made)
        with Registry(base / "registry", password=PASSWORD) as registry, \
                LoneImages(base, insecure=registry.host, node_uid=NODE_UID) as images:
            place = Place(base, registry, images, pair)
            place.restart_node()
            yield place


def resolved(place, lines):
    return any(place.image.digest in line for line in lines)


def test_with_the_right_password_the_image_is_found(place):
    reason, lines = place.end_of(PASSWORD)
    assert resolved(place, lines), lines
    assert "unauthorized" not in reason["message"], "what fails afterwards is the VM that there is none for"


@pytest.mark.parametrize("password", [None, WRONG], ids=["none", "wrong"])
def test_without_it_the_reason_says_so(place, password):
    reason, lines = place.end_of(password)
    assert reason["step"] == "base" and "unauthorized" in reason["message"] and place.registry.host in reason["message"]
    assert not resolved(place, lines)


def test_it_is_asked_for_each_time(place):
    """What is in the store already is nobody's without it."""
    assert resolved(place, place.end_of(PASSWORD)[1])
    assert "unauthorized" in place.end_of()[0]["message"]


def test_no_trace_is_left(place):
    needles = Needles(PASSWORD, WRONG)
    place.end_of(PASSWORD)
    place.end_of(WRONG)
    for folder in (place.images.data, place.pair.base, place.pair.node.base):
        n, found = needles.in_folder(folder)
        assert n > 0 and not found, found
    logs = [place.images.daemon.log(), place.pair.daemon.log(), place.pair.node.log()]
    assert all(logs) and not any(needles.within(log.encode()) for log in logs)
    mark = place.base / "mark"
    mark.write_text(json.dumps({"password": PASSWORD}))
    assert needles.in_file(mark), "the search would find it"
    mark.unlink()
    if is_sanitized():
        return  # it keeps what was freed
    images = wait_for(lambda: len(all_ := processes_of(IMAGES_UID)) == 2 and all_, "its jobs are over", PATIENCE, 0.02)
    pids = {"gateway": place.pair.daemon.pid, "node": place.pair.node.process.pid, "images": images[0], "forkserver": images[1]}
    found = {name: needles.in_memory(pid) for name, pid in pids.items()}
    assert not any(found.values()), found


def test_without_an_images_daemon_the_refusal_says_so(place):
    place.pair.restart_node()
    try:
        made, said = place.begin(PASSWORD)
        assert said.status == 503 and said.json["message"] == "this server has no images daemon: set images_socket"
        assert place.look(made)["status"] == "waiting", "it can be asked for again"
    finally:
        place.restart_node()


def test_in_clear_node_does_not_take_it(place):
    """A gateway that passes on what it was given."""
    made = place.pair.ask("POST", "/v3/templates", {"name": "clear"}).json
    text = {"fromImage": place.name, "steps": [], "force": False, "registry": {"username": USER, "password": "in clear"}}
    place.pair.node.client.call("BUILD_START", team=place.pair.team, template_id=made["templateID"], id=made["buildID"],
                                text=json.dumps(text).encode())
    seen = wait_for(lambda: (s := place.look(made))["status"] == "error" and s, "the build ended", PATIENCE)
    assert seen["reason"]["message"] == "credentials of a registry are not sealed"


def silent():
    """A registry that takes a connection and says nothing."""
    listener = socket.create_server(("127.0.0.1", 0))
    return listener, "127.0.0.1:%d" % listener.getsockname()[1]


def test_an_images_daemon_that_ends_is_named_with_what_to_do(place):
    listener, host = silent()
    with listener:
        made = place.begin(fromImage=f"{host}/x:1")[0]
        wait_for(lambda: any("Resolving" in e["message"] for e in place.look(made)["logEntries"]), "it is fetched", PATIENCE, 0.02)
        place.images.end()
        seen = wait_for(lambda: (s := place.look(made))["status"] == "error" and s, "the build ended", PATIENCE)
        assert seen["reason"]["message"] == ("the images daemon (hotcell-images) ended while it worked on the image: "
                                             "build again; its log says why it ended")
    assert place.end_of()[0]["message"] == ("the images daemon (hotcell-images) does not run: an operator has to start it, "
                                            "its log says why it ended")
    place.images.start()
    place.restart_node()


def test_builds_of_teams_take_turns(place):
    """However many one of them has asked for before."""
    other_key = place.pair.new_team("modest")[1]
    place.restart_node(builds_max=1)
    listener, host = silent()
    with listener:
        first = place.begin(fromImage=f"{host}/x:1")[0]
        wait_for(lambda: place.look(first)["logEntries"], "it is under way", PATIENCE, 0.02)
        many = [place.begin()[0] for _ in range(3)]
        theirs = place.begin(key=other_key)[0]
        assert place.look(theirs, other_key)["logEntries"] == []
        assert place.pair.ask("DELETE", f"/templates/{first['templateID']}/builds/{first['buildID']}").status == 204
        seen = wait_for(lambda: all((s := place.look(m))["status"] == "error" for m in many) and s, "they ended", PATIENCE)
        other = place.look(theirs, other_key)
        assert seen and other["status"] == "error"
        begun = [place.look(m)["logEntries"][0]["timestamp"] for m in many]
        assert begun == sorted(begun), "of one team in the order they came"
        assert other["logEntries"][0]["timestamp"] < begun[0]
    place.restart_node()
