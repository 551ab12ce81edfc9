"""test_signed_urls.py - /files with a signature and no sandbox named: as the clients make them with E2B_SANDBOX_URL.

Whoever has such a URL may read or write one file of one sandbox; the server finds out which.
"""

import base64
import hashlib
import http.client
import json
import socket
import time
import urllib.parse

import pytest

from server import CALL_SECONDS, Server, wait_for

INVALID = {"code": 401, "message": "invalid signature"}
BURST = 100


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        yield s


@pytest.fixture(scope="module")
def box(server):
    return server.create(secure=True)


@pytest.fixture(scope="module")
def other(server):
    return server.create(secure=True)


def sign(token, path, operation, user="", expiration=None):
    """The signature, as the rule says."""
    text = f"{path}:{operation}:{user}:{token}" + ("" if expiration is None else f":{expiration}")
    digest = hashlib.sha256(text.encode()).digest()
    return "v1_" + base64.b64encode(digest).decode().rstrip("=")


def url(token, path, operation, user="", expiration=None, changes=None):
    """What downloadUrl() and uploadUrl() give, without the host."""
    query = {"path": path, "signature": sign(token, path, operation, user, expiration)}
    if user:
        query["username"] = user
    if expiration is not None:
        query["signature_expiration"] = expiration
    return "/files?" + urllib.parse.urlencode({**query, **(changes or {})})


def get(server, target, **headers):
    return server.api("GET", target, key=None, headers=headers)


def put(server, target, data):
    return server.api("POST", target, data, key=None, headers={"content-type": "application/octet-stream"})


def token_of(box):
    assert box["envdAccessToken"]
    return box["envdAccessToken"]


@pytest.mark.parametrize("expires", [None, 600], ids=["for ever", "for a while"])
@pytest.mark.parametrize("user", ["", "root"], ids=["default user", "root"])
def test_up_and_down(server, box, other, expires, user):
    expiration = expires and int(time.time()) + expires
    path, data = "a folder/ä+b&c.txt", f"{expires} {user}".encode()
    answer = put(server, url(token_of(box), path, "write", user, expiration), data)
    assert answer.status == 200, answer.raw
    written = answer.json[0]["path"]
    assert written == ("/root/" if user else "/home/user/") + path
    answer = get(server, url(token_of(box), path, "read", user, expiration), origin="http://page.test")
    assert (answer.status, answer.raw) == (200, data)
    assert answer.headers["access-control-allow-origin"]
    # it went to this sandbox, not to the other one
    assert server.run(other, f"test ! -e '{written}' && echo none") == "none"


def test_a_form(server, box):
    form = ('--x\r\ncontent-disposition: form-data; name="file"\r\n\r\nfrom a form\r\n--x--\r\n').encode()
    answer = server.api("POST", url(token_of(box), "form.txt", "write"), form, key=None,
                        headers={"content-type": "multipart/form-data; boundary=x"})
    assert answer.status == 200, answer.raw
    assert server.read(box, "form.txt") == b"from a form"


def test_a_large_upload(server, box):
    data = b"0123456789abcdef" * 65536
    assert put(server, url(token_of(box), "large", "write"), data).status == 200
    assert get(server, url(token_of(box), "large", "read")).raw == data


def test_expired(server, box):
    put(server, url(token_of(box), "old.txt", "write"), b"old")
    answer = get(server, url(token_of(box), "old.txt", "read", expiration=int(time.time()) - 120))
    assert (answer.status, answer.json) == (401, {"code": 401, "message": "signature is already expired"})


@pytest.mark.parametrize("change", [
    {"path": "another.txt"}, {"username": "root"}, {"signature_expiration": 1 << 40},
    {"signature": "v1_" + "0" * 43}, {"signature": "v1_"}, {"signature": ""},
], ids=lambda c: "-".join(f"{k}={v}" for k, v in c.items()))
def test_what_was_not_signed(server, box, change):
    put(server, url(token_of(box), "mine.txt", "write"), b"mine")
    answer = get(server, url(token_of(box), "mine.txt", "read", changes=change))
    assert (answer.status, answer.json) == (401, INVALID)


def test_read_is_not_write(server, box):
    target = url(token_of(box), "mine.txt", "read")
    answer = put(server, target, b"x")
    assert (answer.status, answer.json) == (401, INVALID)


def test_a_token_that_nobody_has(server, box, other):
    assert get(server, url("0" * 32, "mine.txt", "read")).json == INVALID
    # an empty token signs nothing, though anybody could have it
    open_box = server.create(secure=False)
    assert not open_box.get("envdAccessToken")
    assert get(server, url("", "mine.txt", "read")).json == INVALID


def test_the_others_token_reaches_the_other(server, box, other):
    put(server, url(token_of(box), "who.txt", "write"), b"box")
    put(server, url(token_of(other), "who.txt", "write"), b"other")
    assert get(server, url(token_of(box), "who.txt", "read")).raw == b"box"
    assert get(server, url(token_of(other), "who.txt", "read")).raw == b"other"
    # named in the head, the sandbox named counts
    headers = {"E2b-Sandbox-Id": other["sandboxID"], "E2b-Sandbox-Port": "49983"}
    assert get(server, url(token_of(box), "who.txt", "read"), **headers).json == INVALID


def test_a_sandbox_that_is_gone(server):
    gone = server.create(secure=True)
    target = url(token_of(gone), "a.txt", "write")
    assert put(server, target, b"a").status == 200
    assert server.delete(gone) == 204
    answer = put(server, target, b"a")
    assert (answer.status, answer.json) == (401, INVALID)


def test_malformed(server, box):
    good = url(token_of(box), "a.txt", "read")
    for target, status in ((good + "&path=b", 400), (good + "&username=%", 400),
                           (good + "&signature_expiration=soon", 400)):
        answer = get(server, target)
        assert answer.status == status, (target, answer.raw)
        assert answer.json["code"] == status
    assert server.api("DELETE", good, key=None).status == 405


def test_after_a_restart_of_node(server, box):
    server.restart("node")
    server.wait_up()
    put(server, url(token_of(box), "again.txt", "write"), b"again")
    assert get(server, url(token_of(box), "again.txt", "read")).raw == b"again"


def answers_of(server, source, requests):
    """All in one go from this address: the server sets the pace, not the test."""
    with socket.create_connection(("127.0.0.1", server.port), CALL_SECONDS, (source, 0)) as s:
        s.sendall(b"".join(b"GET /files?signature=v1_ HTTP/1.1\r\nhost: a\r\n\r\n" for _ in range(requests)))
        s.shutdown(socket.SHUT_WR)
        data = b""
        while piece := s.recv(1 << 16):
            data += piece
    return data


def from_address(server, source, target):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=CALL_SECONDS, source_address=(source, 0))
    connection.request("GET", target)
    response = connection.getresponse()
    status = response.status
    response.read()
    connection.close()
    return status


def test_too_often(server, box):
    put(server, url(token_of(box), "often.txt", "write"), b"often")
    good = url(token_of(box), "often.txt", "read")
    data = answers_of(server, "127.0.0.2", 20 * BURST)
    refused, limited = data.count(b"HTTP/1.1 401 "), data.count(b"HTTP/1.1 429 ")
    assert refused >= BURST and limited > 0 and refused + limited == 20 * BURST
    assert data.count(b"\r\nretry-after: 1\r\n") == limited
    # another address does not suffer, nor does what names its sandbox
    assert from_address(server, "127.0.0.3", good) == 200
    assert server.read(box, "often.txt") == b"often"
    # and it may soon try again
    wait_for(lambda: from_address(server, "127.0.0.2", good) == 200, "the limit is over")


def test_a_domain_is_configured(server, box):
    """Where host names lead to sandboxes, a URL names one, and nothing else is looked for. An address has no names."""
    put(server, url(token_of(box), "named.txt", "write"), b"named")
    target = url(token_of(box), "named.txt", "read")
    server.restart("gateway", domain="box.test")
    try:
        assert get(server, target).raw == b"named"
        answer = get(server, target, Host="api.box.test")
        assert (answer.status, answer.raw) == (400, b"Invalid host")
        assert answer.headers["content-type"].startswith("text/plain")
        host = f"49983-{box['sandboxID']}.box.test"
        assert get(server, target, Host=host).raw == b"named"
    finally:
        server.restart("gateway")
    assert json.loads(server.admin("GET", "/admin/health").raw)["status"] == "ok"


# --- one that is paused -------------------------------------------------------------------------------


def test_a_signature_resumes_a_paused_sandbox_and_a_wrong_one_does_not(server):
    box = server.create(secure=True, autoPause=True, autoResume={"enabled": True})
    token, path = box["envdAccessToken"], "/home/user/kept"
    named = {"E2b-Sandbox-Id": box["sandboxID"], "E2b-Sandbox-Port": "49983"}
    server.write(box, path, b"kept")

    def pause():
        assert server.api("POST", f"/sandboxes/{box['sandboxID']}/pause").status == 204

    def state():
        return server.must("GET", f"/sandboxes/{box['sandboxID']}")["state"]

    pause()
    past = int(time.time()) - 60
    for target in (url("x" * 20, path, "read"), url(token, path, "write"), f"/files?path={path}",
                   url(token, path, "read", expiration=past), url(token, path, "read", changes={"path": "/etc/shadow"})):
        assert get(server, target, **named).status in (401, 403), target
        assert get(server, target).status in (400, 401, 403, 404), target
    assert state() == "paused"
    for headers in (named, {}):
        got = get(server, url(token, path, "read", expiration=int(time.time()) + 600), **headers)
        assert got.status == 200 and got.raw == b"kept", (headers, got.status, got.raw)
        assert state() == "running"
        pause()
    assert server.delete(box) == 204
