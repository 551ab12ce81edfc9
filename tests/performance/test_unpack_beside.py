"""test_unpack_beside.py - a root becomes a disk: hotcell-unpack beside `tar -x` and `mke2fs -d`, in turns.

The same 280 MB Debian root, plain and compressed. The other way needs root and a folder of the host; ours needs
neither. mke2fs syncs the disk that it made, so ours is synced, too.
"""

import gzip
import os
import pathlib
import shutil
import statistics
import subprocess
import time

import pytest

import unpacked

PAIRS = int(os.environ.get("HOTCELL_PAIRS", "5"))
TOP = pathlib.Path(__file__).resolve().parents[2]
DISK_MIB = 10240
MOST = 1.2  # times as long as the other way


@pytest.fixture(scope="module")
def roots(tmp_path_factory):
    place = tmp_path_factory.mktemp("roots")
    plain = pathlib.Path(subprocess.run([TOP / "tools/artefact", "rootfs"], stdout=subprocess.PIPE, text=True,
                                        check=True).stdout.strip())
    packed = place / "root.tar.gz"
    with open(plain, "rb") as f, gzip.open(packed, "wb", 6) as out:
        shutil.copyfileobj(f, out, 1 << 20)
    return {"plain": plain, "gzip": packed}


def bare(place, root):
    """What a script would do: unpack on the host, then make a file system of that."""
    begun = time.monotonic()
    tree, disk = place / "tree", place / "bare"
    tree.mkdir()
    subprocess.run(["tar", "-xpf", root, "-C", tree, "--numeric-owner", "--xattrs", "--xattrs-include=*"], check=True)
    with open(disk, "wb") as f:
        f.truncate(DISK_MIB << 20)
    subprocess.run(["/usr/sbin/mke2fs", "-q", "-F", "-t", "ext4", "-J", "size=16", "-E", "assume_storage_prezeroed=1,nodiscard",
                    "-d", tree, disk], check=True)
    took = time.monotonic() - begun
    shutil.rmtree(tree)
    disk.unlink()
    return took


def ours(place, root):
    begun = time.monotonic()
    outcome = unpacked.unpack(place, [root], DISK_MIB)
    with open(outcome.disk.path, "rb+") as f:
        os.fsync(f.fileno())
    took = time.monotonic() - begun
    assert outcome.status == 0, outcome.lines[-1]
    return took, outcome.memory_mib


@pytest.mark.parametrize("form", ["plain", "gzip"])
def test_unpack_beside_tar_and_mke2fs(roots, form, tmp_path):
    bares, mine, memory = [], [], 0
    for _ in range(PAIRS):
        bares.append(bare(tmp_path, roots[form]))
        took, mib = ours(tmp_path, roots[form])
        mine.append(took)
        memory = max(memory, mib)
    print(f"\n{form}: tar and mke2fs {statistics.median(bares):.2f} s, hotcell-unpack {statistics.median(mine):.2f} s "
          f"(median of {PAIRS}), {memory} MiB")
    assert statistics.median(mine) <= MOST * statistics.median(bares)
