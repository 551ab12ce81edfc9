"""test_browser_template.py - sandboxes of the template `browser` as their users have them: Chromium runs in the snapshot, Playwright drives
it through the gateway, a site of the test's internet answers. HOTCELL_TABS (5) is how many tabs are open at once.

What a page looks like is in meson-logs/browser-page.png of the build folder.
"""

import contextlib
import http.client
import json
import os
import time

import pytest

from browser_support import DEVTOOLS, SITE, TOKEN, Playwright, internet, server  # noqa: F401
from desktop_support import Picture
from layout import build_dir
from secret_use import NAME, Secret, heard
from warden import wait_for

SECONDS = 180  # an emulated guest is slow
FASTER = 10    # a create, than a start of the same Chromium in the same guest
TABS = int(os.environ.get("HOTCELL_TABS", "5"))
SECURE, DENIED = "https://good.test", "evil.test"
STANDS_FOR = "198.18.0.0"  # all names that are refused
NETWORK = {"allowOut": ["good.test", "*.wild.test"], "denyOut": ["0.0.0.0/0"],
           "rules": {"good.test": [{"transform": {"headers": {"Authorization": "Bearer ${e2b.secrets.%s}" % NAME}}}]}}
GREEN = (0x1e, 0x7a, 0x46)  # of the site's page


@pytest.fixture(scope="module")
def secret(server):
    return Secret(server)


@pytest.fixture(scope="module")
def box(server, secret):
    return server.create(templateID="browser", secure=True, network=NETWORK)


@pytest.fixture(scope="module")
def drive(server, box):
    with Playwright(server, box) as d:
        yield d


def devtools(server, box, path="/json/version", headers=(), host=None):
    """Status and body, through the gateway; by a host name unless another is given."""
    host = host or f"{DEVTOOLS}-{box['sandboxID']}.{server.domain}"
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS)) as c:
        c.request("GET", path, headers={"Host": host, **dict(headers)})
        answer = c.getresponse()
        return answer.status, answer.read()


def test_renderers_are_in_chromiums_own_sandbox(server, box):
    said = server.run(box, r"""
        pgrep -u user -f '^/usr/lib/chromium/chromium ' | while read -r pid; do
            tr '\0' ' ' </proc/$pid/cmdline | grep -o -e '--type=[a-z-]*' -e '--no-sandbox' | xargs echo "$pid" \
                $(sed -n 's/^Seccomp:\s*//p' /proc/$pid/status) $(sudo readlink /proc/$pid/ns/{user,pid,net})
        done
        echo own 0 $(readlink /proc/self/ns/{user,pid,net})""", SECONDS)
    rows = [line.split() for line in said.splitlines()]
    own, renderers = rows[-1], [row for row in rows if "--type=renderer" in row]
    assert renderers, said
    assert not any("--no-sandbox" in row for row in rows), said
    for row in renderers:
        assert row[1] == "2", said  # a filter of system calls
        assert all(theirs != ours for theirs, ours in zip(row[2:5], own[2:5])), said


def test_devtools_are_for_those_with_the_token(server, box):
    """More of it, without a sandbox: test_devtools.py."""
    other = server.create(templateID="browser", secure=True)
    mine, theirs = box["trafficAccessToken"], other["trafficAccessToken"]
    for headers in ({}, {TOKEN: ""}, {TOKEN: theirs}, {TOKEN: mine + "x"}):
        assert devtools(server, box, headers=headers)[0] == 403, headers
    # a name that a page's owner points at the gateway, and a page's own Origin
    for headers in ({}, {TOKEN: theirs}):
        assert devtools(server, box, headers=headers, host=f"{DEVTOOLS}-{box['sandboxID']}.rebound.test")[0] == 403
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg=="}
    for headers in ({}, {TOKEN: theirs}):
        assert devtools(server, box, "/devtools/browser", {**upgrade, **headers, "Origin": "https://rebound.test"})[0] == 403
    status, body = devtools(server, box, headers={TOKEN: mine})
    assert status == 200 and json.loads(body)["Browser"].startswith("Chrome/")
    assert server.delete(other) == 204


@pytest.fixture(scope="module")
def site(drive, internet):
    """The page is shown: what a new page costs, it costs once. Its tests come in this order. Chromium writes a cookie to the disk
    within half a minute; the last test wants it there."""
    heard(internet)
    drive(f"""page.goto('{SITE}/'); page.evaluate("document.cookie = 'kept=cookie; max-age=9999'")""")
    [asked] = heard(internet)
    assert (asked["method"], asked["target"], asked["host"]) == ("GET", "/", "a.wild.test")
    return drive


def test_a_screenshot_is_a_picture_of_the_page(site):
    path = build_dir() / "meson-logs/browser-page.png"
    path.parent.mkdir(exist_ok=True)
    width, height = site(f"""
page.screenshot(path="{path}")
answer = page.evaluate("[innerWidth, innerHeight]")""")
    picture = Picture(path.read_bytes())
    assert (picture.width, picture.height) == (width, height) and width == 1280 and height > 700
    assert picture.colour(5, 5) == picture.colour(width - 5, height - 5) == GREEN
    assert any(min(picture.colour(x, 118)) > 200 for x in range(100, 300)), "no letters of the heading"


def test_a_download_is_a_file_of_the_sandbox(server, site, box):
    """Playwright has it saved below /tmp of the sandbox, unless it is told another folder."""
    name, path = site("""
with page.expect_download() as coming:
    page.evaluate("document.getElementById('file').click()")
answer = [coming.value.suggested_filename, str(coming.value.path())]""")
    whole = bytes(range(256)) * 256
    assert name == "saved.bin" and server.read(box, path) == whole
    site("""
browser.new_browser_cdp_session().send("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": "/home/user/Downloads"})
page.evaluate("document.getElementById('file').click()")""")
    wait_for(lambda: "saved.bin" in server.run(box, "ls ~/Downloads", SECONDS).split(), "the download is there", 30, 0.5)
    assert server.read(box, "/home/user/Downloads/saved.bin") == whole


def test_a_form_is_filled_in_and_sent(site, internet):
    heard(internet)
    said = site("""
page.fill("#who", "a person")
page.fill("#text", "two\\nlines")
page.click("#send")
answer = page.inner_text("#said")""")
    sent = {"who": "a person", "size": "small", "text": "two\r\nlines"}
    assert json.loads(said.removeprefix("thank you, ")) == sent
    [asked] = heard(internet)
    assert (asked["method"], asked["target"], asked["form"]) == ("POST", "/sent", sent)


def test_tabs_at_once(drive, internet):
    heard(internet)
    seen = drive(f"""
tabs = [context.new_page() for _ in range({TABS})]
for n, tab in enumerate(tabs):
    tab.goto(f"{SITE}/?{{n}}", wait_until="commit")
for tab in tabs:
    tab.wait_for_load_state()
answer = [[tab.url, tab.title()] for tab in tabs] + [len(context.pages)]
for tab in tabs:
    tab.close()""")
    assert seen == [*([f"{SITE}/?{n}", "The test's site"] for n in range(TABS)), TABS + 1]
    assert {one["target"] for one in heard(internet)} == {f"/?{n}" for n in range(TABS)}


def test_a_refused_name_is_a_page_that_says_so(drive):
    for scheme in ("http", "https"):
        status, text = drive(f"""
response = page.goto("{scheme}://{DENIED}/", timeout=60_000)
answer = [response.status, page.evaluate("document.body.innerText")]""")
        assert status == 403 and DENIED in text and "denyOut" in text, text


# What a test of `rules` sees: all that DevTools says of requests and answers.
WATCHED = f"""
told = []
watch = context.new_cdp_session(page)
for name in ("requestWillBeSent", "requestWillBeSentExtraInfo", "responseReceived", "responseReceivedExtraInfo"):
    watch.on("Network." + name, lambda said, name=name: told.append([name, said]))
watch.send("Network.enable")
response = page.goto("{SECURE}/")
page.evaluate("mark => localStorage.mark = mark", MARK)
answer = {{"told": told, "page": page.content(), "sent": response.request.all_headers(), "got": response.all_headers(), "title": page.title()}}"""


def test_a_secret_header_reaches_the_site_alone(server, drive, box, internet, secret):
    heard(internet)
    mark = "mark-" + os.urandom(12).hex()
    seen = drive(WATCHED.replace("MARK", repr(mark)))
    [asked] = heard(internet)
    assert asked["proto"] == "https" and asked["fields"]["authorization"] == f"Bearer {secret.value}"
    assert seen["title"] == "The test's site" and "user-agent" in seen["sent"]
    names = [name for name, _ in seen["told"]]
    assert "requestWillBeSentExtraInfo" in names and "responseReceived" in names, names
    assert secret.value not in json.dumps(seen) and "authorization" not in json.dumps(seen).lower()

    def has(text):
        return bool(server.run(box, f"grep -rlFa -e {text} ~/.config ~/.cache || true", SECONDS).split())
    wait_for(lambda: has(mark), "what the page keeps is in the profile", SECONDS, 1)
    assert not has(f"'{secret.value}'")


CHANCE = """
page.goto("%s/")
answer = page.evaluate("[Math.random(), crypto.getRandomValues(new Uint32Array(4)).join(), performance.timeOrigin]")""" % SITE


def test_pages_of_two_sandboxes_draw_other_numbers(server, drive):
    box = server.create(templateID="browser", secure=True, network=NETWORK)
    with Playwright(server, box) as other:
        one, two = drive(CHANCE), other(CHANCE)
    assert not set(one) & set(two)
    assert server.delete(box) == 204


def test_chromium_asks_for_nothing_by_itself(server, drive, box):
    """All that went out of the sandbox since its create, a test asked for: no site of Google's. A pause would forget it."""
    said = server.admin("GET", f"/admin/sandboxes/{box['sandboxID']}/egress").json
    names = {one["name"] for one in said if "name" in one}
    assert DENIED in names and names <= {"a.wild.test", "good.test", DENIED}, said
    # connections that were opened, and not used
    assert all("name" in one or one["address"] == STANDS_FOR for one in said if one["verdict"] == "refused"), said


def test_a_pause_keeps_the_page_and_its_profile(server, site, box):
    site(f"""page.goto('{SITE}/'); page.evaluate("window.kept = 'in memory'; localStorage.kept = 'in the profile'")""")
    sandbox = box["sandboxID"]
    assert server.api("POST", f"/sandboxes/{sandbox}/pause", seconds=SECONDS).status == 204
    time.sleep(3)  # a clock that stood still would be late by that
    assert server.api("POST", f"/sandboxes/{sandbox}/connect", {"timeout": 3600}, seconds=SECONDS).status == 201
    with Playwright(server, box) as again:
        kept = again("answer = page.evaluate('[kept, localStorage.kept, document.cookie]')")
        late = again("import time; asked = time.time(); now = page.evaluate('Date.now() / 1000'); answer = [asked - now, now - time.time()]")
    assert kept == ["in memory", "in the profile", "kept=cookie"]
    assert max(late) < 1, late


def first_answer(server):
    """Seconds from create to the first answer of DevTools, both through the gateway."""
    begun = time.monotonic()
    box = server.create(templateID="browser", secure=True)
    status, body = devtools(server, box, headers={TOKEN: box["trafficAccessToken"]})
    took = time.monotonic() - begun
    assert status == 200 and json.loads(body)["Browser"].startswith("Chrome/")
    assert server.delete(box) == 204
    return took


def test_a_create_is_ten_times_faster_than_a_start(server, box):
    """The last of this sandbox: Chromium is killed, and comes again by itself, with its profile."""
    warm = min(first_answer(server) for _ in range(3))
    wait_for(lambda: server.run(box, "grep -rlFa --include='Cookies*' kept ~/.config/browser || true", SECONDS), "the cookie is on the disk", SECONDS, 1)
    cold = float(server.run(box, """
        pid=$(pgrep -o -u user chromium)
        sudo sh -c "echo 3 >/proc/sys/vm/drop_caches"
        begun=$(date +%s.%N)
        kill -9 "$pid"
        until [ "$(pgrep -o -u user chromium)" != "$pid" ] && curl -sf --max-time 60 http://127.0.0.1:9222/json/version >/dev/null; do sleep 0.1; done
        echo "$(date +%s.%N) $begun" | awk '{ print $1 - $2 }'""", SECONDS))
    print(f"create to the first answer of DevTools {warm:.2f} s, a start {cold:.2f} s: {cold / warm:.0f} x")
    with Playwright(server, box) as drive:
        assert drive("answer = {c['name']: c['value'] for c in context.cookies()}").get("kept") == "cookie"
    assert cold >= FASTER * warm
