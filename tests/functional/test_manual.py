"""test_manual.py - the manual pages and the completion of shells, as they are built and installed.

All of them, and --help, come of one table (src/cli/commands.def): what one of them has, all have.
"""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from test_cli import TEAM, gateway, hotcell, sandbox  # noqa: F401
from warden import build_dir

CLI, DEPLOY = build_dir() / "src/cli", build_dir() / "deploy"
DAEMONS = ("egress", "gateway", "images", "injector", "node", "signer", "warden")
PAGES = ["hotcell.1", *(f"hotcell-{name}.8" for name in DAEMONS), "hotcell-gateway-replace.8"]
ROWS = json.loads(subprocess.run([CLI / "commands_json"], capture_output=True, check=True).stdout)
COMMANDS = [row["text"] for row in ROWS if row["kind"] == "command"]


def path_of(page):
    return (CLI if (CLI / page).exists() else DEPLOY) / page


def need(program):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")


def said(*words, **kw):
    """All that a program complains about; it must not fail."""
    r = subprocess.run(words, capture_output=True, text=True, timeout=60, **kw)
    assert r.returncode == 0, r.stdout + r.stderr
    return r.stderr


def as_text(page):
    r = subprocess.run(["man", "-l", path_of(page)], capture_output=True, text=True, timeout=60, check=True,
                       env={**os.environ, "MANWIDTH": "1000", "MAN_KEEP_FORMATTING": "", "LC_ALL": "C.UTF-8"})
    return r.stdout


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_read_without_a_complaint(page):
    need("man")
    assert said("man", "--warnings", "-l", path_of(page), env={**os.environ, "LC_ALL": "C.UTF-8"}) == ""
    assert said("groff", "-man", "-ww", "-Tutf8", path_of(page)) == ""


@pytest.mark.parametrize("page", PAGES)
def test_mandoc_finds_nothing_in_a_page(page):
    need("mandoc")
    r = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", path_of(page)], capture_output=True, text=True, timeout=60)
    found = [line for line in r.stdout.splitlines() if "missing date" not in line]  # the same bytes of every build
    assert not found


def test_the_page_has_every_row_of_the_table():
    need("man")
    text = re.sub(r"\s+", " ", as_text("hotcell.1"))
    for row in ROWS:
        name = "--" + row["text"] if row["kind"] == "option" else row["text"]
        for part in (name, row["help"], row["more"].replace("\n", " ")):
            assert re.sub(r"\s+", " ", part) in text, part


@pytest.mark.parametrize("name", DAEMONS)
def test_the_page_of_a_daemon_has_its_settings(name):
    need("man")
    told = subprocess.run([build_dir() / f"src/{name}/hotcell-{name}", "--help"], capture_output=True, text=True, check=True).stdout
    settings = re.findall(r"^(\w+) = ", told, re.M)
    text = as_text(f"hotcell-{name}.8")
    assert settings and all(re.search(rf"^ +{setting}\b", text, re.M) for setting in settings)


def test_help_of_every_command_is_whole():
    overview = hotcell(None, "--help").stdout
    for name in COMMANDS:
        text = hotcell(None, name, "--help").stdout
        assert text == hotcell(None, "help", name).stdout and re.search(rf"^  {name} ", overview, re.M)
        words = re.sub(r"\s+", " ", text)
        for row in ROWS:
            mine = row["kind"] == "form" and row["text"].split()[0] == name
            mine = mine or row["kind"] == "option" and any(of.split()[0] == name for of in row["of"].split(",") if of)
            assert not mine or row["help"] in words and row["text"] in words
        assert max(map(len, text.splitlines())) <= 100
    assert max(map(len, overview.splitlines())) <= 100 and len(overview.splitlines()) < 60


@pytest.mark.parametrize("words, usage", [
    (["keys", "limits"], "usage: hotcell keys limits KEY [--sandboxes N] [--vcpus N] [--memory MIB] [--disk MIB] [--paused N]\n"
                         "  more: hotcell keys --help\n"),
    (["egress", "a"], "usage: hotcell egress log SANDBOX\n  more: hotcell egress --help\n"),
    (["ps", "--leaks"], "hotcell: --leaks is no option of `ps`\nusage: hotcell ps ["),
    (["lost", "x"], "usage: hotcell lost\n       hotcell lost list\n       hotcell lost restore ID|FOLDER...\n"
                    "       hotcell lost drop ID|FOLDER...\n  more: hotcell lost --help\n"),
])
def test_wrong_usage_says_how_it_is_written(words, usage):
    r = hotcell(None, *words)
    assert r.returncode == 2 and r.stderr.startswith(usage)


def test_words_behind_two_dashes_are_no_options(gateway):
    gateway("DELETE", "/admin/sandboxes/--all", 204)
    assert hotcell(gateway, "kill", "--", "--all").stdout == "killed --all\n"


# --- completion -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("shell, file", [("bash", "hotcell.bash"), ("zsh", "_hotcell"), ("fish", "hotcell.fish")])
def test_a_shell_reads_its_file(shell, file):
    need(shell)
    assert said(shell, "-n", CLI / file) == ""


def environment(gateway):
    path = gateway.socket_path if gateway else "/nonexistent"
    return {**os.environ, "PATH": f"{CLI}:{os.environ['PATH']}", "HOTCELL_ADMIN_SOCKET": str(path), "LC_ALL": "C.UTF-8"}


def completed(gateway, *typed):
    """What bash would offer for the last word."""
    script = ('source "$1"; shift; COMP_WORDS=(hotcell "$@"); COMP_CWORD=$#; _hotcell; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    r = subprocess.run(["bash", "--norc", "-c", script, "bash", CLI / "hotcell.bash", *typed], capture_output=True,
                       text=True, timeout=60, env=environment(gateway))
    assert r.returncode == 0 and r.stderr == "", r.stderr
    return set(r.stdout.split())


@pytest.mark.parametrize("typed, offered", [
    ([""], set(COMMANDS)),
    (["sta"], {"status"}),
    (["keys", "r"], {"rm", "rotate"}),
    (["keys", "limits", "k", "--p"], {"--paused"}),
    (["--json", "keys", "limits", "k", "--memory", "5", "--m"], {"--memory"}),
    (["ps", "--al"], {"--all"}),
    (["nothing", "x"], set()),
    (["kill", "a"], {"a1", "a2"}),
    (["kill", "a1", "a"], {"a1", "a2"}),
    (["why", "a1", "a"], set()),
    (["run", "--sandbox", "a"], {"a1", "a2"}),
    (["teams", "rm", ""], {TEAM["teamID"]}),
])
def test_bash_completes(gateway, typed, offered):
    gateway("GET", "/admin/sandboxes", 200, [sandbox("a1"), sandbox("a2"), sandbox("b1")])
    gateway("GET", "/admin/teams", 200, [TEAM])
    assert completed(gateway, *typed) == offered


def typed_at(shell, setup, line, until):
    """What a terminal shows after a line was typed into an interactive shell."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe(shell[0], shell, {**environment(None), "PS1": "$ ", "TERM": "dumb", "INPUTRC": "/dev/null"})
    seen, end = b"", time.monotonic() + 30
    os.write(fd, setup.encode() + b"\necho rea''dy\n")
    sent = False
    try:
        while time.monotonic() < end and not re.search(until, seen):
            if not sent and b"\nready" in seen:
                os.write(fd, line.encode())
                seen, sent = b"", True
            if select.select([fd], [], [], 0.2)[0]:
                seen += os.read(fd, 65536)
    finally:
        os.close(fd)
        os.waitpid(pid, 0)
    return seen


def test_tab_completes_in_a_real_bash():
    seen = typed_at(["bash", "--norc", "-i"], f"source {CLI}/hotcell.bash", "hotcell keys rot\t", rb"rotate")
    assert b"hotcell keys rotate" in seen


def test_tab_completes_in_a_real_zsh():
    need("zsh")
    seen = typed_at(["zsh", "-f", "-i"], f"fpath=({CLI} $fpath); autoload -U compinit; compinit -D -u",
                    "hotcell keys rot\t", rb"rot\x07?ate")
    assert re.search(rb"hotcell keys rot\x07?ate", seen)
