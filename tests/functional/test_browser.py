"""test_browser.py - what getHost(port) names, opened by a real browser that trusts what `hotcell tls init` made."""

import subprocess

import pytest

from chromium import Chromium
from layout import build_dir
from lone_signer import SIGNER_UID
from tls_gateway import TlsGateway
from warden import wait_for
from website import FILE, Website

DOMAIN = "hotcell.localhost"
PORT = 8080


@pytest.fixture(scope="module")
def gateway():
    with TlsGateway(domain=DOMAIN) as g:
        subprocess.run([build_dir() / "src/cli/hotcell", "tls", "init", DOMAIN, "--tls-dir", g.tls_dir, "--owner",
                        str(SIGNER_UID)], check=True)
        wait_for(lambda: (now := g.certificate(DOMAIN)) and now["served"], "the certificate is served")
        yield g


@pytest.fixture(scope="module")
def site(gateway):
    with Website(gateway.node.listen(PORT)) as s:
        yield s
        s.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory, gateway):
    with Chromium(tmp_path_factory.mktemp("browser"), trusted=[gateway.tls_dir / "authority/ca.pem"]) as b:
        yield b


def visit(browser, gateway):
    box = gateway.node.add("ibrowser", gateway.team)
    return browser.open(f"https://{PORT}-{box['id']}.{DOMAIN}:{gateway.tls_port}/")


def test_a_page_with_a_websocket_and_a_download(gateway, site, browser, tmp_path):
    page = visit(browser, gateway)
    assert page.failed is None
    page.wait("!['', 'waiting'].includes(document.title)")
    assert page.value("document.title") == "ready"
    assert page.value("document.getElementById('said').textContent") == "you said hello"
    assert page.value("isSecureContext")
    assert page.value("performance.getEntriesByType('navigation')[0].nextHopProtocol") == "h2"
    page.value("document.getElementById('file').click()")
    saved = browser.downloads / "file.bin"
    wait_for(lambda: saved.exists() and saved.stat().st_size == len(FILE), "the file is saved")
    assert saved.read_bytes() == FILE
    page.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 5000


def test_a_browser_that_does_not_trust_the_authority_refuses(gateway, site, tmp_path):
    with Chromium(tmp_path) as stranger:
        assert visit(stranger, gateway).failed == "net::ERR_CERT_AUTHORITY_INVALID"
