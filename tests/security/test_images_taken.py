"""test_images_taken.py - what somebody gets who has taken over skopeo or hotcell-unpack; and who may ask the daemon."""

import base64
import json
import os
import pathlib
import re
import socket
import subprocess
import sys

import pytest

from lone_images import FACTS, MAKE, REQUEST, UID, LoneImages, Refused, memory_file, new_folder, processes_of
from made_images import Image, digest
from taken import memory_has
from warden import is_sanitized

HERE = pathlib.Path(__file__).resolve().parents[1] / "images"
NODE_UID, STRANGER = 64325, 64326
PATIENCE = 30
UNBOUND = {"memory", "list /proc"} if is_sanitized() else set()  # sanitizers reserve terabytes, and look there


@pytest.fixture(name="base")
def make_base():
    with new_folder() as made:
        yield pathlib.Path(made)


def taken_program(base, name, **facts):
    """With a folder of its own, and a file that is nobody's secret but not its to read."""
    other = base / "other"
    other.write_text("x")
    text = (HERE / "taken_program").read_text().split("\n", 1)
    facts = {"DATA": str(base / "images"), "OTHER": str(other), **facts}
    path = base / name
    path.write_text(text[0] + "\n" + "".join(f"{key} = {value!r}\n" for key, value in facts.items()) + text[1])
    path.chmod(0o755)
    return path


def could(log):
    found = re.findall(r"COULD (\[.*?\]) END (\d+)", log.replace("\\", ""))
    assert found, log
    return [set(json.loads(one)) for one, _uid in found]


def test_a_fallen_skopeo_reaches_its_own_files_alone(base):
    with LoneImages(base, skopeo=taken_program(base, "skopeo")) as images:
        with pytest.raises(Refused):
            images.make("a.example/x:1", credentials=("u", "p"))
        for one in could(images.daemon.log()):
            assert one - UNBOUND == {"a socket"}, "it talks to registries, and that is all"
        assert images.leftovers() == []


def test_a_fallen_unpack_reaches_nothing(base):
    with LoneImages(base, unpack=taken_program(base, "unpack")) as images:
        archive = Image([{"a": b"1"}]).layout_archive(base / "x.tar")
        with pytest.raises(Refused):
            images.make(archive=archive, disk=base / "disk")
        for one in could(images.daemon.log()):
            assert one - UNBOUND == set()


def test_a_skopeo_that_lies_is_found_out(base):
    """Digests are looked at by us: of the manifest, of the configuration and of each layer."""
    image = Image([{"a": b"1" * 999}])
    facts = {"MANIFEST": image.manifest.decode(), "CONFIG": image.config.decode()}
    name = "a.example/x"
    with LoneImages(base, skopeo=taken_program(base, "skopeo", **facts)) as images:
        assert images.make(f"{name}:1").digest == image.digest, "what it says is good so far"
        with pytest.raises(Refused) as why:
            images.make(f"{name}:1", disk=base / "disk")
        assert why.value.code == "invalid" and "digest" in why.value.text
        assert digest(image.blobs[0])[7:] not in images.blobs()
        with pytest.raises(Refused) as why:
            images.make(f"{name}@sha256:{'0' * 64}")
        assert "digest" in why.value.text
    other = taken_program(base, "skopeo2", **{**facts, "CONFIG": facts["CONFIG"] + " "})
    with LoneImages(base, skopeo=other, data_dir=base / "data2") as images:
        with pytest.raises(Refused) as why:
            images.make(f"{name}:1")
        assert "digest" in why.value.text


@pytest.mark.skipif(is_sanitized(), reason="a build with sanitizers has terabytes to search")
def test_the_daemon_forgets_credentials(base):
    """It opens them for a job, which has them; when that is over, nobody has."""
    password = "correct horse battery staple"
    needles = (password.encode(), base64.b64encode(f"someone:{password}".encode()))
    with LoneImages(base, skopeo=taken_program(base, "skopeo")) as images, socket.create_server(("127.0.0.1", 0)) as silent:
        sealed = images.seal(json.dumps({"username": "someone", "password": password}))
        with pytest.raises(Refused):
            images.make("127.0.0.1:%d/x" % silent.getsockname()[1], sealed=sealed)
        for pid in processes_of(UID):
            assert memory_has(pid, *needles, sealed.encode()[:40]) <= {sealed.encode()[:40]}


# --- who may ask -------------------------------------------------------------------------------------------------------


ASK = """
import os, socket, sys
os.setresuid({uid}, {uid}, {uid})
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.settimeout(30)
s.connect({path!r})
sys.path.insert(0, {warden!r})
import link_hello
link_hello.say(s, 1)
"""


def ask_as(uid, images):
    code = ASK.format(uid=uid, path=os.fspath(images.socket), warden=str(HERE.parent / "warden"))
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode


def test_node_alone_may_ask(base):
    with LoneImages(base, node_uid=NODE_UID) as images:
        assert ask_as(NODE_UID, images) == 0
        assert ask_as(STRANGER, images) != 0


def test_messages_that_make_no_sense(base):
    with LoneImages(base) as images:
        disk = base / "disk"
        disk.write_bytes(b"not empty")
        good = memory_file(b'{"team":"t","reference":"a.b/x"}')
        file, full = os.open(disk, os.O_RDONLY), os.open(disk, os.O_RDWR)
        pipe, end = os.pipe()
        bad = [dict(verb=9), dict(verb=MAKE), dict(verb=MAKE, fds=[good, good]), dict(verb=FACTS, fds=[good]),
               dict(verb=MAKE, flags=1, disk_mib=64, fds=[good, file]), dict(verb=MAKE, flags=1, disk_mib=64, fds=[good, full]),
               dict(verb=MAKE, flags=1, disk_mib=64, fds=[good, pipe]), dict(verb=MAKE, fds=[pipe]),
               dict(verb=MAKE, fds=[memory_file(b"{")]), dict(verb=MAKE, fds=[memory_file(b'{"team":"a/b","reference":"x"}')]),
               dict(verb=MAKE, flags=2, fds=[memory_file(b'{"team":"t","reference":"x"}'), file]),
               dict(verb=MAKE, flags=4, fds=[good]), dict(verb=MAKE, flags=1, disk_mib=0, fds=[good, full])]
        for request in bad:
            images.send(**request)
            answer = images.receive()
            assert answer[1] != 0 and answer[2] == 0 and answer[4], request
        images.hang_up()
        for raw in (b"x", bytes(REQUEST.size - 1), bytes(REQUEST.size + 1)):
            images.connect()
            images.client.send(raw)
            assert images.client.recv(4096) == b""
            images.hang_up()
        assert "sealKey" in images.facts()
        for fd in (good, file, full, pipe, end):
            os.close(fd)


def test_a_client_that_reads_nothing_goes(base):
    with LoneImages(base) as images:
        images.connect()
        deaf = images.client
        deaf.setblocking(False)
        with pytest.raises((BlockingIOError, BrokenPipeError, ConnectionResetError)):
            for _ in range(100000):
                deaf.send(REQUEST.pack(1, 0, FACTS, 0, 0, 0))
        images.client = None
        assert "sealKey" in images.facts()
        deaf.close()


def test_the_key_is_its_own(base):
    with LoneImages(base) as images:
        key = images.data / "keys/seal.key"
        assert key.stat().st_mode & 0o777 == 0o600
        first = images.facts()
        images.end()
        images.start()
        assert images.facts() == first, "made once"
