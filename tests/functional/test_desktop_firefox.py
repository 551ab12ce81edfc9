"""test_desktop_firefox.py - Firefox of the template `desktop`, driven from within by its own protocol, Marionette: it trusts what the sandbox
trusts, what the network refuses is a page that says so, and its policies are in force. Long: without KVM Firefox takes minutes to start.
"""

import json

import pytest

from browser_support import internet  # noqa: F401
from secret_use import NAME, Secret, heard
from template_server import TemplateServer

SECONDS = 1200  # an emulated guest is slow
SITE, DENIED = "https://good.test/", "https://evil.test/"
NETWORK = {"allowOut": ["good.test"], "denyOut": ["0.0.0.0/0"],
           "rules": {"good.test": [{"transform": {"headers": {"Authorization": "Bearer ${e2b.secrets.%s}" % NAME}}}]}}
PROGRAM = '''
import json, socket, subprocess, time

firefox = subprocess.Popen(["firefox", "--headless", "--marionette", "--remote-allow-system-access"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while True:
    try:
        conn = socket.create_connection(("127.0.0.1", 2828))
        break
    except OSError:
        assert firefox.poll() is None, "it ended"
        time.sleep(1)
file, last = conn.makefile("rb"), 0

def said():
    length = b""
    while (one := file.read(1)) != b":":
        length += one
    return json.loads(file.read(int(length)))

def ask(name, **params):
    global last
    last += 1
    text = json.dumps([0, last, name, params])
    conn.sendall(f"{len(text)}:{text}".encode())
    _, _, error, result = said()
    assert error is None, error
    return result

said()
ask("WebDriver:NewSession", capabilities={"alwaysMatch": {"pageLoadStrategy": "normal", "timeouts": {"pageLoad": 600000}}})
found = {}
for name, url in PAGES.items():
    ask("WebDriver:Navigate", url=url)
    found[name] = ask("WebDriver:ExecuteScript", script="return [document.title, document.body.innerText]", args=[])["value"]
ask("Marionette:SetContext", value="chrome")
found["policies"] = ask("WebDriver:ExecuteScript", args=[], script="""
    const of = name => [Services.prefs.getBoolPref(name), Services.prefs.prefIsLocked(name)]
    return [Services.policies.status == Services.policies.ACTIVE, of('network.http.http3.enable'), of('network.dns.echconfig.enabled')]""")["value"]
firefox.kill()
print(json.dumps(found))
'''


@pytest.fixture(scope="module")
def server(internet):
    with TemplateServer("desktop", internet=internet, node={"pool_each_max": 1}) as s:
        yield s


def test_firefox_trusts_the_installation_and_shows_refusals(server, internet):
    secret = Secret(server)
    box = server.create(templateID="desktop", secure=True, network=NETWORK)
    heard(internet)
    server.write(box, "/home/user/drive.py", PROGRAM.replace("PAGES", repr({"site": SITE, "denied": DENIED})).encode())
    found = json.loads(server.run(box, "DISPLAY=:0 timeout 1100 python3 ~/drive.py", SECONDS))
    assert found["site"][0] == "The test's site", found
    asked = heard(internet)
    assert asked and {one["proto"] for one in asked} == {"https"}, asked
    assert "Firefox/" in asked[0]["fields"]["user-agent"] and asked[0]["fields"]["authorization"] == f"Bearer {secret.value}"
    assert secret.value not in json.dumps(found)
    title, text = found["denied"]
    assert "evil.test" in title and "denyOut" in text, found["denied"]
    assert found["policies"] == [True, [False, True], [False, True]]  # in force; no QUIC, no encrypted client hello, for good
