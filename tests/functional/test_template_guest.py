"""test_template_guest.py - what a template's guest is asked and given while it is built."""

import json
import re
import subprocess

import pytest

from node import NodeHost, wait_for

TEAM = "team-one"
PORT = 8443
SERVER = f"""
import http.server, ssl
class Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/" else 404)
        self.send_header("content-length", "3")
        self.end_headers()
        self.wfile.write(b"hi\\n")
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", {PORT}), Quiet)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/tmp/leaf.pem", "/tmp/leaf.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
URL = f"https://localhost:{PORT}/"


def openssl(*args):
    subprocess.run(["openssl", *map(str, args)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   timeout=60)


def authority(folder, name):
    """A certificate authority: its certificate. The key is beside it."""
    at = folder / f"{name}.pem"
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 10, "-subj",
            f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", at.with_suffix(".key"), "-out", at)
    return at


def leaf(ca):
    """For localhost, signed by it: certificate and key, as texts."""
    at = ca.with_name(f"leaf-{ca.name}")
    key, request, more = at.with_suffix(".key"), at.with_suffix(".csr"), at.with_suffix(".ext")
    more.write_text("subjectAltName = DNS:localhost\nauthorityKeyIdentifier = keyid\n")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
            "-keyout", key, "-out", request)
    openssl("x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca.with_suffix(".key"), "-CAcreateserial", "-days", 5,
            "-extfile", more, "-out", at)
    return at.read_text(), key.read_text()


@pytest.fixture(scope="module")
def authorities(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ca")
    return [authority(folder, name) for name in ("installation", "corporate", "stranger")]


@pytest.fixture(scope="module")
def host(authorities):
    with NodeHost(own_template=True, guest_ca=authorities[0], extra_ca=authorities[1]) as h:
        h.wait_template()
        yield h


@pytest.fixture(scope="module")
def box(host):
    b = host.client.create(TEAM)
    yield b
    host.client.kill(TEAM, b.id)


def manifest(host):
    (base,) = host.client.templates()
    return json.loads((host.warden.state / "templates" / base["templateID"] / "manifest").read_text())


def test_its_packages_come_from_where_its_own_managers_say(host, box):
    """What an image is configured to use is read from the image, by other means than the build's."""
    packages = manifest(host)["packages"].split()
    sources = host.run(box, "cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true")
    apt = set(re.findall(r"https?://(?:[^@/\s]*@)?([^:/\s]+)", sources))
    assert apt and apt <= set(packages), (apt, packages)
    index = host.run(box, r"pip install --help | tr -s ' \n' ' ' | grep -o '(default https*://[^/)]*'")
    assert index.partition("://")[2] in packages, (index, packages)
    assert f"its packages come from: {' '.join(packages)}" in host.log()


def test_names_are_asked_of_the_sandboxes_own_door(host, box):
    assert host.run(box, "grep -v '^#' /etc/resolv.conf") == "nameserver 169.254.77.1"


def serve(host, box, ca):
    """A server of TLS in the guest, with a certificate of that authority; the one before it ends."""
    cert, key = leaf(ca)
    for path, text in ("/tmp/leaf.pem", cert), ("/tmp/leaf.key", key), ("/tmp/server.py", SERVER):
        host.run(box, f"cat > {path} <<'END'\n{text}\nEND")
    host.run(box, "if [ -f /tmp/pid ]; then kill $(cat /tmp/pid); fi;"
             "setsid python3 /tmp/server.py </dev/null >/tmp/log 2>&1 & echo $! > /tmp/pid")
    # the one before may still listen for an instant
    wait_for(lambda: ca.stem in host.run(box, f"openssl s_client -connect localhost:{PORT} </dev/null 2>/dev/null |"
                                         "grep -i ^issuer || true"), "the server is there", 120, every=0.2)


CLIENTS = {
    "curl": f"curl -sS {URL}",
    "wget": f"wget -nv -O- {URL}",
    "Python": f"python3 -c 'import urllib.request as u; print(u.urlopen(\"{URL}\").read().decode())'",
    "Python requests": f"python3 -c 'from pip._vendor import requests as r; print(r.get(\"{URL}\").text)'",
}


@pytest.mark.parametrize("which", [0, 1])
def test_its_programs_trust_the_authorities(host, box, authorities, which):
    serve(host, box, authorities[which])
    for name, command in CLIENTS.items():
        assert host.run(box, f"{command} 2>/tmp/$USER || cat /tmp/$USER", user="user") == "hi", name
    git = host.run(box, f"git ls-remote {URL}none 2>&1 || true", user="user")
    assert "not found" in git, git  # as said by the server


def test_they_trust_nobody_else(host, box, authorities):
    serve(host, box, authorities[2])
    for name, command in CLIENTS.items():
        said = host.run(box, f"{command} 2>&1 || echo refused", user="user")
        assert said.endswith("refused") and "certificate" in said.lower(), (name, said)


def test_node_is_told_of_them_by_its_environment(host, box):
    """Node brings its own list; there is none in this image, so see what it would follow."""
    said = host.run(box, "cat $NODE_EXTRA_CA_CERTS", user="user")
    assert said.count("BEGIN CERTIFICATE") == 2
    assert host.run(box, "sudo sh -c 'echo $NODE_EXTRA_CA_CERTS'", user="user").endswith(".pem")


def test_another_authority_makes_another_template(host, authorities):
    (before,) = host.client.templates()
    host.stop_node()
    host.start_node(guest_ca=authorities[2])

    def named():
        (base,) = host.client.templates()
        return base["templateID"] not in ("base", before["templateID"])

    wait_for(named, "another template is built", 60, every=0.2)
    host.stop_node()
    host.start_node(guest_ca="", extra_ca=authorities[2].with_suffix(".key"))
    wait_for(lambda: "extra_ca: " in host.client.templates()[0].get("message", ""), "the reason is told", 60, every=0.2)
    host.stop_node()
    host.start_node()
    host.wait_template()  # the first one is there still, and fits
    assert host.client.templates()[0]["templateID"] == before["templateID"]
    at = host.warden.state / "templates"
    wait_for(lambda: [f.name for f in at.iterdir()] == [before["templateID"]], "what was begun is gone", 60)
