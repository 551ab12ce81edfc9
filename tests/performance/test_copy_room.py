"""test_copy_room.py - what a COPY leaves on the disk is what was copied, and not what was on the way.

The archive and what came out of it lay on the guest's disk for a moment: a file of 100 MB was 300 in the layer of its
step. HOTCELL_COPY_MB (100) sets how much is copied; with little the guest never writes what it deletes at once.
"""

import os

import pytest

from engine import artefact
from sdk_builds import SdkClient
from server import Server

COPY_MB = int(os.environ.get("HOTCELL_COPY_MB", "100"))
FILES = 20


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """A folder, which is merged, and a file, which is moved: nothing of either can be made smaller."""
    top = tmp_path_factory.mktemp("context")
    (top / "folder").mkdir()
    for i in range(FILES):
        (top / f"folder/{i}").write_bytes(os.urandom(COPY_MB * 1000 * 1000 // FILES))
    (top / "file").write_bytes(os.urandom(COPY_MB * 1000 * 1000))
    return top


def test_a_copy_takes_its_room_once(context):
    with Server() as server, SdkClient(server, artefact("sdks")) as sdk:
        made = sdk.build([["from_template", "base"], ["copy", "folder", "/data"], ["copy", "file", "/file"], ["run_cmd", "grep ' / ' /proc/mounts > /tmp/mounted"]], "copied", context=context)
        assert made.error is None, (made.error, made.log)
        steps = sorted(s["diskBytes"] / 1e6 for s in server.admin("GET", "/admin/snapshots").json if s["kind"] == "step")
        print(f"\nof {COPY_MB} MB, then {COPY_MB} more: steps of {steps[0]:.1f} and {steps[1]:.1f} MB")
        for copied, step in zip((COPY_MB, 2 * COPY_MB, 2 * COPY_MB), steps, strict=True):
            assert copied <= step < 1.1 * copied + 8
        said = sdk.run("copied", "cat /tmp/mounted; ls -A /tmp; du -s --apparent-size -BM /data /file").splitlines()
        assert "noatime" in said[0] and "discard" not in said[0], "it is mounted as it was"
        assert said[1:] == ["mounted", f"{COPY_MB * 1000000 // 2**20 + 1}M\t/data", f"{COPY_MB * 1000000 // 2**20 + 1}M\t/file"], said
