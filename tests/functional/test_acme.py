"""test_acme.py - a certificate for a domain and its wildcard, from a real ACME server on loopback, by what deploy/acme has.

The server is pebble, the client uacme, the name server a played one that takes nsupdate's signed updates. All of it is what an
installation runs, but for systemd, which tests/kvm has.
"""

import json
import os
import pathlib
import re
import subprocess

import pytest

from daemon import free_port
from https_site import Site, by_node, by_python
from layout import build_dir
from played_dns import PlayedDns
from warden import wait_for

TOP = pathlib.Path(__file__).resolve().parents[2]
ACME = TOP / "deploy/acme"
DOMAIN = "sbx.example.test"
OWNER = 786000
SECONDS = 60
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a mount namespace, and owners of files")


def run(words, **env):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=SECONDS,
                          env={**os.environ, **{name: str(value) for name, value in env.items()}})


def must(words, **env):
    r = run(words, **env)
    assert r.returncode == 0, r.stderr
    return r.stdout


class Pebble:
    """Its own certificate is trusted by who runs below `trusting`, and by nobody else."""

    def __init__(self, folder, dns):
        self.folder, self.port, self.management = folder, free_port(), free_port()
        must(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=pebble",
              "-addext", "subjectAltName=DNS:localhost", "-days", "2", "-keyout", folder / "pebble.key", "-out",
              folder / "pebble.pem"])
        (folder / "pebble.json").write_text(json.dumps({"pebble": {
            "listenAddress": f"127.0.0.1:{self.port}", "managementListenAddress": f"127.0.0.1:{self.management}",
            "certificate": str(folder / "pebble.pem"), "privateKey": str(folder / "pebble.key"), "httpPort": 1, "tlsPort": 1,
            "ocspResponderURL": "", "externalAccountBindingRequired": False}}))
        self.log = open(folder / "pebble.log", "w")
        # refused nonces: uacme takes some for an error, and its timer tries again half a day later
        self.process = subprocess.Popen(
            ["pebble", "-config", folder / "pebble.json", "-dnsserver", f"127.0.0.1:{dns.port}"], stdout=self.log, stderr=self.log,
            env={**os.environ, "PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0", "PEBBLE_AUTHZREUSE": "0"})
        self.directory = f"https://localhost:{self.port}/dir"
        wait_for(lambda: by_curl_ok(self.directory, folder / "pebble.pem"), "pebble answers", SECONDS)
        self.root = folder / "root.pem"
        self.root.write_text(must(["curl", "-sS", "--cacert", folder / "pebble.pem",
                                   f"https://localhost:{self.management}/roots/0"]))

    def close(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def trusting(self, words):
        """The system's list, with pebble in it, in a namespace of its own."""
        return ["unshare", "-m", "sh", "-c", f"mount --bind {self.folder}/pebble.pem {BUNDLE} && exec \"$@\"", "sh", *words]


def by_curl_ok(url, ca):
    return run(["curl", "-sS", "--cacert", ca, url]).returncode == 0


class Acme:
    def __init__(self, folder, dns, pebble, tls=None, owner=OWNER):
        self.folder, self.dns, self.pebble, self.owner = folder, dns, pebble, owner
        self.state, self.tls = folder / "state", tls or folder / "tls"
        self.state.mkdir()
        self.key = folder / "tsig.key"
        self.key.write_text(dns.key_text)
        self.env = {"ACME_DOMAIN": DOMAIN, "ACME_EMAIL": "admin@example.test", "ACME_STATE": self.state,
                    "ACME_DIRECTORY": pebble.directory, "ACME_WAIT_SECONDS": 0, "DNS_SERVER": "127.0.0.1", "DNS_PORT": dns.port,
                    "DNS_KEY_FILE": self.key}

    def issue(self, **env):
        return run(self.pebble.trusting([ACME / "issue"]), **{**self.env, **env})

    def install(self):
        """The unit's second step: its own words, with the test's folders in them."""
        line = next(line for line in (ACME / "hotcell-acme.service").read_text().splitlines()
                    if line.startswith("ExecStartPost=+"))
        words = line.removeprefix("ExecStartPost=+").replace("${ACME_DOMAIN}", DOMAIN) \
            .replace("/var/lib/hotcell-acme", str(self.state)).split()
        assert words[0] == "@bindir@/hotcell"
        return run([build_dir() / "src/cli/hotcell", *words[1:], "--tls-dir", self.tls, "--owner", self.owner, "--json"])

    def leaf(self):
        return (self.tls / DOMAIN / "fullchain.pem").read_text()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("acme")
    with PlayedDns("example.test") as dns:
        pebble = Pebble(folder, dns)
        try:
            yield folder, dns, pebble
        finally:
            pebble.close()


@pytest.fixture(scope="module")
def acme(served):
    return Acme(*served)


def test_a_wildcard_is_issued_installed_and_believed(acme):
    r = acme.issue()
    assert r.returncode == 0, r.stderr
    installed = acme.install()
    assert installed.returncode == 0, installed.stderr
    said = json.loads(installed.stdout)
    assert said["installed"] and sorted(said["names"]) == [f"*.{DOMAIN}", DOMAIN] and "Pebble" in said["issuer"]
    pair = acme.tls / DOMAIN
    assert (pair / "privkey.pem").stat().st_uid == OWNER and (pair / "privkey.pem").stat().st_mode & 0o777 == 0o400
    hosts = [DOMAIN, f"api.{DOMAIN}", f"49983-i1a2b3.{DOMAIN}"]
    with Site(pair) as site:
        assert [by_python(site.port, host, acme.pebble.root) for host in hosts] == [f"{h}:{site.port}" for h in hosts]
        assert by_node(site.port, hosts, acme.pebble.root) == [f"{h}:{site.port}" for h in hosts]


def test_the_domain_and_the_wildcard_were_both_proved_and_nothing_is_left(acme):
    added = [row for row in acme.dns.updates if row[0] == "add"]
    assert len({value for _, _, value in added}) == 2
    assert {name for _, name, _ in added} == {f"_acme-challenge.{DOMAIN}."}
    assert sorted(("delete", *row[1:]) for row in added) == sorted(row for row in acme.dns.updates if row[0] == "delete")
    assert not any(acme.dns.records.values())


def test_one_that_is_good_for_long_is_left_alone(acme):
    before, asked = acme.leaf(), len(acme.dns.updates)
    assert acme.issue().returncode == 0
    said = json.loads(acme.install().stdout)
    assert said["installed"] is False
    assert acme.leaf() == before and len(acme.dns.updates) == asked


def test_one_that_is_due_is_renewed(acme):
    before = acme.leaf()
    r = acme.issue(ACME_DAYS=100000)
    assert r.returncode == 0, r.stderr
    assert acme.leaf() == before  # until it is installed
    assert json.loads(acme.install().stdout)["installed"] is True
    assert acme.leaf() != before
    with Site(acme.tls / DOMAIN) as site:
        assert by_python(site.port, f"api.{DOMAIN}", acme.pebble.root) == f"api.{DOMAIN}:{site.port}"


def test_hotcell_does_not_renew_what_acme_does(acme):
    before = acme.leaf()
    assert must([build_dir() / "src/cli/hotcell", "tls", "renew", "--tls-dir", acme.tls, "--owner", OWNER]) == "nothing is due\n"
    assert acme.leaf() == before


def test_when_it_fails_what_there_is_stays(acme):
    """A wrong key for the zone: the authority finds no record. The old pair is served on."""
    before, refused = acme.leaf(), acme.dns.refused
    wrong = acme.folder / "wrong.key"
    wrong.write_text(re.sub(r'secret "[^"]*"', 'secret "d3Jvbmc="', acme.dns.key_text))
    r = acme.issue(ACME_DAYS=100000, DNS_KEY_FILE=wrong)
    assert r.returncode != 0
    assert acme.dns.refused > refused
    acme.install()
    assert acme.leaf() == before


@pytest.mark.parametrize("kind, name, value", [("http-01", DOMAIN, "v"), ("tls-alpn-01", DOMAIN, "v"),
                                               ("dns-01", "a.test\nupdate delete b.test", "v"), ("dns-01", "a b", "v"),
                                               ("dns-01", DOMAIN, 'v" \nupdate delete x'), ("dns-01", "", "v"), ("dns-01", DOMAIN, "")])
def test_the_hook_takes_dns_alone_and_writes_nothing_odd(tmp_path, kind, name, value):
    """What an authority's server says goes into commands of nsupdate."""
    called = tmp_path / "called"
    dns = tmp_path / "dns"
    dns.write_text(f"#!/bin/sh\necho \"$@\" >>{called}\n")
    dns.chmod(0o755)
    for method in ("begin", "done", "failed"):
        assert run([ACME / "hook", method, kind, name, "token", value], ACME_DNS=dns, ACME_WAIT_SECONDS=0).returncode == 1
    assert not called.exists()
    assert run([ACME / "hook", "begin", "dns-01", DOMAIN, "token", "a_b-C9"], ACME_DNS=dns, ACME_WAIT_SECONDS=0).returncode == 0
    assert called.read_text() == f"add _acme-challenge.{DOMAIN} a_b-C9\n"
