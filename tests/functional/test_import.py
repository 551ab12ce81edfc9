"""test_import.py - `hotcell templates import`: templates out of images in files, on a host without a registry.

Images are small roots of Debian: one takes as long as a boot. What is refused boots nothing.
"""

import gzip
import json
import os
import subprocess
import time

import pytest

from asking import UnixConnection
from engine import artefact
from made_images import Image
from sdk_builds import SdkClient
from server import Server, wait_for
from small_root import small_root
from warden import build_dir

SECONDS = 300  # an import, emulated, on a busy machine
SIZES = ["--cpus", "1", "--memory", "256"]


@pytest.fixture(scope="module")
def server():
    with Server(images={}) as s:
        s.other_team, s.other_key = s.new_team("other")
        yield s


@pytest.fixture(scope="module")
def image():
    return Image([small_root(), {"srv/note": b"of a layer above\n"}], env=["OF_IMAGE=yes"], compress=False)


@pytest.fixture(scope="module")
def layout(image, tmp_path_factory):
    return image.layout_archive(tmp_path_factory.mktemp("layout") / "image.tar")


def hotcell(server, *words):
    begun = time.monotonic()
    done = subprocess.run([build_dir() / "src/cli/hotcell", "--socket", server.admin_socket, *map(str, words)],
                          capture_output=True, text=True, timeout=SECONDS)
    print(*words[:4], f"ended with {done.returncode} in {time.monotonic() - begun:.1f} s")
    return done


def imported(server, *words):
    done = hotcell(server, "templates", "import", *words, *SIZES)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refused(server, *words):
    done = hotcell(server, "templates", "import", *words)
    assert done.returncode in (1, 3) and done.stderr.count("fix: ") == 1, (done.returncode, done.stdout, done.stderr)
    print(done.stderr)
    return done.stderr


def build_of(server, name, team=None):
    """The newest build of a template, as an operator sees it."""
    rows = [t for t in server.admin("GET", "/admin/templates").json
            if t.get("name") == name and t["teamID"] == (team or server.team)]
    return server.admin("GET", f"/admin/builds/{rows[0]['build']['buildID']}").json


def files_left(server):
    return [p for p in (server.data / "builds").rglob("*") if p.name in ("disk", "archive")]


def open_archives(server):
    """Files without a name that node has open, and that were an archive's."""
    folder = f"/proc/{server.pids['node']}/fd"
    names = [os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder) if os.path.lexists(f"{folder}/{fd}")]
    return [name for name in names if name.endswith("/archive (deleted)")]


def test_a_layout_becomes_a_template(server, layout):
    """With the published package."""
    said = imported(server, layout, "of-layout", "--team", "test", "--public")
    for part in ("[base] Reading the archive", "[base] Booting the image", "[finalize] Template is saved", "test/of-layout is ready",
                 'Sandbox.create("test/of-layout")'):
        assert part in said, said
    with SdkClient(server, artefact("sdks")) as sdk:
        assert sdk.run("of-layout", "id -un; nproc; cat /srv/note; echo $OF_IMAGE").splitlines() == ["user", "1", "of a layer above", "yes"]
    build = build_of(server, "of-layout")
    assert build["status"] == "ready" and hotcell(server, "templates", "logs", build["buildID"]).stdout.count("[base]") > 3


def test_all_teams_use_a_public_one(server, layout):
    box = server.create(templateID="test/of-layout", key=server.other_key)
    assert server.run(box, "cat /srv/note") == "of a layer above"
    server.delete(box, key=server.other_key)
    listed = {t["name"]: t for t in server.admin("GET", "/admin/templates").json if t.get("name")}
    assert listed["of-layout"]["public"] is True


def test_the_same_file_is_not_booted_again(server, layout, tmp_path):
    """By its digest; for another team, and by a symbolic link. With commands: what was started is in the snapshot."""
    link = tmp_path / "link"
    link.symlink_to(layout)
    said = imported(server, link, "again", "--team", server.other_team, "--tag", "of-a-link", "--start-command",
                    "echo '50% & more' > /tmp/said; exec -a 'start &d?' sleep 1234", "--ready-command", "test -s /tmp/said")
    assert "Booting the image" not in said and "Making a disk" not in said and "Template is ready" in said, said
    box = server.create(templateID="again:of-a-link", key=server.other_key)
    assert server.run(box, "echo $OF_IMAGE; cat /tmp/said; cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -cx 'start &d[?]'") == "yes\n50% & more\n1"
    server.delete(box, key=server.other_key)
    assert server.api("POST", "/sandboxes", {"templateID": "other/again"}).status == 404, "it is not public"


def test_what_docker_save_writes_becomes_a_template(server, image, tmp_path):
    done = hotcell(server, "templates", "import", image.docker_archive(tmp_path / "saved.tar"), "of-docker", "--team", server.team,
                   "--json", *SIZES)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert (made["names"], made["public"]) == (["test/of-docker"], False)
    box = server.create(templateID=made["templateID"])
    assert server.run(box, "cat /srv/note; echo $OF_IMAGE") == "of a layer above\nyes"
    server.delete(box)


def damaged(path):
    """Whole as a tar file, but a layer is not what its digest says. What is known already is not looked at."""
    Image([{"srv/note": b"as it was"}], compress=False).layout_archive(path)
    path.write_bytes(path.read_bytes().replace(b"as it was", b"as it is."))


BAD_FILES = {
    "half": (lambda path, layout: path.write_bytes(layout.read_bytes()[:5_000_000]), "the archive ends too early"),
    "damaged": (lambda path, layout: damaged(path), "digest"),
    "text": (lambda path, layout: path.write_text("no archive at all\n" * 1000), "archive"),
    "compressed": (lambda path, layout: path.write_bytes(gzip.compress(layout.read_bytes()[:100_000])), "is compressed: unpack it first"),
    "no image": (lambda path, layout: subprocess.run(["tar", "-cf", path, "-C", "/etc", "passwd"], check=True), "neither an OCI layout nor"),
    "no bash": (lambda path, layout: Image([{"srv/x": b"x"}]).layout_archive(path), "bash"),
    "another machine": (lambda path, layout: Image([{"bin/bash": b"x"}], architecture="arm64").layout_archive(path), "arm64"),
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_file_that_is_no_image_for_us(server, layout, tmp_path, what):
    make, words = BAD_FILES[what]
    make(tmp_path / "file", layout)
    said = refused(server, tmp_path / "file", "bad", "--team", "test")
    assert words in said and "build " in said, said
    assert build_of(server, "bad")["status"] == "error"
    assert not open_archives(server) and not files_left(server)


def test_what_is_no_file(server, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "empty").touch()
    before = server.admin("GET", "/admin/templates").json
    for name, words in (("pipe", "no regular file"), (".", "is a folder: pack it"), ("dangling", "No such file"), ("empty", "is empty"),
                        ("/dev/zero", "no regular file")):
        assert words in refused(server, tmp_path / name, "nothing", "--team", "test")
    assert server.admin("GET", "/admin/templates").json == before


def test_what_is_asked_for_wrongly(server, layout):
    assert "there are 2 teams" in refused(server, layout, "x")
    assert "team" in refused(server, layout, "x", "--team", "none-such")
    assert "invalid template reference" in refused(server, layout, "No Name", "--team", "test")
    assert "'base' is taken" in refused(server, layout, "base", "--team", "test")
    assert "CPU count" in refused(server, layout, "x", "--team", "test", "--cpus", "3")
    assert "is too long" in refused(server, layout, "x", "--team", "test", "--start-command", "x" * 9000)
    assert "startCmd" in refused(server, layout, "x", "--team", "test", "--start-command", "x" * 5000)
    assert "not a number" in refused(server, layout, "x", "--team", "test", "--memory", "much")
    assert hotcell(server, "templates", "--tag", "x").returncode == 2 and hotcell(server, "ps", "--start-command", "x").returncode == 2
    assert hotcell(server, "templates", "--public").returncode == 2 and hotcell(server, "templates", "import", layout).returncode == 2


def test_what_is_too_large_is_not_sent(server, tmp_path):
    with open(tmp_path / "large", "wb") as f:
        f.truncate(8193 << 20)
    begun = time.monotonic()
    assert "at most 8192 are taken (import_max_mib in node.conf)" in refused(server, tmp_path / "large", "large", "--team", "test")
    assert time.monotonic() - begun < 10
    assert build_of(server, "large")["reason"]["message"] == "the build was cancelled"


def begin_sending(server, name, bytes_said, data):
    """A build that waits, and a connection on which its archive comes."""
    made = server.admin("POST", f"/admin/teams/{server.team}/templates", {"name": name, "cpuCount": 1, "memoryMB": 256}).json
    connection = UnixConnection(server.admin_socket, 60)
    connection.putrequest("PUT", f"/admin/builds/{made['buildID']}/archive")
    connection.putheader("Content-Length", str(bytes_said))
    connection.endheaders(data)
    wait_for(lambda: open_archives(server), "node has the file", 30)
    return made["buildID"], connection


def test_a_client_that_goes_ends_its_import(server):
    build, connection = begin_sending(server, "gone", 1 << 20, b"x" * 1000)
    assert not files_left(server), "it has no name"
    connection.close()
    wait_for(lambda: server.admin("GET", f"/admin/builds/{build}").json["status"] == "error", "the build ended", 30)
    assert not open_archives(server)


def test_a_build_takes_one_archive(server):
    build, connection = begin_sending(server, "twice", 1 << 20, b"x" * 1000)
    second = server.admin("PUT", f"/admin/builds/{build}/archive", b"y" * 1000)
    assert (second.status, second.json["message"]) == (400, "build is not in waiting state")
    assert server.admin("PUT", "/admin/builds/none/archive", b"y").status == 404
    assert len(open_archives(server)) == 1, "the first goes on"
    assert server.admin("DELETE", f"/admin/builds/{build}").status == 204
    connection.close()
    wait_for(lambda: not open_archives(server), "it is gone", 30)


def test_node_dies_while_the_archive_comes(server, layout):
    build, connection = begin_sending(server, "broken-off", 1 << 20, b"x" * 1000)
    server.restart("node")
    server.wait_up()
    connection.send(b"x" * ((1 << 20) - 1000))
    answer = connection.getresponse()
    assert answer.status == 400 and b"no archive was sent" in answer.read()
    connection.close()
    assert server.admin("GET", f"/admin/builds/{build}").json["status"] == "waiting"
    assert not files_left(server) and not open_archives(server)
    imported(server, layout, "broken-off", "--team", "test")


def test_node_dies_while_it_is_built(server, layout, image, tmp_path):
    """And leaves a file with a name, as if it had died the moment it was made."""
    other = Image([*image.tars, {"srv/more": b"more"}], compress=False).layout_archive(tmp_path / "other.tar")
    server.restart("node", die_at="build.disk")
    server.wait_up()
    command = [build_dir() / "src/cli/hotcell", "--socket", server.admin_socket, "templates", "import", other, "dies", "--team", "test", *SIZES]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
        server.daemons["node"].wait_dead()
        folder = server.data / "builds" / build_folder(server)
        (folder / "archive").write_bytes(b"left")
        server.start("node", die_at="")
        out, said = client.communicate(timeout=SECONDS)
    assert client.returncode == 1 and "node was restarted while the template was built" in said, (out, said)
    assert not files_left(server) and not open_archives(server)
    assert server.leaks() == []
    imported(server, other, "dies", "--team", "test")


def build_folder(server):
    return max((server.data / "builds").iterdir(), key=lambda p: p.stat().st_ctime).name


def test_nothing_is_left(server):
    assert server.ids() == set() and server.leaks() == [] and not files_left(server) and not open_archives(server)
    assert not list((server.base / "images/data").glob("jobs/*"))
    for template in server.admin("GET", "/admin/templates").json:
        if template.get("name"):
            assert server.admin("DELETE", f"/admin/templates/{template['templateID']}").status == 204
