"""test_setup.py - `hotcell setup`: from installed files to a first key. systemd and node are played, gateway and signer are real
(tests/server/played_systemd.py); a booted Debian runs it in tests/install.
"""

import difflib
import fcntl
import http.client
import json
import os
import pty
import re
import select
import socket
import ssl
import time

import certs
import pytest

from lone_signer import SIGNER_UID
from played_systemd import SECONDS, InstalledHost, exports, no_kvm

STEPS = ["host", "certificate", "settings", "daemons", "base", "templates", "team", "names"]
# where it can be killed, in the order in which they come; those with a dot, and settings, are within a step
DEATHS = ["host", "certificate.made", "certificate", "allow_emulation", "listen_tls", "domain", "settings",
          "daemons.enabled", "daemons.started", "daemons", "base", "templates", "team.made", "team.key", "team", "names"]


@pytest.fixture
def host():
    with InstalledHost() as h:
        yield h


def first(host, *words, **more):
    """What a first run is given here: a port of its own, and emulation where it is needed."""
    return host.setup("--yes", "--domain", host.domain, "--allow-emulation", *words, **more)


def steps(r):
    """{step: how it went}, of what was said to people."""
    found = re.findall(r"^(ok|done|would|skipped|warn|FAIL) +(\S+)  ", r.stderr, re.M)
    return {step: state for state, step in found if step in STEPS}


def changed_lines(before, after):
    return [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"]


def ask_by_tls(host, name, env, target="/sandboxes"):
    """As a client with these variables would: at once, nothing is waited for."""
    context = ssl.create_default_context(cafile=env["SSL_CERT_FILE"])
    with socket.create_connection(("127.0.0.1", host.tls_port), SECONDS) as raw, \
            context.wrap_socket(raw, server_hostname=f"api.{name}") as s:
        s.sendall(f"GET {target} HTTP/1.1\r\nHost: api.{env['E2B_DOMAIN']}\r\nX-API-KEY: {env['E2B_API_KEY']}\r\n"
                  "Connection: close\r\n\r\n".encode())
        answer = http.client.HTTPResponse(s)
        answer.begin()
        return answer.status


def building(phase, reached=""):
    return {"buildStatus": "building", "progress": {"phase": phase, "reached": reached}}


def template(name, status, namespace="hotcell"):
    return {"templateID": "t1", "teamID": "x", "name": name, "namespace": namespace, "createdNs": "7",
            "build": {"buildID": "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d", "status": status}}


# --- what it does -----------------------------------------------------------------------------------------------------

def test_a_first_run_ends_with_a_client_that_works_and_a_second_changes_nothing(host):
    before, modes = host.conf("gateway"), host.files()
    host.node.told = [building("waiting"), building("checking"), building("building"), building("building", "cont"),
                      building("building", "saved"), building("warming"), {"buildStatus": "ready"}]
    r = first(host, "--team", "acme")
    assert r.returncode == 0, r.stderr
    assert list(steps(r)) == STEPS and set(steps(r).values()) <= {"ok", "done", "skipped"}, r.stderr
    for word in ("node asks warden", "templates that are there", "are copied", "the guest boots", "memory is saved", "read once"):
        assert word in r.stderr, r.stderr
    # only what it changed, where it belongs, comments kept
    assert changed_lines(before, host.conf("gateway")) == [
        f"+ listen_tls = 127.0.0.1:{host.tls_port},[::1]:{host.tls_port}", f"+ domain = {host.domain}"]
    assert changed_lines("# without KVM\n#allow_emulation = no\n", host.conf("warden")) == (
        ["+ allow_emulation = yes"] if no_kvm() else [])  # a host that has KVM is not made weaker
    assert [host.files()["gateway.conf"][i] for i in (1, 2)] == [modes["gateway.conf"][i] for i in (1, 2)]
    assert host.changes() == ["enable hotcell.target", "start --no-block hotcell.target",
                              *(f"start --no-block hotcell-template@{t}.service" for t in ("code-interpreter-v1", "browser", "desktop"))]
    # a shell that reads it is a client
    env = exports(r.stdout)
    assert set(env) == {"E2B_DOMAIN", "E2B_API_KEY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"}
    assert ask_by_tls(host, "hotcell.localhost", env) == 200
    assert list(host.teams()) == ["acme"] and len(host.keys()) == 1
    assert env["E2B_API_KEY"] not in r.stderr and env["E2B_API_KEY"] not in "".join(host.calls())
    # again
    files, teams, keys, calls = host.files(), host.teams(), host.keys(), len(host.changes())
    r = host.setup("--yes")
    assert r.returncode == 0, r.stderr
    assert "done" not in steps(r).values(), r.stderr
    assert (host.files(), host.teams(), host.keys()) == (files, teams, keys)
    assert [c for c in host.changes()[calls:] if "hotcell-template@" not in c] == []
    assert "E2B_API_KEY" not in exports(r.stdout) and "hotcell keys add acme" in r.stdout
    # what a flag names, and nothing else
    r = host.setup("--yes", "--domain", f"box.{host.domain}")
    assert r.returncode == 0, r.stderr
    assert [c for c in host.changes() if "hotcell-template@" not in c][-1] == "replace"
    now = host.files()
    assert {name for name in now if now[name] != files.get(name)} == {
        ".", "gateway.conf", "tls", "tls/box.hotcell.localhost", "tls/box.hotcell.localhost/fullchain.pem",
        "tls/box.hotcell.localhost/privkey.pem"}
    assert changed_lines(files["gateway.conf"][0].decode(), host.conf("gateway")) == [
        f"- domain = {host.domain}", f"+ domain = box.{host.domain}"]
    assert ask_by_tls(host, "box.hotcell.localhost", {**env, "E2B_DOMAIN": f"box.{host.domain}"}) == 200
    assert (host.teams(), host.keys()) == (teams, keys)


def test_one_that_is_killed_at_every_step_goes_on_from_there(host):
    key_file = host.base / "key"
    words = ["--team", "acme", "--key-file", str(key_file)]
    for death in DEATHS:
        r = first(host, *words, HOTCELL_SETUP_DIE_AT=death)
        assert r.returncode == -9, (death, r.stderr)
        assert key_file.exists() == (death in ("team", "names")), death
    r = first(host, *words)
    assert r.returncode == 0, r.stderr
    assert "done" not in steps(r).values(), r.stderr
    assert list(host.teams()) == ["acme"] and len(host.keys()) == 2  # one was made and died with the run that made it
    assert key_file.stat().st_mode & 0o777 == 0o600 and key_file.read_text().startswith("e2b_")
    assert key_file.read_text().strip() not in r.stdout + r.stderr
    assert exports(r.stdout)["E2B_API_KEY"] == key_file.read_text().strip()
    assert not [p for p in host.etc.rglob("*") if p.name.endswith(".new")]
    assert host.changes().count("start --no-block hotcell.target") <= 2
    assert ask_by_tls(host, "hotcell.localhost", exports(r.stdout)) == 200


def test_the_code_interpreter_is_waited_for_where_its_package_is(host):
    host.say("hotcell-template@code-interpreter-v1.service", active="activating", sub="start")
    host.node.on_list = iter([[], [template("code-interpreter-v1", "building")], [template("code-interpreter-v1", "building")], [template("code-interpreter-v1", "ready")]])
    host.node.logs = iter(["unpacked 12 layers", "its kernels start\x1b[2J"])
    host.node.at_the_end = lambda: host.say("hotcell-template@code-interpreter-v1.service", active="inactive", sub="dead")
    r = first(host)
    assert r.returncode == 0, r.stderr
    assert steps(r)["templates"] == "done", r.stderr
    assert "unpacked 12 layers" in r.stderr and "its kernels start?[2J" in r.stderr


def test_of_several_packages_each_template_is_waited_for(host):
    host.say("hotcell-template@desktop.service", active="activating", sub="start")
    listed = [template("browser", "ready", "acme"), template("code-interpreter-v1", "ready"), template("desktop", "building")]
    host.node.on_list = iter([listed] * 6 + [[*listed[:2], template("desktop", "ready")]])
    host.node.at_the_end = lambda: host.say("hotcell-template@desktop.service", active="inactive", sub="dead")
    r = first(host)
    assert r.returncode == 0, r.stderr
    assert steps(r)["templates"] == "done", r.stderr
    assert "ready: code-interpreter-v1, desktop; not installed: hotcell-guest-browser" in r.stderr, r.stderr


def test_templates_of_packages_are_those_of_the_team_that_shares_its(host):
    """Others are found by nobody who says their name alone."""
    host.conf("node", host.conf("node") + "shared_team = acme\n")
    host.node.on_list = iter([[template("browser", "ready"), template("desktop", "ready", "acme")]])
    r = first(host)
    assert r.returncode == 0, r.stderr
    assert "ready: desktop; not installed: hotcell-guest-interpreter, hotcell-guest-browser" in r.stderr, r.stderr


@pytest.mark.parametrize("shared, said", [("", "browser could not be made"), ("acme", "browser is not there")])
def test_a_template_that_nobody_would_find_is_not_called_ready(host, shared, said):
    """Its unit says why, but not of a setting that node has not read yet."""
    host.conf("node", host.conf("node") + f"shared_team = {shared}\n")
    host.say("hotcell-template@browser.service", active="inactive" if shared else "failed", result="success" if shared else "exit-code")
    host.node.on_list = iter([[template("browser", "ready")]])
    r = first(host)
    assert r.returncode == 1 and said in r.stderr and "ready: " not in r.stderr, r.stderr
    assert not shared or "shared_team = acme" in r.stderr and "restart hotcell-node" in r.stderr, r.stderr


def test_a_template_that_waits_for_its_next_try_is_tried_at_once(host):
    """systemd waits for half an hour in the end; whoever runs setup has mended it, or wants to see why not."""
    host.say("hotcell-template@browser.service", active="activating", sub="auto-restart", restarts=9, result="exit-code")
    r = first(host)
    assert "restart --no-block hotcell-template@browser.service" in host.changes(), host.changes()
    assert r.returncode == 1 and "browser could not be made" in r.stderr, r.stderr
    host.node.on_list = iter([[template("browser", "ready")]])
    r = first(host)
    assert r.returncode == 0 and "ready: browser" in r.stderr, r.stderr


def test_a_dry_run_says_what_would_be_and_does_nothing(host):
    files = host.files()
    r = first(host, "--dry-run")
    assert r.returncode == 0 and r.stdout == "", r.stderr
    assert [s for s, how in steps(r).items() if how == "would"] == ["certificate", "settings", "daemons", "base", "templates", "team"]
    assert f"domain = {host.domain}" in r.stderr and host.files() == files and host.changes() == []


def test_json_has_all_of_it(host):
    r = first(host, "--json")
    assert r.returncode == 0 and r.stderr == "", r.stderr
    told = json.loads(r.stdout)
    assert told["changed"] and [s["step"] for s in told["steps"] if s["step"] in STEPS] == STEPS
    assert told["team"] == "main" and told["environment"]["E2B_DOMAIN"] == host.domain
    assert told["environment"]["E2B_API_KEY"].startswith("e2b_") and told["test"]
    told = json.loads(host.setup("--json").stdout)
    assert not told["changed"] and "E2B_API_KEY" not in told["environment"]


# --- certificates that are there --------------------------------------------------------------------------------------

def test_behind_a_proxy_there_is_no_certificate(host):
    host.conf("gateway", host.conf("gateway") + "proxies = 127.0.0.1\n")
    r = first(host)
    assert r.returncode == 0, r.stderr
    assert steps(r)["certificate"] == "skipped" and not (host.etc / "tls").exists()
    assert set(exports(r.stdout)) == {"E2B_DOMAIN", "E2B_API_KEY"}
    assert "listen_tls = " not in host.conf("gateway").replace("#listen_tls", "")


def test_a_certificate_of_ones_own_is_kept(host):
    (host.etc / "tls").mkdir(mode=0o755)
    certs.put(host.etc / "tls", "own", certs.Authority(host.base).issue("hotcell.localhost", "*.hotcell.localhost"), SIGNER_UID)
    r = first(host)
    assert r.returncode == 0, r.stderr
    assert steps(r)["certificate"] == "ok" and sorted(os.listdir(host.etc / "tls")) == ["own"]
    assert set(exports(r.stdout)) == {"E2B_DOMAIN", "E2B_API_KEY"}


# --- settings ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("before, after", [
    ("", "domain = {d}\n"),
    ("a = b", "a = b\ndomain = {d}\n"),
    ("# of names\n#domain =\n\na = b\n", "# of names\n#domain =\ndomain = {d}\n\na = b\n"),
    ("domain = old.example\n#domain =\n", "domain = {d}\n#domain =\n"),
    ("domain = one\n\n  domain=two\n# end", "domain = one\n\ndomain = {d}\n# end"),  # the last one is in force
    ("domains = x\n# domain is what = this is not\n", "domains = x\n# domain is what = this is not\ndomain = {d}\n"),
])
def test_a_setting_is_put_where_it_belongs(host, before, after):
    systemd_refuses(host)  # nothing is started with it
    host.conf("gateway", f"tls_dir = {host.etc}/tls\nproxies = 127.0.0.1\n" + before)
    first(host)
    assert host.conf("gateway") == f"tls_dir = {host.etc}/tls\nproxies = 127.0.0.1\n" + after.format(d=host.domain)


def test_a_domain_that_is_there_keeps_its_spelling(host):
    host.conf("gateway", host.conf("gateway") + "proxies = 127.0.0.1\ndomain = Hotcell.Example.com:443\n")
    before = host.conf("gateway")
    r = host.setup("--yes", "--allow-emulation")
    assert r.returncode == 0, r.stderr
    assert host.conf("gateway") == before and exports(r.stdout)["E2B_DOMAIN"] == "hotcell.example.com"
    assert "replace" not in host.changes()


# --- what goes wrong --------------------------------------------------------------------------------------------------

def port_taken(host):
    host.taken = socket.create_server(("127.0.0.1", host.port))


def linked(host):
    (host.etc / "gateway.conf").rename(host.base / "elsewhere.conf")
    (host.etc / "gateway.conf").symlink_to(host.base / "elsewhere.conf")


def not_installed(host):
    (host.etc / "gateway.conf").unlink()


def another_runs(host):
    host.taken = os.open(host.etc, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(host.taken, fcntl.LOCK_EX)


def systemd_refuses(host):
    (host.played / "refused").write_text("Access denied\n")


def warden_dies(host):
    host.node.warden = False
    host.dies("hotcell-warden.service")
    (host.played / "journal").write_text("fatal: no KVM\n\x1b[2Jand more\n")


def base_fails(host):
    host.node.told = [{"buildStatus": "error", "message": "the disk is empty"}]


def interpreter_fails(host):
    host.say("hotcell-template@code-interpreter-v1.service", active="failed", result="exit-code")


@pytest.mark.parametrize("breaks, words, status, said", [
    (port_taken, [], 1, ["FAIL", "ports", "is taken by pid"]),
    (linked, [], 1, ["gateway.conf that is no link", "install"]),
    (not_installed, [], 1, ["there is no", "gateway.conf", "install"]),
    (another_runs, [], 1, ["another hotcell setup runs"]),
    (systemd_refuses, [], 1, ["FAIL", "daemons", "systemctl enable: Access denied"]),
    (warden_dies, [], 1, ["FAIL", "daemons", "hotcell-warden.service does not stay up", "fatal: no KVM", "?[2Jand more"]),
    (base_fails, [], 1, ["FAIL", "base", "the disk is empty", "hotcell-node"]),
    (interpreter_fails, [], 1, ["FAIL", "templates", "what it said", "code-interpreter-v1 could not be made"]),
    (None, ["--domain", "localhost"], 1, ["two labels"]),
    (None, ["--domain", "hotcell.localhost:80"], 1, ["port 80", "443"]),
    (None, ["--team", "-x"], 1, ["no name of a team", "--team"]),
    (None, ["--key-file", "key"], 1, ["--key-file", "begins with /"]),
    (None, ["--key-file", "/no/such/folder/key"], 1, ["FAIL", "team", "/no/such/folder/key"]),
    (None, ["more"], 2, ["usage"]),
])
def test_what_goes_wrong_is_said_with_its_fix(host, breaks, words, status, said):
    if breaks:
        breaks(host)
    r = first(host, *words)
    assert r.returncode == status, r.stderr
    assert all(s in r.stderr for s in said), r.stderr
    assert status == 2 or "fix:" in r.stderr
    assert r.stdout == "" and "\x1b" not in r.stderr


def test_json_has_what_went_wrong(host):
    warden_dies(host)
    r = first(host, "--json")
    assert r.returncode == 1 and r.stderr == ""
    told = json.loads(r.stdout)
    assert told["steps"][-1]["state"] == "FAIL" and told["steps"][-1]["fix"] and told["journal"] == ["fatal: no KVM", "?[2Jand more"]


def test_an_authority_for_another_domain_is_not_asked_for_this_one(host):
    assert first(host).returncode == 0
    files = host.files()
    r = host.setup("--yes", "--domain", "other.example:8443")
    assert r.returncode == 1 and "for hotcell.localhost alone" in r.stderr and "fix:" in r.stderr
    assert host.files() == files


@pytest.mark.skipif(not no_kvm(), reason="this host has KVM")
def test_without_kvm_emulation_is_not_the_default(host):
    files = host.files()
    r = host.setup("--yes", "--domain", host.domain)
    assert r.returncode == 1 and "--allow-emulation" in r.stderr and "not a security" in r.stderr
    assert host.files() == files and host.changes() == []


def test_names_that_are_not_found_are_a_warning(host):
    (host.played / "no-names").touch()
    r = first(host)
    assert r.returncode == 0 and steps(r)["names"] == "warn" and "libnss-myhostname" in r.stderr


def test_names_below_localhost_that_lead_elsewhere_are_a_warning(host):
    (host.played / "wrong-names").touch()
    r = first(host)
    assert r.returncode == 0 and steps(r)["names"] == "warn" and "93.184.216.34" in r.stderr and "nsswitch.conf" in r.stderr


# --- at a terminal ----------------------------------------------------------------------------------------------------

def test_at_a_terminal_it_asks_at_most_three_questions_and_draws_a_bar(host):
    host.node.told = [building("building", "cont")] * 3 + [{"buildStatus": "ready"}]
    answers = {"1. ": [b"localhost\n", f"{host.domain}\n".encode()], "2. ": [b"my team\n"], "3. ": [b"maybe\n", b"y\n"]}
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(host.command()[0], host.command(), host.env(TERM="xterm"))
    said, until = b"", time.monotonic() + SECONDS * 3
    asked = []
    while time.monotonic() < until:
        if not select.select([fd], [], [], 1)[0]:
            continue
        try:
            piece = os.read(fd, 4096)
        except OSError:
            break
        said += piece
        line = said.rsplit(b"\n", 1)[-1].decode(errors="replace")
        if line[:3] in answers and line.endswith("]: ") and answers[line[:3]]:
            asked.append(line[0])
            os.write(fd, answers[line[:3]].pop(0))
    text = said.decode(errors="replace")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, text
    assert asked == ["1", "1", "2"] + (["3", "3"] if no_kvm() else []), text
    assert "has one label" in text and "keys add 'my team'" in text and re.search(r"\[#+\.+\]  base: step 9 of \d+, the guest boots", text), text
    assert list(host.teams()) == ["my team"] and f"domain = {host.domain}" in host.conf("gateway")
