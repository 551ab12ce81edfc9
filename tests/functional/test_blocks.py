"""test_blocks.py - tools/check-blocks finds what is wrong with a block of code in a document, and only that."""

import importlib.machinery
import importlib.util
import pathlib

import pytest

from warden import build_dir

TOP = pathlib.Path(__file__).resolve().parents[2]
loader = importlib.machinery.SourceFileLoader("check_blocks", str(TOP / "tools/check-blocks"))
check = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_blocks", loader))
loader.exec_module(check)

GOOD = [
    ("sh", "hotcell keys services KEY db cache     # a comment\n"),
    ("sh", "sudo hotcell templates import FILE NAME [--team TEAM] \\\n    [--public]\n"),
    ("sh", "hotcell ps --all | awk 'NR > 1 { print $1 }' | xargs -r hotcell kill\n"),
    ("sh", "/tmp/venv/bin/python - <<'END'\nprint(1)\nEND\n"),
    ("sh", "systemctl restart hotcell-{warden,egress}\nmeson test -C build --suite unit\n"),
    ("ini egress.conf", "network = open\nallow = packages\n"),
    ("json", '{"a":1}\n{"b":\n 2}\n'),
    ("text", "anything (\n"),
]
BAD = [
    ("", "echo hi\n", "without a class"),
    ("shell", "echo hi\n", "no class"),
    ("sh", "echo 'hi\n", "bash does not read it"),
    ("sh", "hotcell keyz add acme\n", "no command keyz"),
    ("sh", "hotcell egress logs SANDBOX\n", "hotcell egress has no logs"),
    ("sh", "hotcell ps --everything\n", "no option --everything"),
    ("sh", "cd x && hotcell teams limits TEAM --sandboxs 3\n", "no option --sandboxs"),
    ("sh", "eval \"$(sudo tools/develop up)\"\n", "there is no tools/develop"),
    ("sh", "sistemctl stop x\n", "no program that is known"),
    ("sh", "systemctl restart hotcell-{warden,nood}\n", "no unit hotcell-nood"),
    ("sh", "meson setup build -Dfuz=true\n", "no option fuz"),
    ("sh", "meson test -C build --suite units\n", "no suite units"),
    ("sh", "/tmp/venv/bin/python - <<'END'\nprint(\nEND\n", "not Python"),
    ("sh", "cat >/tmp/x.mjs <<'END'\nconst = 1\nEND\n", "not JavaScript"),
    ("python", "def f(:\n", "not Python"),
    ("json", "{a}\n", "not JSON"),
    ("ini", "network = open\n", "whose settings"),
    ("ini egress.conf", "netwrk = open\n", "egress.conf has no setting netwrk"),
    ("mermaid", 'flowchart TB\n  a["x]\n', "quotation mark"),
]


def test_commands_in_the_text_are_looked_at(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("Try `hotcell --version`, `hotcell egress log ID` and\n`sudo hotcell egres log ID`, not `hotcell --vers`.\n")
    monkeypatch.setattr(check, "TOP", tmp_path)
    assert list(check.quoted_complaints(page, build_dir())) == ["page.md:2: hotcell has no command egres",
                                                               "page.md:2: hotcell has no option --vers"]


def test_settings_in_the_text_are_looked_at(tmp_path):
    page = TOP / "docs/network.md"
    assert list(check.setting_complaints(page)) == []
    page = tmp_path / "page.md"
    page.write_text("With `network = open`, `netwrk = open` and\n`allow` of node.conf, not `allow` in `/etc/hotcell/egress.conf`.\n")
    check.settings()  # of this repository
    there, check.TOP = check.TOP, tmp_path
    try:
        assert list(check.setting_complaints(page)) == ["page.md:1: no daemon has a setting netwrk",
                                                       "page.md:2: node.conf has no setting allow"]
    finally:
        check.TOP = there


def found(info, text):
    block = check.Block(TOP / "docs/x.md", 1, "", info, text)
    return list(check.complaints(block, build_dir()))


@pytest.mark.parametrize("info, text", GOOD)
def test_what_is_right_passes(info, text):
    assert found(info, text) == []


@pytest.mark.parametrize("info, text, says", BAD)
def test_what_is_wrong_is_found(info, text, says):
    got = found(info, text)
    assert len(got) == 1 and says in got[0], got
