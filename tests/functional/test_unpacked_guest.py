"""test_unpacked_guest.py - a guest boots from the disk that hotcell-unpack made of the layers of an image."""

import pathlib
import re
import subprocess

import pytest

import unpacked
from engine import Engine, artefact
from hostile_images import file, folder, hard, symlink, tar
from warden import build_dir

DISK_MIB = 2048


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """Debian's root, and above it a layer that adds, replaces and removes."""
    place = tmp_path_factory.mktemp("image")
    above = tar(file("srv/new", b"above\n", uid=1000, gid=1000, mode=0o640, pax_headers={"SCHILY.xattr.user.note": "kept"}),
                hard("srv/other", "srv/new"), symlink("srv/link", "new"), file("etc/issue", b"replaced\n"), file("etc/.wh.debian_version"),
                folder("opt"), *(file(f"opt/many/{i}", b"%d" % i) for i in range(500)))
    agent = (build_dir() / "src/agent/hotcell-agent").read_bytes()
    outcome = unpacked.unpack(place, [artefact("rootfs"), above], DISK_MIB, agent)
    assert outcome.status == 0, outcome.lines[-1]
    return outcome.disk.path


@pytest.fixture(scope="module")
def engine(disk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOTCELL_GUEST_DISK", str(disk))
        with Engine() as e:
            yield e


@pytest.fixture(scope="module")
def box(engine):
    box = engine.create()
    yield box
    engine.stop(box)


def test_the_layers_are_one_tree(engine, box):
    assert engine.run(box, "cat /srv/link /etc/issue") == "above\nreplaced"
    assert engine.run(box, "stat -c %u:%g:%a:%h /srv/new") == "1000:1000:640:2"
    assert engine.run(box, "test ! -e /etc/debian_version && ls /opt/many | wc -l") == "500"
    assert engine.run(box, "cat $(ls -d /opt/many/* | sort -V) | sha256sum") == engine.run(box, "seq -s '' 0 499 | tr -d '\\n' | sha256sum")


def test_attributes_are_what_the_layers_say(engine, box):
    asked = "import os; print(os.getxattr('/usr/bin/ping', 'security.capability').hex(), os.getxattr('/srv/new', 'user.note').decode())"
    capability, note = engine.run(box, f'sudo python3 -c "{asked}"').split()
    # version 2, effective; CAP_NET_RAW is permitted
    assert capability == "0100000200200000000000000000000000000000" and note == "kept"


def test_the_kernel_has_nothing_to_complain_of(engine, box):
    said = engine.run(box, "sudo dmesg")
    assert "EXT4-fs (vda): mounted" in said and "EXT4-fs error" not in said and "EXT4-fs warning" not in said


def test_no_guest_has_to_zero_inode_tables(disk):
    said = subprocess.run(["/usr/sbin/dumpe2fs", disk], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    assert said.count("ITABLE_ZEROED") == len(re.findall(r"^Group \d+:", said, re.M)) == DISK_MIB // 128


def test_the_guest_writes_to_it(engine, box):
    assert engine.run(box, "sudo sh -c 'for i in $(seq 200); do echo $i >/opt/many/new$i; done; rm -r /opt/many/1*; sync; ls /opt/many | wc -l'") == "589"


def test_what_the_guest_left_is_sound(engine, box, disk, tmp_path):
    """The template's disk, after a boot and a clean freeze: the journal is replayed on a copy, then nothing is wrong."""
    copy = tmp_path / "disk"
    subprocess.run(["cp", "--sparse=always", engine.warden.state / "templates/base/disk", copy], check=True)
    subprocess.run([unpacked.E2FSCK, "-fp", copy], stdout=subprocess.DEVNULL)
    assert unpacked.Disk(pathlib.Path(copy)).complaints() == ""
