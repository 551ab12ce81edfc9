"""test_devtools.py - a real Chromium behind a guarded port: driven by Playwright, watched by a person's browser, and asked by those who
may not. No VM: Chromium runs in the network of a played node.

What the page of a person's browser looks like is in meson-logs/devtools-*.png of the build folder.
"""

import contextlib
import hashlib
import hmac
import http.client
import json
import os
import pathlib
import re
import subprocess
import time

import pytest

from chromium import Chromium
from engine import TOP, artefact
from guest_chromium import GuestChromium
from layout import build_dir
from node_client import value
from played_node import GUEST_ADDRESS
from tls_gateway import TlsGateway
from website import Website

DOMAIN = "hotcell.localhost"
SITE = 8081
TOKEN = "0123456789abcdefghijklmnopqrstuv"
OTHER = "vutsrqponmlkjihgfedcba9876543210"
HEADER = "E2B-Traffic-Access-Token"
SWITCH = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg=="}
HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def gateway():
    with TlsGateway(domain=DOMAIN) as g:
        g.tls_init(DOMAIN)
        yield g


@pytest.fixture(scope="module")
def chromium(gateway, tmp_path_factory):
    with GuestChromium(tmp_path_factory.mktemp("guest"), gateway.node) as c:
        yield c


@pytest.fixture(scope="module")
def site(gateway):
    with Website(gateway.node.listen(SITE)) as s:
        yield s
        s.shutdown()


def add(gateway, name, token, guarded="9222/devtools,6080/novnc"):
    return gateway.node.add(name, gateway.team, {"guardedPorts": guarded},
                            flags=value("NODE_INGRESS"), traffic_token=token)


@pytest.fixture(scope="module")
def box(gateway, chromium, site):
    """Both sandboxes lead to the same Chromium: only the token can tell them apart."""
    add(gateway, "iother", OTHER)
    return add(gateway, "ibrowser", TOKEN)


def ask(gateway, path, headers=(), host=None, port=9222, method="GET"):
    """Over plain HTTP; by the host name unless the headers say otherwise."""
    host = host or f"{port}-ibrowser.{DOMAIN}"
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)) as c:
        c.request(method, path, headers={"Host": host, **dict(headers)})
        answer = c.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())


def make_pass(kind, box, port, lasts, token):
    """As docs/decisions/0033 says: written anew here, so that another way to make one would be noticed."""
    end = int(time.time()) + lasts
    claim = f"port pass/1\n{kind}\n{box}\n{port}\n{end}\n"
    return f"{kind}{port}.{end}.{hmac.new(token.encode(), claim.encode(), hashlib.sha256).hexdigest()}"


# --- programs ---------------------------------------------------------------------------------------------------


def drive(endpoint, headers, picture, trust=None, pages=1):
    env = {name: text for name, text in os.environ.items() if "proxy" not in name.lower() and not name.startswith("PYTHON")}
    if trust:
        env["NODE_EXTRA_CA_CERTS"] = str(trust)
    words = [artefact("playwright") / "bin/python", HERE / "playwright_drives.py", endpoint, json.dumps(headers),
             f"http://{GUEST_ADDRESS}:{SITE}/", picture, str(pages)]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def check_driven(did, tabs):
    assert did["browser"] and did["sum"] == 42 and did["title"] == "A website in a sandbox"
    assert did["field"] == "written by Playwright" and did["picture"] > 3000 and did["tabs"] >= tabs


def test_playwright_by_a_host_name_over_tls(gateway, box, tmp_path):
    picture = build_dir() / "meson-logs/devtools-playwright.png"
    check_driven(drive(f"https://9222-ibrowser.{DOMAIN}:{gateway.tls_port}", {HEADER: TOKEN}, picture,
                       gateway.tls_dir / "authority/ca.pem", pages=5), 5)


def test_playwright_by_one_address_and_headers(gateway, box, tmp_path):
    headers = {HEADER: TOKEN, "E2b-Sandbox-Id": "ibrowser", "E2b-Sandbox-Port": "9222"}
    check_driven(drive(gateway.url, headers, tmp_path / "page.png"), 1)


def test_playwright_with_another_sandboxes_token_is_refused(gateway, box, tmp_path):
    with pytest.raises(AssertionError, match="Unexpected status 403"):
        drive(f"http://9222-ibrowser.{DOMAIN}:{gateway.port}", {HEADER: OTHER}, tmp_path / "page.png")


def test_answers_lead_back_to_where_the_client_came(gateway, box):
    for path in ("/json/version", "/json/list", "/json"):
        status, body, _ = ask(gateway, path, {HEADER: TOKEN}, host=f"9222-ibrowser.{DOMAIN}:{gateway.port}")
        assert status == 200
        told = json.loads(body)
        for one in told if isinstance(told, list) else [told]:
            assert one["webSocketDebuggerUrl"].startswith(f"ws://9222-ibrowser.{DOMAIN}:{gateway.port}/devtools/")
        assert b".localhost:9222" not in body


# --- people -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def person(tmp_path_factory, gateway):
    with Chromium(tmp_path_factory.mktemp("person"), trusted=[gateway.tls_dir / "authority/ca.pem"]) as b:
        yield b


def address(gateway):
    """As `hotcell browser` prints it, by a real gateway."""
    env = {**os.environ, "E2B_API_KEY": gateway.key, "E2B_API_URL": gateway.url}
    done = subprocess.run([build_dir() / "src/cli/hotcell", "browser", "ibrowser", "--json"], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["sandboxID"] == "ibrowser" and [a["kind"] for a in told["addresses"]] == ["devtools", "novnc"]
    one = told["addresses"][0]["url"]
    assert one.startswith(f"https://9222-ibrowser.{DOMAIN}/?e2b-traffic-access-token=a9222.") and TOKEN not in one
    best = subprocess.run([build_dir() / "src/cli/hotcell", "browser", "ibrowser"], env=env, capture_output=True, text=True).stdout
    assert best.startswith(f"https://6080-ibrowser.{DOMAIN}/vnc.html?autoconnect=true&resize=scale&e2b-traffic-access-token=a6080.")
    return one.replace(DOMAIN, f"{DOMAIN}:{gateway.tls_port}", 1)  # the domain of this server has no port


SOCKET = """new Promise(done => { const s = new WebSocket(URL); s.onopen = () => s.send('{"id":1,"method":"Browser.getVersion"}');
s.onmessage = m => { s.close(); done(JSON.parse(m.data).result.product) }; s.onerror = () => done('refused') })"""


def test_a_person_watches_and_a_sibling_may_not(gateway, box, person):
    home = f"9222-ibrowser.{DOMAIN}:{gateway.tls_port}"
    status, body, _ = ask(gateway, f"/json/new?http://{GUEST_ADDRESS}:{SITE}/", {HEADER: TOKEN}, method="PUT")
    assert status == 200 and json.loads(body)["webSocketDebuggerUrl"].startswith(f"ws://9222-ibrowser.{DOMAIN}/devtools/page/")
    page = person.open(address(gateway))
    assert page.failed is None
    page.wait("[...document.querySelectorAll('#tabs a')].some(a => a.textContent === 'ready')")
    assert page.value("location.href") == f"https://{home}/" and page.value("document.cookie") == ""
    picture = build_dir() / "meson-logs/devtools-tabs.png"
    picture.parent.mkdir(exist_ok=True)
    page.screenshot(picture)
    wss = page.value("fetch('/json/version').then(a => a.json()).then(v => v.webSocketDebuggerUrl)")
    assert wss.startswith(f"wss://{home}/devtools/browser/")
    assert "Chrom" in page.value(SOCKET.replace("URL", json.dumps(wss)))
    # DevTools itself, from the link of the page
    page.ask("Page.navigate", url=page.value("[...document.querySelectorAll('#tabs a')].find(a => a.textContent === 'ready').href"))
    page.wait(f"document.title === 'DevTools - {GUEST_ADDRESS}:{SITE}/'")  # it said so over its WebSocket
    page.screenshot(build_dir() / "meson-logs/devtools-inspector.png")
    # the same browser, cookie and all, at a page of another sandbox: a sibling below the same domain
    sibling = person.open(f"https://{SITE}-iother.{DOMAIN}:{gateway.tls_port}/")
    assert sibling.failed is None
    sibling.ask("Network.enable")
    assert sibling.value(SOCKET.replace("URL", json.dumps(wss))) == "refused"
    # what a page of another origin may read is nothing either way; so it is looked at what the gateway answered
    assert sibling.value(f"fetch('https://{home}/json/version?fetched', {{mode: 'no-cors', credentials: 'include'}}).then(a => a.type)") == "opaque"
    sibling.value(f"""new Promise(done => {{ const f = document.createElement('iframe'); f.src = 'https://{home}/json/version?framed';
        f.onload = done; document.body.append(f) }}).then(() => 1)""")
    assert sibling.statuses("?fetched") == [403] and sibling.statuses("?framed") == [403]


# --- those who may not ------------------------------------------------------------------------------------------


def test_who_may_not_is_refused_and_costs_the_browser_nothing(gateway, box):
    path = "/json/version"
    own = {"Cookie": "hotcell-pass=" + make_pass("c", "ibrowser", 9222, 60, TOKEN)}
    assert ask(gateway, path, own)[0] == 200
    refused = {
        "no token": (path, {}),
        "another sandbox's token": (path, {HEADER: OTHER}),
        "another sandbox's token in the address": (f"{path}?e2b-traffic-access-token={OTHER}", {}),
        "another sandbox's pass": (f"{path}?e2b-traffic-access-token={make_pass('a', 'iother', 9222, 60, OTHER)}", {}),
        "a pass by another's token": (f"{path}?e2b-traffic-access-token={make_pass('a', 'ibrowser', 9222, 60, OTHER)}", {}),
        "a pass that is too old": (f"{path}?e2b-traffic-access-token={make_pass('a', 'ibrowser', 9222, -1, TOKEN)}", {}),
        "a cookie of another sandbox": (path, {"Cookie": "hotcell-pass=" + make_pass("c", "iother", 9222, 60, OTHER)}),
        "a cookie of another port": (path, {"Cookie": "hotcell-pass=" + make_pass("c", "ibrowser", 6080, 60, TOKEN)}),
        "a cookie that is over": (path, {"Cookie": "hotcell-pass=" + make_pass("c", "ibrowser", 9222, -1, TOKEN)}),
        "the token as a cookie": (path, {"Cookie": f"hotcell-pass={TOKEN}"}),
        "a page of another site": (path, {**own, "Origin": "http://evil.test"}),
        "a socket of another site": ("/devtools/browser", {**own, **SWITCH, "Origin": "http://evil.test"}),
        "a socket of nobody's": ("/devtools/browser", {**own, **SWITCH}),
        "a rebinding name": (path, {**own, "Host": "9222-ibrowser.evil.test"}),
        "by headers with a cookie": (path, {**own, "Host": "127.0.0.1", "E2b-Sandbox-Id": "ibrowser", "E2b-Sandbox-Port": "9222"}),
    }
    for what, (target, headers) in refused.items():
        status, body, _ = ask(gateway, target, headers, host=headers.get("Host"))
        assert status == 403 and b"webSocketDebuggerUrl" not in body, (what, status, body)
    assert ask(gateway, path, {HEADER: TOKEN})[0] == 200


def test_a_guarded_desktop_has_no_other_door(gateway, box):
    """By the recipe of docs/desktop.md: where noVNC is, and where x11vnc is behind it, which speaks WebSocket, too."""
    recipe = re.search(r'"HOTCELL_GUARDED_PORTS": "([^"]+)"', (TOP / "docs/desktop.md").read_text())[1]
    add(gateway, "idesktop", TOKEN, recipe)
    for port in (5900, 6080):
        for headers in ({}, SWITCH):
            assert ask(gateway, "/", headers, host=f"{port}-idesktop.{DOMAIN}")[0] == 403, (port, headers)


def test_over_tls_the_cookie_is_for_tls_and_this_host_alone(gateway, box):
    host = f"9222-ibrowser.{DOMAIN}"

    def get(target, **headers):
        context = gateway.context(verify=False)
        with gateway.connect(host, context=context) as sock:
            return gateway.get(sock, target, headers={"Host": host, **headers})

    status, fields, _ = get(f"/json/version?e2b-traffic-access-token={make_pass('a', 'ibrowser', 9222, 60, TOKEN)}")
    cookie, *flags = fields["set-cookie"].split("; ")
    assert status == 303 and cookie.startswith("__Host-hotcell-pass=c9222.") and TOKEN not in str(fields)
    assert set(flags) == {"Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Lax", "Secure"}
    assert get("/json/version", Cookie=cookie)[0] == 200
    assert get("/json/version", Cookie=cookie, Origin=f"https://{host}")[0] == 200
    assert get("/json/version", Cookie=cookie, Origin=f"http://{host}")[0] == 403  # a page that came without TLS
    assert get("/json/version", Cookie=cookie.removeprefix("__Host-"))[0] == 403  # which a sibling may have set


def test_the_guest_sees_nothing_of_it(gateway, box, site):
    """A port that is public: what looks like a pass is left alone there. At one that is guarded nothing of it arrives."""
    assert ask(gateway, f"/?e2b-traffic-access-token={TOKEN}", port=SITE)[0] == 404  # the site knows "/" alone
    assert site.asked[-1][0] == f"/?e2b-traffic-access-token={TOKEN}"
    gateway.node.add("iplain", gateway.team, {"guardedPorts": str(SITE)}, flags=value("NODE_INGRESS"), traffic_token=TOKEN)
    host = f"{SITE}-iplain.{DOMAIN}"
    status, _, fields = ask(gateway, f"/?e2b-traffic-access-token={make_pass('a', 'iplain', SITE, 60, TOKEN)}", host=host)
    assert status == 303 and fields["location"] == "/" and "HttpOnly" in fields["set-cookie"], fields
    cookie = fields["set-cookie"].partition(";")[0]
    assert ask(gateway, f"/?e2b-traffic-access-token={TOKEN}", {HEADER: TOKEN, "Cookie": f"a=1; {cookie}; b=2"}, host=host)[0] == 200
    path, seen = site.asked[-1]
    assert path == "/" and seen["cookie"] == "a=1; b=2"
    assert TOKEN not in str(seen) and "pass" not in str(seen)
    assert ask(gateway, "/", {"Cookie": cookie}, host=host)[0] == 200 and "cookie" not in site.asked[-1][1]


def test_another_teams_key_gets_no_address(gateway, box):
    _, key = gateway.new_team("strangers")
    assert gateway.ask("POST", "/sandboxes/ibrowser/addresses", key=key).status == 404
    assert gateway.ask("POST", "/sandboxes/ibrowser/addresses", key=None).status == 401
    gateway.node.add("iopen", gateway.team)
    assert gateway.ask("POST", "/sandboxes/iopen/addresses").json == {"sandboxID": "iopen", "addresses": []}


def test_the_command_says_what_is_wrong(gateway, box):
    def hotcell(*words, **env):
        r = subprocess.run([build_dir() / "src/cli/hotcell", "browser", *words], capture_output=True, text=True,
                           env={"PATH": os.environ["PATH"], "E2B_API_URL": gateway.url, "E2B_API_KEY": gateway.key, **env})
        return r.returncode, r.stdout, r.stderr

    gateway.node.add("ibare", gateway.team)
    status, out, said = hotcell("ibare")
    assert (status, out) == (1, "") and "has no guarded port" in said and "fix:" in said
    assert hotcell("ibare", "--json")[0] == 0
    status, out, said = hotcell("inone")
    assert (status, out) == (1, "") and "doesn't exist" in said
    assert hotcell("../x")[0] == 1
    assert hotcell("ibrowser", E2B_API_KEY="e2b_" + "0" * 40)[0] == 1
    assert hotcell("ibrowser", E2B_API_URL="http://127.0.0.1:9")[0] == 3
