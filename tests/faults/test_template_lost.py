"""test_template_lost.py - what is saved is a difference from a template: a bit of that flips, a file of it is gone, it is
another one, or it is not there. Whoever wants what was saved is told so; nothing of it is deleted; and when the template
is put back it goes on, to the byte.

Beside it lies a whole template of the same kernel and disk, so that new sandboxes need not wait for one to be built.
"""

import hashlib
import json
import os
import shutil
import subprocess

import pytest

from server import CALL_SECONDS, Server
from warden import build_dir, wait_for

AGAIN_SECONDS = 40  # node reads what was damaged again after a while
MAKE = ("head -c 3000000 /dev/urandom > /dev/shm/data; cp /dev/shm/data /home/user/data; sha256sum < /dev/shm/data > "
        "/home/user/sum; sync; setsid bash -c 'exec 3<> <(:); while :; do n=$((n+1)); echo $n 1<>/dev/shm/n; "
        "read -t 0.5 -u 3; done' >/dev/null 2>&1 </dev/null & cat /home/user/sum")


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        yield s


def target_of(box, what=""):
    return f"/sandboxes/{box['sandboxID']}{what}"


def files_of(server, box):
    """Everything there is of a paused sandbox, by its content."""
    folder = server.data / "sandboxes" / box["sandboxID"]
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in folder.iterdir()}


class Template:
    """The one that was used so far. Its files are links to other tests' ones: none is written to."""

    def __init__(self, server):
        self.id = server.admin("GET", "/admin/templates").json[0]["templateID"]
        self.folder = server.warden.state / "templates" / self.id
        self.aside = server.warden.state / "aside"
        self.aside.mkdir()

    def add_twin(self):
        """Another build of the same, newer: in its manifest and by its name."""
        twin = self.folder.with_name(self.id[:17] + "-testtwin")
        twin.mkdir(mode=0o755)
        for f in self.folder.iterdir():
            if f.name != "manifest":
                os.link(f, twin / f.name)
        manifest = json.loads((self.folder / "manifest").read_text())
        manifest.update(template=twin.name, created="2099-01-01T00:00:00Z")
        (twin / "manifest").write_text(json.dumps(manifest))
        return twin.name

    def lose(self, name):
        (self.folder / name).rename(self.aside / name)

    def put_back(self, name):
        (self.aside / name).replace(self.folder / name)

    def flip_bit(self, name):
        self.lose(name)
        subprocess.run(["cp", "--sparse=always", self.aside / name, self.folder / name], check=True)
        os.chmod(self.folder / name, 0o644)
        with open(self.folder / name, "r+b") as f:
            f.seek(-1, os.SEEK_END)
            last = f.read(1)
            f.seek(-1, os.SEEK_END)
            f.write(bytes([last[0] ^ 1]))

    def make_another(self):
        """As a node of before did, that built one under the same id."""
        self.lose("manifest")
        manifest = json.loads((self.aside / "manifest").read_text())
        manifest["files"]["memory"]["crc32c"] = f"{int(manifest['files']['memory']['crc32c'], 16) ^ 1:08x}"
        (self.folder / "manifest").write_text(json.dumps(manifest))


def check_lost(answer, *words):
    assert answer.status == 412 and answer.json["reason"] == "base_lost", (answer.status, answer.raw)
    assert all(word in answer.json["message"] for word in words), (words, answer.json)


def connect(server, box, **how):
    return server.api("POST", target_of(box, "/connect"), {"timeout": 3600, **how}, seconds=CALL_SECONDS)


def check_lost_and_kept(server, box, before, *words, **how):
    check_lost(connect(server, box, **how), *words)
    assert server.must("GET", target_of(box))["state"] == "paused"
    assert files_of(server, box) == before


def restart_node(server):
    server.restart("node")
    server.wait_up()
    server.wait_template()


def told_of(server, template):
    return next((t for t in server.admin("GET", "/admin/templates").json if t["templateID"] == template.id), {})


def check_doctor(server, *words):
    said = subprocess.run([build_dir() / "src/cli/hotcell", "--socket", server.admin_socket, "doctor"],
                          capture_output=True, text=True, timeout=CALL_SECONDS).stdout
    line = next(line for line in said.splitlines() if line.split()[1] == "templates")
    assert all(word in line for word in words), said


def check_goes_on(server, box, total):
    """What was in its memory and on its disk, and what ran."""
    def resumed():
        answer = connect(server, box)
        assert answer.status in (200, 201) or answer.json["reason"] == "base_lost", (answer.status, answer.raw)
        return answer.status != 412

    wait_for(resumed, "it is resumed", AGAIN_SECONDS, 0.5)
    for name in ("/dev/shm/data", "/home/user/data"):
        assert server.run(box, f"sha256sum < {name}") == total
    count = server.run(box, "cat /dev/shm/n")
    wait_for(lambda: server.run(box, "cat /dev/shm/n") != count, "it counts on", CALL_SECONDS, 0.2)


def test_what_differs_from_a_lost_template_waits_for_it(server):
    template = Template(server)
    box, boots = server.create(), server.create()
    total = server.run(box, MAKE)
    other = server.run(boots, MAKE)
    snapshot = server.must("POST", target_of(boots, "/snapshots"), {})["snapshotID"]
    for b in (box, boots):
        assert server.must("POST", target_of(b, "/pause"), {}) is None
    before = files_of(server, box)

    server.kill("node")
    twin = template.add_twin()
    template.flip_bit("memory")
    restart_node(server)
    check_lost_and_kept(server, box, before, template.id, "memory")
    assert told_of(server, template)["buildStatus"] == "damaged"
    assert server.node_status()["templatesLost"] == [template.id]
    check_doctor(server, "FAIL", template.id, "memory")
    new = server.create()
    assert new["templateID"] == twin, new
    assert server.delete(new) == 204
    answer = connect(server, boots, memory=False)  # it needs no memory of it
    assert answer.status in (200, 201), answer.raw
    assert server.run(boots, "sha256sum < /home/user/data") == other
    assert server.must("POST", target_of(boots, "/pause"), {"memory": False}) is None

    server.kill("node")
    template.put_back("memory")
    template.lose("disk")
    restart_node(server)
    check_lost_and_kept(server, box, before, template.id, "disk")
    check_lost(connect(server, boots, memory=False), "disk")
    check_lost(server.api("POST", "/sandboxes", {"templateID": snapshot, "timeout": 60}), "disk")

    server.kill("node")
    template.put_back("disk")
    template.make_another()
    restart_node(server)
    check_lost_and_kept(server, box, before, template.id, "is another")

    server.kill("node")
    template.put_back("manifest")
    template.folder.rename(template.aside / template.id)
    restart_node(server)
    check_lost_and_kept(server, box, before, template.id, "No such file")
    wait_for(lambda: told_of(server, template).get("buildStatus") == "missing", "it is told", CALL_SECONDS, 0.2)

    (template.aside / template.id).rename(template.folder)
    check_goes_on(server, box, total)  # without a restart of anything
    made = server.must("POST", "/sandboxes", {"templateID": snapshot, "timeout": 60})
    assert server.run(made, "sha256sum < /dev/shm/data") == other
    for b in (box, boots, made):
        assert server.delete(b) == 204
    assert server.api("DELETE", f"/templates/{snapshot}").status == 204
    assert "TEMPLATE_DROP" not in server.daemons["node"].log() and template.folder.is_dir()
    shutil.rmtree(template.aside)
