"""test_guest_files.py - files of our guests that are programs, run where no guest is needed."""

import json
import os
import pathlib
import re
import subprocess
import tarfile

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
HOOK = TOP / "guest/chromium/files/etc/ca-certificates/update.d/hotcell-chromium"
FIREFOX = TOP / "guest/desktop/files/etc/ca-certificates/update.d/hotcell-firefox"
POLICIES = TOP / "guest/desktop/files/etc/firefox/policies/policies.json"
OCI = TOP / "guest/base/oci"
TEMPLATE = TOP / "guest/template"
UNIT = TOP / "deploy/systemd/hotcell-template@.service"
MIB = 1 << 20
# a server without templates, as guest/template asks it; and what it was asked
HOTCELL = """#!/bin/sh
cd "$PLAYED" && echo "$*" >>asked
case "$1 $2" in
"status --json") cat status ;;
"teams --json") cat teams ;;
"teams add") echo id-of-a-new-one ;;
"templates show") exit 1 ;;
"templates import") stat -c %s "$3" >imported ;;
esac
"""


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


# --- guest/template ---------------------------------------------------------------------------------------------------

class Maker:
    """guest-template as its unit calls it, with a played server; in mounts of its own: /run, and a temporary folder that is small."""

    def __init__(self, folder):
        self.folder, self.image = folder, folder / "browser.oci.tar.zst"
        self.program = folder / "src/cli/hotcell"
        self.program.parent.mkdir(parents=True)
        self.program.write_text(HOTCELL)
        self.program.chmod(0o755)
        (folder / "tmp").mkdir()
        self.say({"sharedTeam": "hotcell"})

    def say(self, node, *teams):
        """What node says of itself, and which teams there are."""
        (self.folder / "status").write_text(json.dumps({"gateway": {}, "node": node}))
        (self.folder / "teams").write_text(json.dumps([{"teamID": f"id-of-{name}", "name": name, "slug": name.lower()} for name in teams]))

    def compress(self, size, *, told=True):
        """An image of so many bytes, whose file says how many that are, or does not."""
        (self.folder / "plain").write_bytes(os.urandom(size))  # of zeros a file without them is made
        with open(self.folder / "plain", "rb") as plain, open(self.image, "wb") as out:
            subprocess.run(["zstd", "-q", "-c", *([self.folder / "plain"] if told else [])], stdin=plain, stdout=out, check=True, timeout=60)

    def make(self, *words, room_mib=64):
        script = "mount -t tmpfs none /run && : >/run/hotcell-template.lock && mount -t tmpfs -o size=$1 none $2 && shift 2 && exec \"$@\""
        return subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", f"{room_mib}m", self.folder / "tmp", TEMPLATE, "browser", *words,
                               "--image", self.image], env={"PATH": os.environ["PATH"], "TMPDIR": str(self.folder / "tmp"), "PLAYED": str(self.folder),
                                                            "HOTCELL_BUILD": str(self.folder)}, capture_output=True, text=True, timeout=60)

    def asked(self):
        return (self.folder / "asked").read_text().splitlines()


@pytest.fixture
def maker(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root makes mounts of its own")
    return Maker(tmp_path)


def test_an_image_for_which_there_is_no_room_is_not_unpacked(maker):
    maker.compress(8 * MIB)
    r = maker.make(room_mib=4)
    assert r.returncode == 1 and "unpacking" not in r.stderr, r.stderr
    said = r.stderr.splitlines()[-1]
    assert said.startswith("browser: ") and f"{maker.folder}/tmp has 4 MiB free" in said and "8 MiB" in said and "make room there" in said, said
    assert not [line for line in maker.asked() if "import" in line]


@pytest.mark.parametrize("told", [True, False], ids=["its size is in the file", "it is not"])
def test_an_image_for_which_there_is_room_is_unpacked(maker, told):
    maker.compress(8 * MIB, told=told)
    r = maker.make()
    assert r.returncode == 0, r.stderr
    assert (maker.folder / "imported").read_text() == f"{8 * MIB}\n"


@pytest.mark.parametrize("shared, teams, words, asked", [
    ("hotcell", [], [], ["templates show hotcell/browser", "teams add hotcell", "--team id-of-a-new-one "]),
    ("acme", ["hotcell"], [], ["templates show acme/browser", "teams add acme", "--team id-of-a-new-one "]),
    ("acme", ["hotcell", "acme"], [], ["templates show acme/browser", "--team id-of-acme "]),
    ("acme", ["Acme"], [], ["templates show acme/browser", "--team id-of-Acme "]),  # its templates are acme/NAME
    ("acme", ["acme", "other"], ["--team", "other"], ["templates show other/browser", "--team id-of-other "]),
    ("", ["hotcell"], ["--team", "hotcell"], ["--team id-of-hotcell "]),
])
def test_a_template_is_made_where_all_teams_find_it(maker, shared, teams, words, asked):
    maker.compress(MIB)
    maker.say({"sharedTeam": shared}, *teams)
    r = maker.make(*words)
    assert r.returncode == 0, r.stderr
    assert all(any(text in line for line in maker.asked()) for text in asked), maker.asked()
    assert any("teams add" in text for text in asked) == any("teams add" in line for line in maker.asked()), maker.asked()


@pytest.mark.parametrize("node, says", [
    ({"sharedTeam": ""}, ("shared_team of node.conf is empty", "restart hotcell-node", "--team")),
    ({"sharedTeam": "Acme Inc."}, ("shared_team of node.conf is `Acme Inc.`", "lower case", "restart hotcell-node")),
    (None, ("node does not answer", "hotcell doctor")),
])
def test_a_template_that_nobody_would_find_is_not_made(maker, node, says):
    maker.compress(MIB)
    maker.say(node, "hotcell")
    r = maker.make()
    assert r.returncode == 1 and r.stderr.startswith("browser: ") and all(text in r.stderr for text in says), r.stderr
    assert maker.asked() == ["status --json"]


def tries(unit, seconds):
    """How often a unit that fails at once is started in that time, by systemd.service(5): RestartSec=, RestartSteps=, RestartMaxDelaySec=."""
    said = dict(re.findall(r"^(Restart\w+)=(.*)$", unit, re.M))
    first, last = (int(re.match(r"(\d+)(s|min)$", said.get(key, said["RestartSec"]))[1]) * (60 if "min" in said.get(key, "") else 1)
                   for key in ("RestartSec", "RestartMaxDelaySec"))
    steps, n, at = int(said.get("RestartSteps", 0)), 1, 0.0
    while True:
        at += first if steps == 0 else last if n > steps else first * (last / first) ** ((n - 1) / steps)
        if at > seconds:
            return n
        n += 1


def test_a_template_that_cannot_be_made_is_tried_less_and_less_often():
    """Each try reads the whole image, and may boot a VM for ten minutes. At first it may be that a daemon is not there yet."""
    unit = UNIT.read_text()
    assert tries(unit, 5 * 60) >= 4
    assert tries(unit, 24 * 3600) <= 60, "a day"
