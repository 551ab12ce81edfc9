"""test_tls.py - TLS at the gateway: what is spoken, which certificate is shown, what happens when certificates change and
when the signer goes, and what half-open handshakes cost others."""

import concurrent.futures
import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import pytest

import certs
import link_hello
from lone_gateway import DOMAIN
from tls_gateway import TlsGateway, shown
from warden import is_sanitized, wait_for

V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
API = f"api.{DOMAIN}"
HALF_OPEN = 500 if is_sanitized() else 3000
RELOADS = 50
RELOAD_ROUNDS = int(os.environ.get("HOTCELL_RELOAD_ROUNDS", "5"))  # of ten certificates each


@pytest.fixture(scope="module", name="gateway")
def fixture_gateway():
    with TlsGateway(ticket_seconds=2) as gateway:
        yield gateway


def s_client(gateway, *words, said=b""):
    done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{gateway.tls_port}", "-servername", API,
                           "-CAfile", gateway.authority.cert, *words], input=said, capture_output=True, timeout=60)
    return done.stdout + done.stderr


# --- what is spoken ---

@pytest.mark.parametrize("version", [V12, V13])
def test_a_request_is_answered(gateway, version):
    with gateway.connect(lowest=version, highest=version) as sock:
        assert sock.version() == version.name.replace("_", ".")
        assert sock.selected_alpn_protocol() == "http/1.1"
        status, headers, _body = gateway.get(sock)
        assert status in (200, 204)
        assert headers["strict-transport-security"].startswith("max-age=")
        assert gateway.get(sock, "/health")[0] in (200, 204)  # it stays open


@pytest.mark.parametrize("kind", ["P-384", "RSA"])
def test_keys_of_other_kinds_serve(gateway, kind):
    name = f"{kind.lower()}.example"
    pair = gateway.authority.issue(name, kind=kind)
    gateway.put(kind, pair)
    gateway.wait_served(kind, pair)
    for version in (V12, V13):
        with gateway.connect(name, lowest=version, highest=version) as sock:
            assert shown(sock) == {name}
            assert gateway.get(sock)[0] in (200, 204)


def test_traffic_of_a_sandbox_passes(gateway):
    box = gateway.node.add("i1", gateway.team)
    with gateway.node.listen(8080) as server, gateway.connect(f"8080-i1.{DOMAIN}") as client:
        body = os.urandom(3 << 20)

        def serve():
            peer, _who = server.accept()
            with peer:
                peer.recv(1 << 16)
                peer.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                peer.recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        status, headers, got = gateway.get(client, "/", headers={"Host": gateway.host(box, 8080)})
        client.close()
        thread.join()
    assert (status, got) == (200, body)
    assert headers["strict-transport-security"]


def test_old_versions_and_weak_suites_are_refused(gateway):
    for words in (["-tls1"], ["-tls1_1"], ["-tls1_2", "-cipher", "AES128-GCM-SHA256:@SECLEVEL=0"],
                  ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0"], ["-tls1_3", "-groups", "P-521"]):
        assert b"alert" in s_client(gateway, *words) or b"no protocols" in s_client(gateway, *words), words


def test_a_protocol_that_is_not_spoken_is_refused(gateway):
    with pytest.raises(ssl.SSLError, match="(?i)no.application.protocol"):
        gateway.connect(alpn=["smtp"])
    with gateway.connect(alpn=()) as sock:  # who speaks of none is served
        assert gateway.get(sock)[0] in (200, 204)


def test_renegotiation_is_refused(gateway):
    said = s_client(gateway, "-tls1_2", "-no_ign_eof", said=b"R\n")
    assert b"RENEGOTIATING" in said
    assert b"no renegotiation" in said.lower() or b"no_renegotiation" in said.lower() or b"handshake failure" in said.lower()


def test_no_early_data(gateway):
    said = s_client(gateway, "-tls1_3", "-ign_eof", said=f"GET /health HTTP/1.1\r\nHost: {API}\r\nConnection: close\r\n\r\n".encode())
    assert b"Max Early Data: 0" in said and b"Compression: NONE" in said


def test_plain_http_at_the_tls_port_ends(gateway):
    with gateway.raw() as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            while sock.recv(1000):
                pass


# --- names ---

def test_the_certificate_is_found_by_name(gateway):
    for folder, name in (("exact", f"exact.{DOMAIN}"), ("other", "other.example")):
        pair = gateway.authority.issue(name)
        gateway.put(folder, pair)
        gateway.wait_served(folder, pair)
    for name, names in ((f"exact.{DOMAIN}", {f"exact.{DOMAIN}"}), ("other.example", {"other.example"}),
                        (f"8080-i1.{DOMAIN}", {DOMAIN, f"*.{DOMAIN}"}), (DOMAIN, {DOMAIN, f"*.{DOMAIN}"})):
        with gateway.connect(name) as sock:
            assert shown(sock) == names


def test_who_names_nobody_is_shown_the_one_for_the_domain(gateway):
    own = ssl.PEM_cert_to_DER_cert(gateway.pair.chain.split("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n")
    for name in (None, "nobody.example", "deep.er." + DOMAIN):
        context = gateway.context(verify=False)
        with gateway.connect(name, context=context) as sock:
            assert sock.getpeercert(binary_form=True) == own


# --- sessions ---

@pytest.mark.parametrize("version", [V12, V13])
def test_a_session_is_resumed(gateway, version):
    context = gateway.context(lowest=version, highest=version)
    signatures = gateway.tls()["signatures"]["made"]
    with gateway.connect(context=context) as sock:
        gateway.get(sock)  # in TLS 1.3 the ticket comes after the handshake
        session = sock.session
    with gateway.connect(context=context, session=session) as sock:
        assert sock.session_reused
        assert gateway.get(sock)[0] in (200, 204)
    assert gateway.tls()["signatures"]["made"] == signatures + 1  # nobody signed the second


@pytest.mark.parametrize("version", [V12, V13])
def test_sessions_end(gateway, version):
    """`ticket_seconds` is 2: a session is resumed for so long, also when its key was replaced meanwhile."""
    context = gateway.context(lowest=version, highest=version)

    def begin():
        with gateway.connect(context=context) as sock:
            gateway.get(sock)
            return sock.session

    def goes_on(session):
        with gateway.connect(context=context, session=session) as sock:
            gateway.get(sock)
            return sock.session_reused

    first = begin()
    assert goes_on(first)
    end = time.monotonic() + 10
    renewed = False
    while goes_on(first):  # with the key of before, in between
        renewed = True
        assert time.monotonic() < end, "it is resumed for ever"
        time.sleep(0.1)
    assert renewed
    assert goes_on(begin())


# --- plain HTTP ---

def test_plain_http_stays_on_this_host():
    gateway = TlsGateway(listen="0.0.0.0:0")
    try:
        gateway.signer.start()
        gateway.daemon.launch()
        gateway.daemon.process.wait(30)
        assert "plain = yes" in gateway.daemon.log() and "listen_tls" in gateway.daemon.log()
        gateway.daemon.process = None
    finally:
        gateway.remove()


class Elsewhere:
    """Two networks with a wire between them: the gateway is in one, a client in the other."""

    SERVER, CLIENT = "10.77.0.1", "10.77.0.2"

    def __init__(self):
        self.here, self.there = (f"hotcell-tls-{os.getpid()}-{side}" for side in "ab")

    def __enter__(self):
        ip = lambda *words: subprocess.run(["ip", *words], check=True)  # noqa: E731
        for space, address in ((self.here, self.SERVER), (self.there, self.CLIENT)):
            ip("netns", "add", space)
        ip("-n", self.here, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", self.there)
        for space, address in ((self.here, self.SERVER), (self.there, self.CLIENT)):
            ip("-n", space, "address", "add", f"{address}/24", "dev", "wire")
            for device in ("lo", "wire"):
                ip("-n", space, "link", "set", device, "up")
        return self

    def __exit__(self, *exc):
        for space in (self.here, self.there):
            subprocess.run(["ip", "netns", "delete", space], check=False)

    def python(self, space, script, *words):
        done = subprocess.run(["ip", "netns", "exec", space, "/usr/bin/python3", "-c", script, *map(str, words)],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


ASK = """
import http.client, json, sys
address, port, method = sys.argv[1:]
c = http.client.HTTPConnection(address, int(port), timeout=30)
c.request(method, "/sandboxes?x=1", headers={"Host": "api.hotcell.test:3000"})
r = c.getresponse()
print(json.dumps([r.status, r.headers.get("location"), r.headers.get("strict-transport-security"), r.read().decode()]))
"""
KNOCK = """
import json, select, socket, sys, time
address, port, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
all = [socket.create_connection((address, port), 30) for _ in range(n)]
end, gone, wanted = time.monotonic() + 5, set(), int(sys.argv[4])
while time.monotonic() < end:
    if len(gone) == wanted:
        end, wanted = time.monotonic() + 0.5, None  # and no more than those
    gone |= set(select.select([s for s in all if s not in gone], [], [], 0.1)[0])
print(json.dumps(len(gone)))
"""


def test_plain_http_from_elsewhere_is_shown_the_way():
    with Elsewhere() as wire:
        gateway = TlsGateway(plain="yes", domain=f"{DOMAIN}:8443")
        gateway.daemon.where = ["ip", "netns", "exec", wire.here]
        gateway.daemon.settings |= {"listen": "0.0.0.0:3000", "listen_tls": "0.0.0.0:8443"}
        try:
            gateway.node.__enter__()
            gateway.signer.start()
            gateway.daemon.launch()
            wait_for(lambda: gateway.daemon.check_alive() or "is served for" in gateway.daemon.log(), "it serves", 30, 0.02)
            for method in ("GET", "HEAD"):
                status, location, hsts, _body = wire.python(wire.there, ASK, wire.SERVER, 3000, method)
                assert (status, location, hsts) == (308, "https://api.hotcell.test:8443/sandboxes?x=1", None)
            status, _location, _hsts, body = wire.python(wire.there, ASK, wire.SERVER, 3000, "POST")
            assert status == 403 and "use https" in body
            # on its own host it is answered: there is no key, that is all
            assert wire.python(wire.here, ASK, "127.0.0.1", 3000, "GET")[0] == 401
            # of one address elsewhere so many may shake hands at once, and no more
            assert wire.python(wire.there, KNOCK, wire.SERVER, 8443, 320, 64) == 64
        finally:
            gateway.remove()


# --- certificates that change ---

def test_a_pair_that_does_not_fit_is_refused_and_the_old_one_stays(gateway):
    name = "reload.example"
    good, other = gateway.authority.issue(name), gateway.authority.issue(name)
    gateway.put("reload", good)
    gateway.wait_served("reload", good)
    bad = {"expired": (gateway.authority.issue(name, days=-1).chain, "expired"),
           "a client's": (gateway.authority.issue(name, use="clientAuth").chain, "not for a server"),
           "rubbish": ("rubbish", "not a certificate"),
           "without its key": (other.chain, "has not its key"),
           "the wrong way round": ("".join(part + "-----END CERTIFICATE-----\n" for part in
                                           reversed(good.chain.split("-----END CERTIFICATE-----\n")[:2])), "")}
    for what, (chain, said) in bad.items():
        certs.put_file(gateway.tls_dir / "reload/fullchain.pem", chain)
        wait_for(lambda: gateway.certificate("reload")["refused"] and said in gateway.certificate("reload")["refused"],
                 f"{what} is refused: {said}", 20, 0.05)
        with gateway.connect(name) as sock:
            assert shown(sock) == {name}, what
    # the key comes later than its certificate
    certs.put_file(gateway.tls_dir / "reload/fullchain.pem", other.chain)
    gateway.put("reload", other, chain=False)
    gateway.wait_served("reload", other)
    with gateway.connect(name) as sock:
        assert sock.getpeercert(binary_form=True) == ssl.PEM_cert_to_DER_cert(
            other.chain.split("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n")


def test_a_folder_that_is_removed_is_served_no_more(gateway):
    pair = gateway.authority.issue("going.example")
    gateway.put("going", pair)
    gateway.wait_served("going", pair)
    for file in ("fullchain.pem", "privkey.pem"):
        (gateway.tls_dir / "going" / file).unlink()
    wait_for(lambda: gateway.certificate("going") is None, "it is gone", 20, 0.05)
    with pytest.raises(ssl.SSLCertVerificationError):
        gateway.connect("going.example")


class Load:
    """Clients that connect, ask and go, and some that stay, until told to stop; none may fail."""

    def __init__(self, gateway, clients=3, names=(API,)):
        self.gateway, self.stopping, self.names = gateway, threading.Event(), itertools.cycle(names)
        self.asked, self.failures = 0, []
        self.threads = [threading.Thread(target=self.come_and_go if i else self.stay) for i in range(clients)]

    def stay(self):
        try:
            with self.gateway.connect() as sock:
                while not self.stopping.wait(0.02):
                    assert self.gateway.get(sock)[0] in (200, 204)
                    self.asked += 1
        except Exception as e:  # pylint: disable=broad-except
            self.failures.append(e)

    def come_and_go(self):
        while not self.stopping.is_set():
            try:
                assert self.gateway.ask_tls(name=next(self.names))[0] in (200, 204)
                self.asked += 1
            except Exception as e:  # pylint: disable=broad-except
                self.failures.append(e)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exc):
        self.stopping.set()
        for thread in self.threads:
            thread.join()


def test_reloads_under_load_are_not_noticed(gateway):
    """Ten certificates are replaced at a time, as both daemons look once a second, and each is seen to be served."""
    names = {"own": (DOMAIN, f"*.{DOMAIN}"), **{f"reload{n}": (f"reload{n}.example",) for n in range(9)}}
    pairs = [{folder: gateway.authority.issue(*each) for folder, each in names.items()} for _ in range(2)]
    keys = [{folder: certs.key_id(pair).hex()[:16] for folder, pair in one.items()} for one in pairs]

    def put(n):
        for folder, pair in pairs[n].items():
            gateway.put(folder, pair)
        wait_for(lambda: {c["name"]: c["key"] for c in gateway.tls()["certificates"] if not c["refused"]}.items() >= keys[n].items(),
                 "all ten are served", 30, 0.05)

    put(1)
    try:
        with Load(gateway, names=[API, *(each[0] for each in names.values())]) as load:
            for i in range(RELOAD_ROUNDS):
                asked = load.asked
                put(i % 2)
                wait_for(lambda: load.asked > asked or load.failures, "the load goes on", 30, 0.02)
        print(f"{RELOAD_ROUNDS * len(names)} certificates in {RELOAD_ROUNDS} rounds, {load.asked} requests, {len(load.failures)} failed")
        assert not load.failures, load.failures[:3]
    finally:
        for folder in names:
            shutil.rmtree(gateway.tls_dir / folder)
        gateway.put("own", gateway.pair)
        gateway.wait_served("own", gateway.pair)


def test_certificates_that_come_faster_than_they_are_looked_at(gateway):
    """RELOADS pairs one after the other, each shown before the next comes or not: as it happens."""
    pairs = [gateway.authority.issue(DOMAIN, f"*.{DOMAIN}") for _ in range(3)]
    with Load(gateway) as load:
        for i in range(RELOADS):
            gateway.put("own", pairs[i % len(pairs)])
            time.sleep(0.1)
        gateway.put("own", gateway.pair)
        gateway.wait_served("own", gateway.pair)
    assert not load.failures, load.failures[:3]
    assert load.asked > RELOADS


# --- the signer ---

def test_without_the_signer_what_is_connected_goes_on(gateway):
    with gateway.connect() as sock:
        assert gateway.get(sock)[0] in (200, 204)
        gateway.signer.daemon.kill()
        wait_for(lambda: not gateway.tls()["signer"], "its end is noticed", 20, 0.02)
        assert gateway.get(sock)[0] in (200, 204)
        with pytest.raises(ssl.SSLError, match="(?i)internal.error"):
            gateway.connect()
        assert gateway.ask("GET", "/health", key=None).status in (200, 204)
        with pytest.raises(ssl.SSLError):
            gateway.connect()
        assert gateway.daemon.log().count("TLS handshakes fail") == 1
        gateway.signer.start()
        wait_for(lambda: gateway.tls()["signer"], "the next one is found", 20, 0.02)
        assert gateway.get(sock)[0] in (200, 204)
    assert gateway.ask_tls()[0] in (200, 204)


def test_a_signer_that_is_restarted_is_waited_for(gateway):
    with Load(gateway) as load:
        for _ in range(3):
            gateway.signer.daemon.kill()
            gateway.signer.start()
            time.sleep(0.3)
    assert not load.failures, load.failures[:3]


def test_a_signer_that_hangs_holds_up_nobody_else(gateway):
    with gateway.connect() as sock:
        os.kill(gateway.signer.daemon.pid, signal.SIGSTOP)
        try:
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                waiting = [pool.submit(gateway.connect) for _ in range(8)]
                time.sleep(0.2)
                begin = time.monotonic()
                assert gateway.get(sock)[0] in (200, 204)
                assert time.monotonic() - begin < 2
                os.kill(gateway.signer.daemon.pid, signal.SIGCONT)
                for one in waiting:
                    one.result(30).close()
        finally:
            os.kill(gateway.signer.daemon.pid, signal.SIGCONT)


def test_a_signer_of_another_version_is_named(gateway):
    """Nobody signs, and it is said why; the next one of ours is found."""
    assert gateway.admin("GET", "/admin/status").json["versions"]["signer"]
    gateway.signer.daemon.kill()
    gateway.signer.socket.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
        stranger.bind(os.fspath(gateway.signer.socket))
        gateway.signer.socket.chmod(0o666)
        stranger.listen(8)
        stranger.settimeout(20)
        with stranger.accept()[0] as peer:
            link_hello.receive(peer)
            peer.send(link_hello.pack(77, 78, "another"))
            wait_for(lambda: gateway.admin("GET", "/admin/status").json["mismatches"], "it is told", 20, 0.02)
        assert "signer (build another" in gateway.admin("GET", "/admin/status").json["mismatches"][0]
        with pytest.raises(ssl.SSLError, match="(?i)internal.error"):
            gateway.connect()
    gateway.signer.start()
    wait_for(lambda: gateway.tls()["signer"], "the next one is found", 20, 0.02)
    assert gateway.admin("GET", "/admin/status").json["mismatches"] == []
    assert gateway.ask_tls()[0] in (200, 204)


# --- handshakes that go nowhere ---

def memory_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1])


def test_half_open_handshakes_are_bounded_and_hurt_nobody(gateway):
    before = memory_kib(gateway.daemon.pid)
    open_sockets = []
    try:
        for i in range(HALF_OPEN):
            sock = gateway.raw()
            if i % 2:
                sock.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100))  # the beginning of a hello
            open_sockets.append(sock)
        wait_for(lambda: gateway.tls()["handshakes"]["now"] >= min(HALF_OPEN, 2048), "they are there", 20, 0.02)
        assert gateway.tls()["handshakes"]["now"] <= 2048
        took = []
        for _ in range(10):
            begin = time.monotonic()
            assert gateway.ask_tls()[0] in (200, 204)
            took.append(time.monotonic() - begin)
        assert sorted(took)[5] < 1, took
        assert is_sanitized() or memory_kib(gateway.daemon.pid) - before < 128 * 1024
    finally:
        for sock in open_sockets:
            sock.close()
    wait_for(lambda: gateway.tls()["handshakes"]["now"] == 0, "they are gone", 20, 0.05)


def test_a_slow_hello_is_given_up(gateway):
    """Byte by byte for ever: after ten seconds nobody waits for the rest."""
    begin = time.monotonic()
    with gateway.raw() as sock:
        sock.settimeout(0.5)
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(1000)
        for byte in hello:
            try:
                sock.send(bytes([byte]))
                if not sock.recv(1):
                    break
            except TimeoutError:
                continue
            except (ConnectionResetError, BrokenPipeError):
                break
        else:
            raise AssertionError("it is waited for")
    assert 8 < time.monotonic() - begin < 20


def test_an_oversized_hello_is_refused(gateway):
    failed = gateway.tls()["handshakes"]["failed"]
    with gateway.raw() as sock:
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            record = struct.pack(">BHH", 22, 0x0301, 16384)
            sock.sendall(record + b"\x01\x00\xea\x60" + bytes(16380))
            sock.sendall((record + bytes(16384)) * 3)
            while sock.recv(1000):
                pass
    wait_for(lambda: gateway.tls()["handshakes"]["failed"] > failed, "it failed", 20, 0.02)
    assert gateway.ask_tls()[0] in (200, 204)


def test_a_client_that_resets_in_the_middle_leaves_nothing(gateway):
    for _ in range(20):
        sock = gateway.raw()
        out = ssl.MemoryBIO()
        tls = gateway.context().wrap_bio(ssl.MemoryBIO(), out, server_hostname=API)
        with contextlib.suppress(ssl.SSLWantReadError):
            tls.do_handshake()
        sock.sendall(out.read())
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    wait_for(lambda: gateway.tls()["handshakes"]["now"] == 0, "they are gone", 20, 0.02)
    assert gateway.ask_tls()[0] in (200, 204)
