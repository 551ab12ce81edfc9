"""test_guest_files.py - files of our guests that are programs, run where no guest is needed."""

import json
import os
import pathlib
import subprocess
import tarfile

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
HOOK = TOP / "guest/chromium/files/etc/ca-certificates/update.d/hotcell-chromium"
FIREFOX = TOP / "guest/desktop/files/etc/ca-certificates/update.d/hotcell-firefox"
POLICIES = TOP / "guest/desktop/files/etc/firefox/policies/policies.json"
OCI = TOP / "guest/base/oci"


def certificate(word):
    return f"-----BEGIN CERTIFICATE-----\n{word}AAAA\n{word}BBBB==\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize("files, entries", [
    ({}, []),
    ({"a.crt": certificate("x")}, ["x"]),
    ({"a.crt": certificate("x"), "b.crt": certificate("y"), "c.pem": certificate("z")}, ["x", "y"]),
    ({"two.crt": certificate("x") + certificate("y")}, ["x", "y"]),
    ({"words.crt": f"Subject: CN=An Authority\n{certificate('x')}\n# the old one, \"until\" 2031\n{certificate('y')}the end\n"}, ["x", "y"]),
    ({"windows.crt": certificate("x").replace("\n", "\r\n")}, ["x"]),
    ({"a.crt": certificate("x").rstrip("\n"), "b.crt": certificate("y")}, ["x", "y"]),
    ({"cut.crt": certificate("x")[:40], "whole.crt": certificate("y")}, ["y"]),
    ({"odd.crt": certificate('"], "x": ['), "whole.crt": certificate("y")}, ["y"]),
    ({"empty.crt": "", "key.crt": certificate("x").replace("CERTIFICATE", "PRIVATE KEY")}, []),
], ids=lambda v: "+".join(v) or "none")
def test_each_authority_is_an_entry_of_chromiums_policy(tmp_path, files, entries):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    policy = tmp_path / "policies/hotcell-ca.json"
    subprocess.run([HOOK, tmp_path, policy], check=True, stdin=subprocess.DEVNULL, timeout=10)
    assert json.loads(policy.read_text()) == {"CACertificates": [f"{w}AAAA{w}BBBB==" for w in entries]}


def test_all_authorities_are_in_firefoxs_policy(tmp_path):
    """However many there are; and again when there are others."""
    policies = tmp_path / "policies.json"
    policies.write_text(POLICIES.read_text())
    before = json.loads(POLICIES.read_text())["policies"]
    for names in ([], [f"hotcell-{n}.crt" for n in range(1, 8)], ["hotcell-1.crt", "one's own.crt", "own.crt"]):
        folder = tmp_path / f"of-{len(names)}"
        folder.mkdir()
        for name in names:
            (folder / name).write_text(certificate("x"))
        (folder / "no.pem").write_text("")
        subprocess.run([FIREFOX, folder, policies], check=True, stdin=subprocess.DEVNULL, timeout=10)
        after = json.loads(policies.read_text())["policies"]
        assert after.pop("Certificates") == {"Install": [str(folder / name) for name in names if "'" not in name]}
        assert after == {name: value for name, value in before.items() if name != "Certificates"}


@pytest.mark.parametrize("text, want", [("A=1\nB=two words\n", ["A=1", "B=two words"]), ("A=1\nB=2", ["A=1", "B=2"]), ("", [])],
                         ids=["lines", "the last has no end", "none"])
def test_each_line_of_env_is_in_the_image(tmp_path, text, want):
    (tmp_path / "env").write_text(text)
    with tarfile.open(tmp_path / "root.tar", "w"):
        pass
    subprocess.run([OCI, "--env", tmp_path / "env", tmp_path / "root.tar", tmp_path / "image.tar"], check=True, timeout=10)
    with tarfile.open(tmp_path / "image.tar") as image:
        blobs = [image.extractfile(m).read() for m in image.getmembers() if os.path.dirname(m.name) == "blobs/sha256"]
    config = next(json.loads(b) for b in blobs if b.startswith(b'{"architecture"'))
    assert config["config"]["Env"][2:] == want  # behind PATH and LANG
