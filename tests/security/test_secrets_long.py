"""test_secrets_long.py - a secret that package managers in a sandbox use and that never enters it.

As test_secrets.py, with Node's fetch, npm, pip, apt and Java, in an image that has them (guest/tools). Each of them
brings certificates of its own or looks for them in a place of its own, and must trust the installation's authority
as the template was built, with no option given, and nobody else's. What pip, npm and apt ask for they get: a package,
which is installed.
"""

import re
import time

import pytest

import shelves
from engine import tools_disk_path
from internet import Internet
from secret_use import NAME, Secret, check_files, check_memory, heard
from server import Server
from warden import is_sanitized

SECONDS = 600  # for one command: npm, emulated, on a busy machine
HOSTS = {tool: f"{tool}.wild.test" for tool in ("node", "npm", "pip", "apt", "java")}
RULE = [{"transform": {"headers": {"Authorization": "Bearer ${e2b.secrets.%s}" % NAME,
                                   "X-Api-Key": "${e2b.secrets.%s}" % NAME}}}]
NETWORK = {"allowOut": ["*.wild.test"], "denyOut": ["0.0.0.0/0"], "rules": {host: RULE for host in HOSTS.values()}}

STRANGER = "stranger.wild.test"  # without a rule, so its TLS is not opened; and nobody knows its certificate

FETCH = """
const ask = path => fetch("https://" + process.argv[2] + path, {headers: {authorization: "mine"}});
ask("/fetch-1").then(one => one.text()).then(() => ask("/fetch-2")).then(two => console.log(two.status));
"""
PIP_OPTIONS = "--retries 0 --disable-pip-version-check --no-cache-dir --index-url https://$host/files/simple tiny"
APT_OPTIONS = "-q -y -o Acquire::Retries=0 -o Dir::Etc::sourcelist=/tmp/$host.list -o Dir::Etc::sourceparts=-"
# Java without a compiler: its keytool fetches lists over HTTPS, with the store that all of Java uses.
COMMANDS = {
    "node": "node /tmp/fetch.mjs $host",
    "npm": "mkdir /tmp/$host && cd /tmp/$host && npm install --no-audit --fetch-retries 0 "
           "--registry https://$host/files/npm/ tiny && node -e 'require(\"tiny\")'",
    "pip": f"pip download -d /tmp/wheels {PIP_OPTIONS} && pip install {PIP_OPTIONS} && python3 -c 'import tiny; tiny.greet()'",
    "apt": 'echo "deb [trusted=yes] https://$host/files/apt ./" >/tmp/$host.list && export DEBIAN_FRONTEND=noninteractive && '
           f"apt-get {APT_OPTIONS} --error-on=any update && apt-get {APT_OPTIONS} install tiny && cat /usr/share/tiny",
    "java": "keytool -printcrl -file https://$host/files/none.crl && echo done",
}


@pytest.fixture(scope="module")
def internet():
    with Internet() as i:
        shelves.fill(i.folder / "files", HOSTS["npm"])
        (i.folder / "files/none.crl").touch()
        yield i


@pytest.fixture(scope="module")
def server(internet):
    began = time.monotonic()
    with Server(internet=internet, injector={}, node={"memory_mib": 1024}, own_template=True,
                disk=tools_disk_path()) as s:
        print(f"template and all: {time.monotonic() - began:.0f} s")
        yield s


@pytest.fixture(scope="module")
def secret(server):
    return Secret(server)


@pytest.fixture(scope="module")
def box(server, secret):
    box = server.create(network=NETWORK)
    server.write(box, "/tmp/fetch.mjs", FETCH.encode())
    yield box
    server.delete(box)


def ask(server, internet, box, tool, host):
    """What the tool said, line by line, and who was asked."""
    internet.heard()
    began = time.monotonic()
    said = server.run(box, f"host={host}; {{ {COMMANDS[tool]}; }} 2>&1 || echo failed", SECONDS,
                      "root" if tool == "apt" else "user")
    print(f"{tool}: {time.monotonic() - began:.1f} s\n{said}")
    return said.splitlines() or [""], heard(internet)


def use(server, internet, box, secret, tool):
    """Its last line, and the targets of its requests, all of which must have the secret."""
    said, asked = ask(server, internet, box, tool, HOSTS[tool])
    assert asked, said
    assert {one["host"] for one in asked} == {HOSTS[tool]}
    assert {(one["fields"].get("authorization"), one["fields"].get("x-api-key")) for one in asked} == \
        {(f"Bearer {secret.value}", secret.value)}
    return said[-1], {one["target"] for one in asked}


@pytest.mark.parametrize("tool", HOSTS)
def test_each_looks_at_certificates(server, internet, box, tool):
    """Else it would prove nothing that those of the rules' hosts are trusted."""
    said, asked = ask(server, internet, box, tool, STRANGER)
    assert said[-1] == "failed" and asked == []
    assert re.search("certif|CERT", "\n".join(said))


def test_node(server, internet, box, secret):
    assert use(server, internet, box, secret, "node") == ("200", {"/fetch-1", "/fetch-2"})


def test_npm(server, internet, box, secret):
    last, asked = use(server, internet, box, secret, "npm")
    assert last == shelves.GREETING and asked >= {"/files/npm/tiny", "/files/npm/-/tiny-1.0.0.tgz"}


def test_pip(server, internet, box, secret):
    last, asked = use(server, internet, box, secret, "pip")
    assert last == shelves.GREETING and {target.rpartition("/")[2] for target in asked} == {"", "tiny-1.0-py3-none-any.whl"}


def test_apt(server, internet, box, secret):
    last, asked = use(server, internet, box, secret, "apt")
    assert last == shelves.GREETING and asked >= {"/files/apt/./Release", "/files/apt/./tiny.deb"}


def test_java(server, internet, box, secret):
    assert use(server, internet, box, secret, "java") == ("done", {"/files/none.crl"})


@pytest.mark.skipif(is_sanitized(), reason="a sanitizer's memory is too large to be searched")
def test_no_trace_in_memory(server, box, secret):
    check_memory(server, box, secret)


def test_no_trace_in_files(server, box, secret):
    check_files(server, box, secret)
