"""test_secrets.py - a secret that programs in a sandbox use and that never enters it.

The test's internet keeps what it was sent and does not send it back. curl, Python's requests and git in the guest
reach it with a value that is then looked for everywhere it must not be: in the guest's memory, in its disk and its
saved states, in every file of the server (logs, databases), in the memory of its daemons. The same search finds
it in the one process that holds it, and finds in the guest what was put there.

A server that sends back what it was sent is out of scope: rules are for hosts one trusts with the secret.
"""

import concurrent.futures
import os
import secrets
import signal
import subprocess

import pytest

from internet import Internet
from names import GOOD
from names import OTHER as OTHER_ADDRESS
from secret_use import NAME, Secret, check_files, check_memory, heard, workers
from server import Server, wait_for
from warden import is_sanitized

AGAIN_SECONDS = 120
HOST, OTHER = "good.test", "a.wild.test"
NETWORK = {"allowOut": [HOST, "*.wild.test"], "denyOut": ["0.0.0.0/0"], "rules": {
    HOST: [{"transform": {"headers": {"Authorization": "Bearer ${e2b.secrets.%s}" % NAME, "X-Plain": "as it is"}}}],
    "b.wild.test": [{"transform": {"headers": {"X-Plain": "as it is"}}}],
    "c.wild.test": [{"transform": {"headers": {"X-Key": "${e2b.secrets.nobody-knows}"}}}]}}
CURL = "curl -sS --max-time 90 --noproxy '*'"
STATUS = "-o /tmp/body -w '%{http_code}\\n'"
SPOOFED = "-H 'authorization: Bearer mine' -H 'AUTHORIZATION: mine' -H 'X_Plain: mine' -H 'x-plain: mine' -H 'X-Mine: mine'"

REQUESTS = """
from pip._vendor import requests
session = requests.Session()
for path in ("/requests-1", "/requests-2"):
    print(session.get("https://good.test" + path, headers={"Authorization": "mine"}, timeout=90).status_code)
"""
URLLIB = """
import urllib.request
print(urllib.request.urlopen("https://good.test/urllib", data=b"a body", timeout=90).status)
"""
CERTIFICATE = """
import socket, ssl, sys
context = ssl._create_unverified_context()
with context.wrap_socket(socket.create_connection((sys.argv[1], 443), 90), server_hostname=sys.argv[1]) as s:
    print(ssl.DER_cert_to_PEM_cert(s.getpeercert(True)), end="")
"""


@pytest.fixture(scope="module")
def internet():
    with Internet() as i:
        yield i


@pytest.fixture(scope="module")
def server(internet):
    with Server(internet=internet, injector={}) as s:
        yield s


@pytest.fixture(scope="module")
def secret(server):
    return Secret(server)


@pytest.fixture(scope="module")
def box(server, secret):
    box = server.create(network=NETWORK)
    yield box
    server.delete(box)


def curl(server, box, words):
    """The status, or what curl says."""
    return server.run(box, f"{CURL} {STATUS} {words} 2>&1 || true")


def uses(server, internet, box, value):
    """Does a request of this sandbox have the value, now?"""
    internet.heard()
    if curl(server, box, f"https://{HOST}/") != "200":
        return False
    [asked] = heard(internet)
    assert asked["fields"]["authorization"] == f"Bearer {value}"
    return True


def wait_uses(server, internet, box, value):
    wait_for(lambda: uses(server, internet, box, value), "the secret is used again", AGAIN_SECONDS, 0.5)


# --- used -------------------------------------------------------------------------------------


def test_curl(server, internet, box, secret):
    internet.heard()
    assert server.run(box, f"{CURL} https://{HOST}/curl").startswith("reached ")
    [asked] = heard(internet)
    assert (asked["target"], asked["host"], asked["sni"]) == ("/curl", HOST, HOST)
    assert asked["fields"]["authorization"] == f"Bearer {secret.value}"
    assert asked["fields"]["x-plain"] == "as it is"


def test_what_the_sandbox_says_itself_is_gone(server, internet, box, secret):
    internet.heard()
    assert curl(server, box, f"{SPOOFED} https://{HOST}/") == "200"
    [asked] = heard(internet)
    fields = asked["fields"]
    assert fields["authorization"] == f"Bearer {secret.value}" and fields["x-plain"] == "as it is"
    assert "x_plain" not in fields and fields["x-mine"] == "mine"


def test_python(server, internet, box, secret):
    internet.heard()
    for name, script, lines in (("requests", REQUESTS, ["200", "200"]), ("urllib", URLLIB, ["200"])):
        server.write(box, f"/tmp/with_{name}.py", script.encode())
        assert server.run(box, f"python3 /tmp/with_{name}.py").split() == lines
    asked = heard(internet)
    assert [one["target"] for one in asked] == ["/requests-1", "/requests-2", "/urllib"]
    assert {one["fields"]["authorization"] for one in asked} == {f"Bearer {secret.value}"}


def make_repository(folder):
    """One that any web server can give away."""
    work = folder / "work"
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@good.test", "-C", work]
    subprocess.run(["git", "init", "-q", work], check=True)
    (work / "greeting").write_text("hello from afar\n")
    subprocess.run([*git, "add", "greeting"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "a file"], check=True)
    subprocess.run(["git", "clone", "-q", "--bare", work, folder / "repo.git"], check=True)
    subprocess.run(["git", "-C", folder / "repo.git", "update-server-info"], check=True)


def test_git(server, internet, box, secret):
    files = internet.folder / "files"
    files.mkdir()
    make_repository(files)
    internet.heard()
    assert server.run(box, f"cd /tmp && git clone -q https://{HOST}/files/repo.git && cat repo/greeting") == "hello from afar"
    asked = heard(internet)
    assert len(asked) > 3 and {one["fields"]["authorization"] for one in asked} == {f"Bearer {secret.value}"}


# --- and not elsewhere ------------------------------------------------------------------------


def test_tls_of_other_hosts_is_not_opened(server, internet, box):
    server.write(box, "/tmp/certificate.py", CERTIFICATE.encode())
    own = internet.certificate.read_text()
    assert server.run(box, f"python3 /tmp/certificate.py {OTHER}").strip() == own.strip()
    assert server.run(box, f"python3 /tmp/certificate.py {HOST}").strip() != own.strip()
    internet.heard()
    assert curl(server, box, f"-k {SPOOFED} https://{OTHER}/") == "200"
    [asked] = heard(internet)
    assert asked["fields"]["x_plain"] == "mine" and "Bearer mine" in asked["fields"]["authorization"]


def test_the_name_decides_where_it_goes(server, internet, box):
    internet.heard()
    assert curl(server, box, f"--resolve {HOST}:443:{OTHER_ADDRESS} https://{HOST}/") == "200"
    assert [one["to"] for one in heard(internet)] == [GOOD]


def test_plain_http_has_no_secret(server, internet, box):
    internet.heard()
    assert curl(server, box, f"http://{HOST}/") == "403"
    assert "plain HTTP" in server.run(box, "cat /tmp/body")
    assert heard(internet) == []
    assert curl(server, box, "http://b.wild.test/") == "200"  # nothing secret: added there, too
    assert [one["fields"]["x-plain"] for one in heard(internet)] == ["as it is"]


@pytest.mark.parametrize("host", [OTHER, "b.wild.test", "evil.test"])
def test_host_must_be_the_name_of_the_greeting(server, internet, box, host):
    internet.heard()
    assert curl(server, box, f"-H 'Host: {host}' https://{HOST}/") == "403"
    assert curl(server, box, f"https://{HOST}/ -H 'Host: {host}' --next {CURL[5:]} {STATUS} https://{HOST}/ -H 'Host: {host}'") \
        .split() == ["403", "403"]
    assert heard(internet) == []


def test_an_unknown_secret_is_never_sent_empty(server, internet, box):
    internet.heard()
    assert curl(server, box, "https://c.wild.test/") == "403"
    assert "nobody-knows" in server.run(box, "cat /tmp/body")
    assert heard(internet) == []


# --- and later --------------------------------------------------------------------------------


def test_nobody_is_shown_it(server, box, secret):
    shown = server.must("GET", f"/sandboxes/{box['sandboxID']}")
    assert shown["network"]["rules"] == NETWORK["rules"]
    for target in ("/secrets", f"/secrets/{secret.id}", f"/secrets/{NAME}"):
        answer = server.api("GET", target)
        assert answer.status == 200 and NAME in answer.raw.decode() and secret.value not in answer.raw.decode()


def test_a_new_version_is_used_at_once(server, internet, box, secret):
    secret.renew()
    assert uses(server, internet, box, secret.value)


def test_a_deleted_one_is_used_no_more(server, internet, box, secret):
    secret.delete()
    assert curl(server, box, f"https://{HOST}/") == "403"
    assert NAME in server.run(box, "cat /tmp/body")
    secret.id = server.must("POST", "/secrets", {"name": NAME, "value": secret.draw()})["secretID"]
    assert uses(server, internet, box, secret.value)


def test_after_a_pause(server, internet, box, secret):
    server.must("POST", f"/sandboxes/{box['sandboxID']}/pause")
    wait_for(lambda: not workers(server), "its worker is gone", AGAIN_SECONDS, 0.1)
    secret.renew()  # while it sleeps
    server.must("POST", f"/sandboxes/{box['sandboxID']}/connect", {"timeout": 3600})
    assert uses(server, internet, box, secret.value)


def test_in_a_fork(server, internet, box, secret):
    [copy] = [a["sandbox"] for a in server.must("POST", f"/sandboxes/{box['sandboxID']}/fork", {"count": 1, "timeout": 3600},
                                                seconds=600)]
    assert uses(server, internet, copy, secret.value)
    assert uses(server, internet, box, secret.value)
    secret.renew()
    assert uses(server, internet, copy, secret.value)
    assert uses(server, internet, box, secret.value)
    assert server.delete(copy) == 204
    assert uses(server, internet, box, secret.value)


def while_renewed(secret, act):
    """What it returns; when it has begun, and most likely before it is done, there is a new version."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        done = pool.submit(act)
        secret.renew()
        return done.result()


def test_in_what_is_made_meanwhile(server, internet, box):
    """Of a snapshot that is older than the value, and as a fork: each begins with the newest."""
    often = Secret(server, "often")
    network = {**NETWORK, "rules": {HOST: [{"transform": {"headers": {"Authorization": "Bearer ${e2b.secrets.often}"}}}]}}
    create = {"network": network, "timeout": 3600}
    server.must("POST", f"/sandboxes/{box['sandboxID']}/snapshots", {"name": "older"}, seconds=600)
    often.renew()
    boxes = [while_renewed(often, lambda: server.must("POST", "/sandboxes", {"templateID": "older", **create}, seconds=600))]
    assert uses(server, internet, boxes[0], often.value)
    copies = while_renewed(often, lambda: server.must("POST", f"/sandboxes/{boxes[0]['sandboxID']}/fork",
                                                      {"count": 2, "timeout": 3600}, seconds=600))
    boxes += [copy["sandbox"] for copy in copies]
    for one in boxes:
        assert uses(server, internet, one, often.value)
    with_rules = server.must("POST", f"/sandboxes/{boxes[0]['sandboxID']}/snapshots", {}, seconds=600)
    while_renewed(often, lambda: server.must("POST", f"/sandboxes/{boxes[0]['sandboxID']}/pause", seconds=600))
    often.renew()
    while_renewed(often, lambda: server.must("POST", f"/sandboxes/{boxes[0]['sandboxID']}/connect", {"timeout": 3600}))
    boxes.append(server.must("POST", "/sandboxes", {"templateID": with_rules["snapshotID"], **create}))
    for one in (boxes[0], boxes[-1]):
        assert uses(server, internet, one, often.value)
    often.delete()
    boxes.append(server.must("POST", "/sandboxes", {"templateID": with_rules["snapshotID"], **create}))
    for one in boxes:
        assert curl(server, one, f"https://{HOST}/") == "403"
        assert server.delete(one) == 204
    for snapshot in ("older", with_rules["snapshotID"]):
        assert server.api("DELETE", f"/templates/{snapshot}").status in (200, 204)


@pytest.mark.parametrize("name", ["egress", "injector", "node", "gateway"])
def test_after_a_death(server, internet, box, secret, name):
    server.restart(name)
    wait_uses(server, internet, box, secret.value)
    secret.renew()
    assert uses(server, internet, box, secret.value)


def test_after_the_death_of_its_worker(server, internet, box, secret):
    [worker] = workers(server)
    os.kill(worker, signal.SIGKILL)
    wait_uses(server, internet, box, secret.value)


# --- and no trace -----------------------------------------------------------------------------


def refused_values(server, secret):
    """Values that came to the gateway and were refused, each for another reason."""
    values, path = [secrets.token_urlsafe(48) for _ in range(5)], f"/secrets/{secret.id}"
    nobody, unknown, long, wrong, broken = values
    for status, target, body, key in ((401, path, {"value": nobody}, "e2b_" + 40 * "0"),
                                      (404, "/secrets/no-such-name", {"value": unknown}, True),
                                      (400, path, {"value": long + 8192 * "x"}, True),
                                      (400, path, {"value": wrong, "metadata": 1}, True),
                                      (400, path, f'{{"value": "{broken}", '.encode(), True)):
        answer = server.api("POST", target, body, key=key)
        assert answer.status == status and not any(value in answer.raw.decode() for value in values), answer.raw
    return values


@pytest.mark.skipif(is_sanitized(), reason="a sanitizer's memory is too large to be searched")
def test_no_trace_in_memory(server, internet, box, secret):
    assert uses(server, internet, box, secret.value)
    check_memory(server, box, secret, *refused_values(server, secret))


def test_no_trace_in_files(server, box, secret):
    check_files(server, box, secret)
