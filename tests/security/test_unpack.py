"""test_unpack.py - layers of images are hostile: each is refused with a reason or does no harm, within bounds.

HOTCELL_IMAGES=all takes the whole table, and what is large.
"""

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import tarfile

import pytest

import hostile_images as hostile
import unpacked
from hostile_images import elf, file, folder, hard, tar
from unpacked import unpack

ALL = os.environ.get("HOTCELL_IMAGES") == "all"
ROWS = [row for row in hostile.ROWS if ALL or row.ci]


def layers_of(row):
    return [layer() if callable(layer) else layer for layer in row.layers]


def is_whole(outcome):
    assert outcome.status == 0 and "ok" in outcome.lines[-1], (outcome.lines[-1:], outcome.said)
    assert outcome.disk.complaints() == ""
    return outcome.lines[-1]["ok"]


def is_refused(outcome):
    assert outcome.status == 1 and list(outcome.lines[-1]) == ["error"], (outcome.lines[-1:], outcome.said)
    return outcome.lines[-1]["error"]


def test_the_table_is_as_long_as_promised():
    assert len(hostile.ROWS) >= 60 and sum(row.ci for row in hostile.ROWS) >= 20
    assert len({row.name for row in hostile.ROWS}) == len(hostile.ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_hostile_image(row, tmp_path):
    outcome = unpack(tmp_path, layers_of(row), row.disk_mib)
    assert outcome.memory_mib < unpacked.memory_limit_mib() and outcome.seconds < 30
    if row.check:
        is_whole(outcome)
        row.check(outcome.disk)
    else:
        error = is_refused(outcome)
        assert re.search(row.code, error["code"]) and re.search(row.message, error["message"]), error
    assert outcome.disk.path.stat().st_size in (0, row.disk_mib << 20)


def test_a_refusal_names_layer_and_path(tmp_path):
    error = is_refused(unpack(tmp_path, [hostile.BASE, tar(file("fine"), file("x/../y"))]))
    assert (error["layer"], error["path"]) == (2, "x/../y")


def test_same_layers_same_bytes(tmp_path):
    layers = [hostile.BASE, gzip.compress(tar(file("a", b"a" * 5000), folder("d"), hard("b", "a"))), tar(file(".wh.a"))]
    sums = []
    for run in "12":
        (tmp_path / run).mkdir()
        outcome = unpack(tmp_path / run, layers)
        is_whole(outcome)
        sums.append(hashlib.sha256(outcome.disk.path.read_bytes()).hexdigest())
    assert sums[0] == sums[1]


def test_it_says_what_it_did(tmp_path):
    said = is_whole(unpack(tmp_path, [hostile.BASE, tar(file("a", b"12345"), tarfile_device("dev/x"), hard("b", "a"),
                                                        file(".wh.c"))]))
    assert (said["files"], said["folders"], said["hardLinks"], said["bytes"]) == (2, 1, 1, 5 + len(elf()))
    assert (said["skippedDevices"], said["whiteouts"]) == (1, 1)
    assert {"/usr/lib/hotcell/agent", "/sbin/init", "/etc/passwd", "/proc"} <= set(said["added"])


def tarfile_device(name):
    return hostile.member(name, tarfile.CHRTYPE)


@pytest.mark.parametrize("words", [[], ["--layers", "128", "--disk-mib", "64"], ["--layers", "1", "--disk-mib", "1"],
                                   ["--layers", "1", "--disk-mib", "64", "more"]])
def test_wrong_words_are_refused(words):
    run = subprocess.run([unpacked.program(), *words], stderr=subprocess.PIPE, text=True)
    assert run.returncode == 2 and "usage" in run.stderr


def test_a_disk_that_is_not_empty_is_left_alone(tmp_path):
    (tmp_path / "disk").write_bytes(b"somebody's")
    (tmp_path / "layer").write_bytes(hostile.BASE)
    run = subprocess.run(["bash", "-c", f"exec {unpacked.program()} --layers 1 --disk-mib 64 3<>disk 4>&1 5<layer 10<layer"],
                         cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert run.returncode == 1 and "not an empty file" in run.stdout
    assert (tmp_path / "disk").read_bytes() == b"somebody's"


def test_a_full_disk_of_the_host_is_told(tmp_path):
    (tmp_path / "layer").write_bytes(tar(hostile.BASH, file("a", os.urandom(20 << 20))))
    (tmp_path / "small").mkdir()
    run = subprocess.run(["unshare", "-m", "bash", "-ec", "mount -t tmpfs -o size=8m none small; : >small/disk; "
                          f"exec {unpacked.program()} --layers 1 --disk-mib 64 3<>small/disk 4>&1 5<layer 10<layer"],
                         cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert run.returncode == 1
    error = json.loads(run.stdout.splitlines()[-1])["error"]
    assert error["code"] == "no_space" and "No space left" in error["message"], error


def root_tar():
    """Debian's root that the base template is made of."""
    top = unpacked.pathlib.Path(__file__).resolve().parents[2]
    run = subprocess.run([top / "tools/artefact", "rootfs"], stdout=subprocess.PIPE, text=True, check=True)
    return run.stdout.strip()


KINDS = {tarfile.REGTYPE: "regular", tarfile.DIRTYPE: "directory", tarfile.SYMTYPE: "symlink", tarfile.LNKTYPE: "regular"}


def expected(archive):
    """What the disk must have, by path: of a root that names no path twice."""
    for info in archive:
        path = "/" + info.name.removeprefix("./").strip("/") if info.name not in (".", "./") else "/"
        if info.type in KINDS:
            yield path, info


def differences(archive, disk):
    wanted = dict(expected(archive))
    stats = dict(zip(wanted, disk.stats(wanted)))
    for path, info in wanted.items():
        stat = stats[path]
        if path in ("/etc/resolv.conf", "/usr/sbin/init"):  # the guest's own
            continue
        if info.islnk():
            if stat["ino"] != stats["/" + info.linkname.removeprefix("./").strip("/")]["ino"]:
                yield path, "another inode"
            continue
        mine = (KINDS[info.type], 0o777 if info.issym() else info.mode, info.uid, info.gid)
        if not stat or mine != (stat["type"], stat["mode"], stat["uid"], stat["gid"]):
            yield path, mine, stat
        elif stat["mtime"] != int(info.mtime):
            yield path, info.mtime, stat["mtime"]
        elif info.isreg() and stat["size"] != info.size:
            yield path, info.size, stat["size"]
        elif info.issym() and info.size == 0 and len(info.linkname) < 60 and stat["target"] != info.linkname:
            yield path, info.linkname, stat["target"]
        elif len(info.pax_headers.get("SCHILY.xattr.security.capability", "")) != len(stat["xattrs"].get("security.capability", b"")):
            yield path, "capabilities", stat["xattrs"]


def test_a_real_root_is_the_same_on_the_disk(tmp_path):
    root = root_tar()
    outcome = unpack(tmp_path, [root], 2048)
    is_whole(outcome)
    with tarfile.open(root, errors="surrogateescape") as archive:
        assert list(differences(archive, outcome.disk)) == []
    out = tmp_path / "out"
    out.mkdir()
    subprocess.run([unpacked.DEBUGFS, "-R", f"rdump /usr /etc /var {out}", outcome.disk.path], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with tarfile.open(root, errors="surrogateescape") as archive:
        compared = sum(same_contents(archive, info, out) for info in archive if info.isreg())
    assert compared > 5000


def same_contents(archive, info, out):
    path = out / info.name.removeprefix("./")
    if info.name.removeprefix("./").split("/")[0] not in ("usr", "etc", "var") or info.name.endswith("resolv.conf"):
        return False
    with open(path, "rb") as f:
        assert hashlib.sha256(f.read()).digest() == hashlib.sha256(archive.extractfile(info).read()).digest(), info.name
    return True


def stream(write):
    """A gzip file that `write(archive)` fills, in memory: for archives that are long and say little."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.USTAR_FORMAT, compresslevel=1) as archive:
        write(archive)
    return out.getvalue()


def test_a_folder_of_many_is_not_quadratic(tmp_path):
    n = 200_000 if ALL else 20_000

    def write(archive):
        archive.addfile(file("x", b"")[0])
        for i in range(n):
            archive.addfile(hard(f"many/{i}", f"x{i // 60000}" if i >= 60000 else "x")[0]
                            if i % 60000 else file(f"x{i // 60000}" if i else "x", b"")[0])
    outcome = unpack(tmp_path, [hostile.BASE, stream(write)], 256)
    is_whole(outcome)
    assert outcome.seconds < n / 5_000, "a folder takes more than its share"


if ALL:
    def test_more_than_a_million_entries(tmp_path):
        def write(archive):
            for _ in range(1_000_001):
                archive.addfile(folder("same")[0])
        error = is_refused(unpack(tmp_path, [hostile.BASE, stream(write)]))
        assert error["code"] == "exhausted" and "1000000" in error["message"]

    def test_walks_that_are_long_again_and_again(tmp_path):
        """Each entry goes through forty symlinks, each with a thousand components."""
        def write(archive):
            archive.addfile(folder("d")[0])
            archive.addfile(hostile.symlink("s0", ("d/../" * 19) + "d")[0])
            for i in range(1, 39):
                archive.addfile(hostile.symlink(f"s{i}", ("d/../" * 18) + f"s{i - 1}")[0])
            for _ in range(900_000):
                archive.addfile(folder("s38/e")[0])
        outcome = unpack(tmp_path, [hostile.BASE, stream(write)])
        error = is_refused(outcome)
        assert error["code"] == "exhausted" and outcome.seconds < 100

    def test_too_many_hard_links(tmp_path):
        def write(archive):
            archive.addfile(file("x", b"")[0])
            for i in range(65_001):
                archive.addfile(hard(f"many/{i}", "x")[0])
        error = is_refused(unpack(tmp_path, [hostile.BASE, stream(write)], 256))
        assert error["code"] == "exhausted" and "65000" in error["message"]
