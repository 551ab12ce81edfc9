"""test_tls_site.py - what `hotcell tls` made, shown by a real gateway: to the published SDKs, and while it is renewed.

The SDKs know two things: E2B_DOMAIN, with a port in it, and a key. Names are found by the system's resolver (libnss-myhostname).
"""

import os
import pathlib
import ssl
import subprocess
import threading

import pytest

from engine import artefact
from layout import build_dir
from lone_signer import SIGNER_UID
import test_acme
from played_dns import PlayedDns
from test_tls_init import DAY, Tls, make_due
from tls_gateway import TlsGateway
from warden import wait_for

NAME = "hotcell.localhost"
RENEWALS = int(os.environ.get("HOTCELL_RENEWALS", "5"))
SECONDS = 60

PYTHON = """
from e2b import Sandbox
box = Sandbox.create()
print(box.sandbox_id, box.get_host(8080), flush=True)
box.kill()
"""
JS = """
import { Sandbox } from 'e2b'
const box = await Sandbox.create()
const host = box.getHost(8080)
console.log(box.sandboxId, host, (await (await fetch(`https://${host}/`)).text()).trim())
await box.kill()
"""


class Site(TlsGateway):
    """Its certificate and its authority are those of `hotcell tls init`."""

    def __init__(self):
        super().__init__(domain=f"{NAME}:0")
        self.domain = f"{NAME}:{self.tls_port}"
        self.daemon.settings["domain"] = self.domain
        self.tool = Tls(self.base)
        assert self.tool.dir == self.tls_dir
        subprocess.run(["rm", "-r", self.tls_dir / "own"], check=True)
        said = self.tool.run("init", self.domain, owner=SIGNER_UID)
        assert said.returncode == 0, said.stderr
        self.authority.cert = self.tool.ca

    def wait_served(self, name, pair):
        wait_for(lambda: (now := self.certificate(NAME)) and now["served"] and now["refused"] is None, "it is served", SECONDS, 0.02)

    def shown_key(self):
        return self.certificate(NAME)["key"]

    def environment(self):
        trusted = self.base / "trusted.pem"
        trusted.write_bytes(pathlib.Path("/etc/ssl/certs/ca-certificates.crt").read_bytes() + self.tool.ca.read_bytes())
        kept = {name: value for name, value in os.environ.items() if not name.startswith("E2B_") and "proxy" not in name.lower()}
        return {**kept, "E2B_DOMAIN": self.domain, "E2B_API_KEY": self.key, "SSL_CERT_FILE": str(trusted),
                "NODE_EXTRA_CA_CERTS": str(self.tool.ca), "NODE_OPTIONS": "--dns-result-order=ipv4first"}


@pytest.fixture(scope="module")
def site():
    with Site() as gateway:
        yield gateway


@pytest.fixture(scope="module")
def sdks():
    return pathlib.Path(artefact("sdks")) / "newest"


def answer_once(listener):
    client, _ = listener.accept()
    with client:
        client.recv(65536)
        client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\ninside")


def test_python_needs_a_domain_and_a_key(site, sdks):
    r = subprocess.run([sdks / "python/bin/python", "-c", PYTHON], capture_output=True, text=True, timeout=SECONDS,
                       env=site.environment())
    assert r.returncode == 0, r.stderr[-3000:]
    box, host = r.stdout.split()
    assert host == f"8080-{box}.{site.domain}"


def test_javascript_too_and_getHost_leads_into_the_sandbox(site, sdks, tmp_path):
    script = tmp_path / "demo.mjs"
    script.write_text(JS)
    (tmp_path / "node_modules").symlink_to(sdks / "js/node_modules")
    own = sdks / "js/node_modules/.bin/node"
    with site.node.listen(8080) as listener:
        thread = threading.Thread(target=answer_once, args=[listener], daemon=True)
        thread.start()
        r = subprocess.run([own if own.exists() else "node", script], capture_output=True, text=True, timeout=SECONDS,
                           cwd=tmp_path, env=site.environment())
    assert r.returncode == 0, r.stderr[-3000:]
    box, host, said = r.stdout.split()
    assert host == f"8080-{box}.{site.domain}" and said == "inside"


class Load:
    """Clients that connect, believe, ask and go, until told to stop."""

    def __init__(self, site, name=f"api.{NAME}", context=None, clients=3):
        self.site, self.name, self.context = site, name, context
        self.stopping, self.asked, self.failures = threading.Event(), 0, []
        self.threads = [threading.Thread(target=self.work) for _ in range(clients)]

    def work(self):
        while not self.stopping.wait(0.02):
            try:
                assert self.site.ask_tls(name=self.name, context=self.context)[0] in (200, 204)
                self.asked += 1
            except Exception as e:  # pylint: disable=broad-except
                self.failures.append(repr(e))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exc):
        self.stopping.set()
        for thread in self.threads:
            thread.join()


def test_renewals_under_load_are_not_noticed(site):
    """Each has another key, and is shown before the next comes."""
    keys = {site.shown_key()}
    with Load(site) as load:
        for _ in range(RENEWALS):
            make_due(site.tool)
            os.chown(site.tls_dir / NAME / "privkey.pem", SIGNER_UID, -1)
            r = site.tool.run("renew", owner=SIGNER_UID)
            assert r.returncode == 0 and r.stdout == f"renewed {NAME}\n", r.stderr
            wait_for(lambda: site.shown_key() not in keys and site.certificate(NAME)["secondsLeft"] > 80 * DAY, "the new one is shown",
                     SECONDS, 0.02)
            keys.add(site.shown_key())
    assert not load.failures, load.failures[:3]
    assert load.asked > RENEWALS and len(keys) == RENEWALS + 1


def test_renewals_by_acme_under_load_are_not_noticed(site, tmp_path):
    """A certificate from a real ACME server beside the first one, found by its name; renewed."""
    with PlayedDns("example.test") as dns:
        pebble = test_acme.Pebble(tmp_path, dns)
        try:
            acme = test_acme.Acme(tmp_path, dns, pebble, site.tls_dir, SIGNER_UID)
            assert acme.issue().returncode == 0 and acme.install().returncode == 0
            context = ssl.create_default_context(cafile=pebble.root)
            shown = lambda: serial(site, f"api.{test_acme.DOMAIN}", context)
            wait_for(shown, "it is shown", SECONDS, 0.05)
            first = shown()
            with Load(site, f"api.{test_acme.DOMAIN}", context) as load:
                r = acme.issue(ACME_DAYS=100000)
                assert r.returncode == 0, r.stderr
                assert acme.install().returncode == 0
                wait_for(lambda: shown() not in (first, None), "the new one is shown", SECONDS, 0.05)
            assert not load.failures, load.failures[:3]
            assert load.asked > 10
        finally:
            pebble.close()


def serial(site, name, context):
    """Of the certificate that is shown; None: it is not believed."""
    try:
        with site.connect(name, context=context) as sock:
            return sock.getpeercert()["serialNumber"]
    except ssl.SSLCertVerificationError:
        return None
