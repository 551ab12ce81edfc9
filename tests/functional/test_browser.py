"""test_browser.py - what getHost(port) names, opened by a real browser that trusts what `hotcell tls init` made; and through proxies.

The screenshots are for a person to look at: meson-logs/browser-*.png of the build folder.
"""

import shutil

import pytest

import lone_gateway
from chromium import Chromium
from layout import build_dir
from proxied import KINDS, ProxiedGateway, Proxy
from tls_gateway import TlsGateway
from warden import wait_for
from website import FILE, Website

DOMAIN = "hotcell.localhost"
PORT = 8081


@pytest.fixture(scope="module")
def gateway():
    with TlsGateway(domain=DOMAIN) as g:
        g.tls_init(DOMAIN)
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


def visit(browser, gateway, port, domain=DOMAIN):
    box = gateway.node.add("ibrowser", gateway.team)
    return browser.open(f"https://{PORT}-{box['id']}.{domain}:{port}/")


def look_around(browser, page, name):
    """The page, its WebSocket, its file, and a picture of it."""
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
    picture = build_dir() / f"meson-logs/browser-{name}.png"
    picture.parent.mkdir(exist_ok=True)
    page.screenshot(picture)
    assert picture.stat().st_size > 5000


def test_a_page_with_a_websocket_and_a_download(gateway, site, browser):
    look_around(browser, visit(browser, gateway, gateway.tls_port), "gateway")


def test_a_browser_that_does_not_trust_the_authority_refuses(gateway, site, tmp_path):
    with Chromium(tmp_path) as stranger:
        assert visit(stranger, gateway, gateway.tls_port).failed == "net::ERR_CERT_AUTHORITY_INVALID"


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_through_a_proxy(kind, tmp_path):
    """With the configurations of docs/proxies.md. The site is told of TLS, which it does not see."""
    if not shutil.which(KINDS[kind]):
        pytest.skip(f"{KINDS[kind]} is not installed")
    settings = {"proxies": "127.0.0.1", "proxy_protocol": "yes" if kind == "haproxy-tcp" else "no"}
    with ProxiedGateway(**settings) as gateway, Proxy(kind, gateway) as proxy, Website(gateway.node.listen(PORT)) as site, \
            Chromium(tmp_path, trusted=[proxy.authority.cert], here=[f"*.{lone_gateway.DOMAIN}"]) as browser:
        look_around(browser, visit(browser, gateway, proxy.port, lone_gateway.DOMAIN), kind)
        assert {path for path, _fields in site.asked} >= {"/", "/socket", "/file"}
        assert {fields["x-forwarded-proto"] for _path, fields in site.asked} == {"https"}
        site.shutdown()
