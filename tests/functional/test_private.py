"""test_private.py - what the owner of a sandbox said about its ports: a token, another Host, TLS.

One sandbox has all three. Its services listen on every address or on the guest's loopback alone, and answer with what
they were told, so that what must not reach them can be looked for.
"""

import hashlib
import hmac
import json
import subprocess
import time

import pytest

from server import CALL_SECONDS, Server, wait_for

SERVICE = r'''
import http.server, json, socketserver, ssl, threading

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        text = json.dumps({"port": self.server.server_address[1], "headers": self.headers.items()}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass

class Service(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address, port, secure):
        super().__init__((address, port), Handler)
        if secure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain("cert.pem", "key.pem")
            self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever).start()

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)  # without a question to a name server

Service("0.0.0.0", 8000, False)
Service("127.0.0.1", 8001, False)
Service("0.0.0.0", 8443, True)
Service("127.0.0.1", 8444, True)
open("/tmp/ready", "w").close()
'''
PLAIN, SECURE = (8000, 8001), (8443, 8444)
TOKEN = "E2B-Traffic-Access-Token"
SECURED = "Sandbox is secured with traffic access token. "
MISSING = SECURED + "Token header 'e2b-traffic-access-token' is missing"
INVALID = SECURED + "Provided token in header 'e2b-traffic-access-token' is invalid"
NOT_RESUMED = ("This sandbox can't be resumed with the credentials provided. Check your access token and try again.")
BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64)", "Accept": "text/html", "Sec-Fetch-Mode": "navigate"}
NETWORK = {"allowPublicTraffic": False, "maskRequestHost": "localhost:${PORT}", "httpsPorts": list(SECURE)}


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        yield s


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Nobody's: self-signed, for no name that anybody asks for."""
    at = tmp_path_factory.mktemp("certificate")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                    "2", "-subj", "/CN=nobody", "-keyout", at / "key.pem", "-out", at / "cert.pem"], check=True,
                   capture_output=True, timeout=CALL_SECONDS)
    return at


@pytest.fixture(scope="module")
def box(server, certificate):
    box = server.create(secure=True, autoPause=True, autoResume={"enabled": True}, network=NETWORK)
    for name in ("cert.pem", "key.pem"):
        server.write(box, name, (certificate / name).read_bytes())
    server.write(box, "service.py", SERVICE.encode())
    server.run(box, "setsid nohup python3 service.py >service.log 2>&1 </dev/null &")
    wait_for(lambda: "yes" in server.run(box, "test -e /tmp/ready && echo yes || cat service.log"),
             "the services of the guest listen", CALL_SECONDS, 0.5)
    return box


def visit(server, box, port, token=None, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    headers["Host"] = f"{port}-{box['sandboxID']}.localhost:{server.port}"
    if token is not None:
        headers[TOKEN] = token
    return server.api("GET", "/", key=None, headers=headers)


def refused(answer, box, message):
    want = {"sandboxId": box["sandboxID"], "message": message, "code": 403}
    return (answer.status, answer.json) == (403, want) and \
        answer.headers["content-type"] == "application/json; charset=utf-8"


def is_reached(server, box, port):
    answer = visit(server, box, port, box["trafficAccessToken"])
    assert answer.status == 200, (port, answer.status, answer.raw)
    assert answer.json["port"] == port
    return dict((name.lower(), value) for name, value in answer.json["headers"])


def test_it_is_told_its_token(server, box):
    token = box["trafficAccessToken"]
    assert isinstance(token, str) and len(token) >= 20 and token != box["envdAccessToken"]
    again = server.must("POST", f"/sandboxes/{box['sandboxID']}/connect", {"timeout": 3600})
    assert again["trafficAccessToken"] == token
    detail = server.must("GET", f"/sandboxes/{box['sandboxID']}")
    assert {name: detail["network"][name] for name in NETWORK} == NETWORK
    assert token not in json.dumps(detail)


@pytest.mark.parametrize("port", PLAIN + SECURE)
def test_only_the_token_opens_its_ports(server, box, port):
    for token in (None, ""):
        assert refused(visit(server, box, port, token), box, MISSING)
    right = box["trafficAccessToken"]
    for token in (right[:-1], right + "x", right.swapcase(), box["envdAccessToken"]):
        assert refused(visit(server, box, port, token), box, INVALID)
    assert refused(visit(server, box, port, X_Access_Token=right), box, MISSING)
    seen = is_reached(server, box, port)
    assert seen["host"] == f"localhost:{port}"
    assert seen["x-forwarded-host"].startswith(f"{port}-{box['sandboxID']}.")
    assert TOKEN.lower() not in seen and right not in json.dumps(seen)


def test_a_closed_port_is_not_told_to_strangers(server, box):
    assert refused(visit(server, box, 8002), box, MISSING)
    assert visit(server, box, 8002, box["trafficAccessToken"]).status == 502


def test_people_see_a_page(server, box):
    for headers in (BROWSER, dict(BROWSER, **{"Sec-Fetch-Mode": "cors"})):
        answer = server.api("GET", "/", key=None, headers=dict(
            headers, Host=f"8000-{box['sandboxID']}.localhost:{server.port}"))
        page = headers["Sec-Fetch-Mode"] == "navigate"
        assert answer.status == 403
        assert answer.headers["content-type"].startswith("text/html" if page else "application/json")
        assert (b"<title>" in answer.raw) == page


def test_a_fork_has_a_token_of_its_own(server, box):
    fork = server.must("POST", f"/sandboxes/{box['sandboxID']}/fork", {"timeout": 3600, "count": 1})[0]["sandbox"]
    assert fork["trafficAccessToken"] and fork["trafficAccessToken"] != box["trafficAccessToken"]
    assert refused(visit(server, fork, 8000, box["trafficAccessToken"]), fork, INVALID)
    for port in (8000, 8444):
        assert is_reached(server, fork, port)["host"] == f"localhost:{port}"
    assert server.delete(fork) == 204


def test_only_the_token_resumes_it(server, box):
    def state():
        return server.must("GET", f"/sandboxes/{box['sandboxID']}")["state"]

    assert server.api("POST", f"/sandboxes/{box['sandboxID']}/pause").status == 204
    for token in (None, "wrong", box["envdAccessToken"]):
        assert refused(visit(server, box, 8001, token), box, NOT_RESUMED)
    assert state() == "paused"
    assert is_reached(server, box, 8001)["host"] == "localhost:8001"
    assert state() == "running"
    assert refused(visit(server, box, 8001), box, MISSING)
    assert is_reached(server, box, 8443)["host"] == "localhost:8443"


def make_pass(box, lasts, token):
    """To port 8001, as a guarded port's cookie has it: docs/decisions/0033."""
    end = int(time.time()) + lasts
    claim = f"port pass/1\nc\n{box['sandboxID']}\n8001\n{end}\n"
    return f"c8001.{end}." + hmac.new(token.encode(), claim.encode(), hashlib.sha256).hexdigest()


def test_a_pass_made_with_the_token_resumes_it(server, box):
    """And opens no port that is not guarded."""
    def knock(text):
        return visit(server, box, 8001, Cookie=f"hotcell-pass={text}")

    token = box["trafficAccessToken"]
    assert server.api("POST", f"/sandboxes/{box['sandboxID']}/pause").status == 204
    for wrong in (make_pass(box, -1, token), make_pass(box, 60, "another"), make_pass(box, 60, token)[:-1] + "x", token[:-1]):
        assert refused(knock(wrong), box, NOT_RESUMED)
    assert server.must("GET", f"/sandboxes/{box['sandboxID']}")["state"] == "paused"
    assert refused(knock(make_pass(box, 60, token)), box, MISSING)
    assert server.must("GET", f"/sandboxes/{box['sandboxID']}")["state"] == "running"


def test_its_token_outlives_restarts(server, box):
    server.restart("node", "gateway")
    server.wait_up()
    assert refused(visit(server, box, 8000), box, MISSING)
    assert is_reached(server, box, 8000)["host"] == "localhost:8000"


def test_without_any_of_it(server):
    """A sandbox that is open to everybody: no token, its own name, and a token that is sent stays outside."""
    plain = server.create(secure=True)
    assert plain["trafficAccessToken"] is None
    server.write(plain, "service.py", SERVICE.split('Service("127')[0].encode())
    server.run(plain, "setsid nohup python3 service.py >service.log 2>&1 </dev/null &")
    answer = wait_for(lambda: (lambda a: a if a.status == 200 else None)(visit(server, plain, 8000, "any")),
                      "its service answers", CALL_SECONDS, 0.5)
    seen = dict((name.lower(), value) for name, value in answer.json["headers"])
    assert seen["host"].startswith(f"8000-{plain['sandboxID']}.") and TOKEN.lower() not in seen
    answer = server.api("POST", "/sandboxes", {"templateID": "base", "secure": False, "network": NETWORK})
    assert (answer.status, answer.json["message"]) == (400, (
        "You cannot create a sandbox without public access unless you enable secure envd access via 'secure' flag."))
