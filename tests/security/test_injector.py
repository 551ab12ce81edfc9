"""test_injector.py - TLS is opened for hosts with a rule, and for them alone; what is added is in no other process."""

import concurrent.futures
import os
import pathlib
import signal
import ssl
import subprocess
import time

import injector
import pytest
from taken import memory_has
from warden import is_sanitized

HOST = "api.example.com"
RULES = {HOST: [{"transform": {"headers": {"Authorization": "Bearer 12345", "X-Who": "us"}}}]}


@pytest.fixture(scope="module")
def cert(tmp_path_factory):
    return injector.certificate(tmp_path_factory.mktemp("cert"), HOST)


@pytest.fixture(name="it")
def fixture_it(cert):
    it = injector.Injector(extra_ca=cert[1]).start()
    yield it
    it.end()


@pytest.fixture(name="server")
def fixture_server(cert):
    server = injector.Server(cert[0])
    yield server
    server.close()


@pytest.fixture(name="plain")
def fixture_plain():
    server = injector.Server()
    yield server
    server.close()


def trusting(it):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=it.facts()["ca"])
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


def request(stream, path="/", host=HOST, extra=""):
    stream.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{extra}\r\n".encode())
    stream.flush()
    status = stream.readline().decode()
    length = 0
    while (line := stream.readline().decode()) not in ("\r\n", ""):
        if line.lower().startswith("content-length:"):
            length = int(line.split(":")[1])
    return status, stream.read(length).decode()


def open_tls(it, channel, server, name=HOST):
    sock = trusting(it).wrap_socket(channel.hand(name, server.address), server_hostname=name)
    return sock, sock.makefile("rwb")


def test_a_host_with_a_rule_gets_its_headers(it, server):
    channel = it.worker(RULES)
    sock, stream = open_tls(it, channel, server)
    with sock, stream:
        assert sock.selected_alpn_protocol() == "http/1.1"
        for _ in range(2):
            status, body = request(stream, extra="authorization: mine\r\nx_who: me\r\n")
            assert " 200 " in status and body == "ok\n"
    for head in server.heads:
        assert "Authorization: Bearer 12345" in head and "X-Who: us" in head
        assert not any("mine" in line or "x_who" in line for line in head)
    out, into, requests, why = channel.over()
    assert out > 0 and into > 0 and requests == 2 and why == ""


def test_another_host_behind_the_opened_one_is_refused(it, server):
    channel = it.worker(RULES)
    sock, stream = open_tls(it, channel, server)
    with sock, stream:
        status, body = request(stream, host="other.example.com")
        assert " 403 " in status and "other.example.com" in body
    assert server.heads == []


def test_a_server_that_is_not_who_it_should_be_gets_nothing(it, server):
    other = "www.example.com"
    channel = it.worker({other: RULES[HOST]})
    sock, stream = open_tls(it, channel, server, name=other)
    with sock, stream:
        status, body = request(stream, host=other)
        assert " 502 " in status and "certificate" in body, body
    assert server.heads == []
    assert channel.over()[3]


def test_what_a_certificate_calls_itself_is_no_name_of_it(tmp_path):
    both, alone = injector.certificate(tmp_path, HOST, names="IP:127.0.0.1")
    server, it = injector.Server(both), injector.Injector(extra_ca=alone).start()
    try:
        channel = it.worker(RULES)
        sock, stream = open_tls(it, channel, server)
        with sock, stream:
            status, body = request(stream)
            assert " 502 " in status and "mismatch" in body, body
        assert server.heads == []
    finally:
        server.close()
        it.end()


def test_a_secret_that_is_not_there_is_named(it, server):
    channel = it.worker({HOST: [{"transform": {"headers": {"Authorization": "Bearer ${e2b.secrets.openai}"}}}]})
    sock, stream = open_tls(it, channel, server)
    with sock, stream:
        status, body = request(stream)
        assert " 403 " in status and body.startswith("hotcell: not allowed: ") and "openai" in body, body
    assert server.heads == []
    sock, stream = open_tls(it, channel, server)
    with sock, stream:
        for piece in (f"GET / HTTP/1.1\r\nHost: {HOST}\r\nAcc", "ept: text/html,*/*\r\n", "\r\n"):  # what it wants is waited for
            stream.write(piece.encode())
            stream.flush()
        page = stream.read().decode()
        assert " 403 " in page and f"<title>Refused: {HOST}</title>" in page and "openai" in page, page
        assert "whoever made the sandbox makes that secret" in page
    assert server.heads == []


def test_plain_http_gets_headers_but_no_secrets(it, plain):
    channel = it.worker(RULES)
    stream = channel.hand(HOST, plain.address, tls=False, port=80).makefile("rwb")
    assert " 200 " in request(stream)[0]
    assert "Authorization: Bearer 12345" in plain.heads[0]
    stream.close()
    channel = it.worker({HOST: [{"transform": {"headers": {"Authorization": "${e2b.secrets.x}"}}}]}, {"x": "eA=="})
    stream = channel.hand(HOST, plain.address, tls=False, port=80).makefile("rwb")
    assert " 403 " in request(stream)[0]
    assert len(plain.heads) == 1


def test_a_websocket_passes(it, server):
    channel = it.worker(RULES)
    sock, stream = open_tls(it, channel, server)
    with sock, stream:
        stream.write(f"GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello\n".encode())
        stream.flush()
        assert stream.readline().startswith(b"HTTP/1.1 101 ")
        while stream.readline() != b"\r\n":
            pass
        assert stream.readline() == b"hello\n"
    assert "Authorization: Bearer 12345" in server.heads[0]


def test_programs_accept_what_they_are_shown(it, server, tmp_path):
    """curl has OpenSSL, git mostly GnuTLS: both must understand a certificate with constrained names."""
    channel = it.worker(RULES)
    (tmp_path / "ca.pem").write_text(it.facts()["ca"])
    with channel.listen(HOST, server.address) as listener:
        to = f"127.0.0.1:{listener.getsockname()[1]}"
        got = subprocess.run(["curl", "-sS", "--max-time", "60", "--cacert", tmp_path / "ca.pem", "--connect-to", f"::{to}",
                              f"https://{HOST}/curl"], capture_output=True, text=True, check=False)
        assert got.stdout == "ok\n", got.stderr
        port = listener.getsockname()[1]
        subprocess.run(["git", "-c", f"http.curloptResolve={HOST}:{port}:127.0.0.1", "ls-remote", f"https://{HOST}:{port}/git"],
                       capture_output=True, timeout=60, check=False,
                       env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_SSL_CAINFO": str(tmp_path / "ca.pem")})
    for program in ("/curl", "/git"):
        heads = [head for head in server.heads if program in head[0]]
        assert heads and "Authorization: Bearer 12345" in heads[0], program


def test_a_guest_that_asks_for_nothing_is_not_waited_for(it, server):
    channel = it.worker(RULES)
    sock, stream = open_tls(it, channel, server)
    stream.close()
    with sock.unwrap():  # it has said its last word, and hears on
        out, _into, requests, _why = channel.over()
    assert out == 0 and requests == 0


def test_a_large_body_passes_both_ways(it, server):
    channel = it.worker(RULES)
    sock, stream = open_tls(it, channel, server)
    body = os.urandom(3 << 20).hex().encode()
    with sock, stream:
        stream.write(f"POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        stream.flush()
        while stream.readline() != b"\r\n":
            pass
        assert stream.read(len(body)) == body


def test_its_connections_have_one_rate_together(it, server):
    """Both directions count, as they do in egress; what goes on is told of meanwhile."""
    channel = it.worker(RULES)
    channel.bytes_per_s = rate = 2 << 20
    body, connections = os.urandom(2 << 20), 2
    ends = [open_tls(it, channel, server) for _ in range(connections)]

    def post(ends):
        with ends[0], ends[1] as stream:
            stream.write(f"POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            stream.flush()
            while stream.readline() != b"\r\n":
                pass
            return stream.read(len(body)) == body

    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(connections) as pool:
        assert all(pool.map(post, ends))
    took, moved = time.monotonic() - begun, 2 * connections * len(body)
    assert took > 0.75 * moved / rate, f"{moved} bytes in {took:.1f} s"
    told = [channel.note() for _ in range(connections)]
    while sum(not note.goes_on for note in told) < connections:
        told.append(channel.note())
    assert any(note.goes_on for note in told)
    assert moved <= sum(note.out + note.into for note in told) < 1.1 * moved


def test_a_certificate_is_for_hosts_with_rules_only(it, server):
    channel = it.worker(RULES)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        trusting(it).wrap_socket(channel.hand("other.org", server.address), server_hostname="other.org")
    assert channel.over()[3]


def test_a_new_worker_ends_the_one_before(it, server):
    channel = it.worker(RULES)
    sock, stream = open_tls(it, channel, server)
    request(stream)
    it.worker(RULES)
    assert stream.read(1) in (b"", None)
    assert channel.sock.recv(1) == b""
    sock.close()
    it.ask(injector.RESET)
    injector.wait_until(lambda: it.processes()[1] == [], "a worker is left")


def test_a_worker_that_dies_is_told(it):
    channel = it.worker(RULES, slot=7)
    (pid,) = it.processes()[1]
    os.kill(pid, signal.SIGKILL)
    assert channel.sock.recv(1) == b""
    injector.wait_until(lambda: it.facts() and 7 in it.notes, "nobody said so")


def test_a_channel_that_ends_ends_its_worker(it):
    channel = it.worker(RULES, slot=3)
    channel.sock.close()
    injector.wait_until(lambda: it.facts() and 3 in it.notes, "the worker lives on")


def test_garbage_on_the_channel_ends_the_worker(it):
    channel = it.worker(RULES)
    channel.sock.send(b"nonsense")
    assert channel.sock.recv(1) == b""


def test_nobody_is_left_when_the_injector_is_killed(it):
    channel = it.worker(RULES)
    forkserver, workers = it.processes()
    it.process.kill()
    it.process.wait()
    assert channel.sock.recv(1) == b""
    injector.wait_until(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in [forkserver, *workers]), "somebody is left")


def test_keys_are_made_once_and_kept(it):
    before = it.facts()
    it.client.close()
    it.process.send_signal(signal.SIGTERM)
    it.process.wait(injector.PATIENCE)
    it.start()
    assert it.facts() == before
    for name in ("root.key", "root.crt", "seal.key"):
        assert (it.base / "state" / name).stat().st_mode & 0o77 == 0


@pytest.mark.parametrize("rules", [{}, {"*": []}, {"1.2.3.4": []}, {HOST: [{"transform": {"headers": {"Host": "x"}}}]},
                                   {HOST: [{"transform": {"headers": {"a b": "x"}}}]}, {HOST: [1]}])
def test_rules_that_cannot_be_are_refused(it, rules):
    with pytest.raises(injector.Refused):
        it.worker(rules)
    assert it.processes()[1] == []


@pytest.mark.skipif(is_sanitized(), reason="a sanitizer's memory is too large to be searched")
def test_nobody_but_a_worker_knows_a_value(it, server):
    """Memory of the forkserver, and of another sandbox's worker; the keys are in the injector alone."""
    channel = it.worker(RULES)
    sock, stream = open_tls(it, channel, server)
    with sock, stream:
        request(stream)
    other = it.worker({"other.org": [{"transform": {"headers": {"X": "else"}}}]}, slot=1)
    forkserver, workers = it.processes()
    key = bytes((it.base / "state/seal.key").read_bytes())[:40]
    root = (it.base / "state/root.key").read_text().split("\n")[1].encode()
    assert memory_has(workers[0], b"Bearer 12345"), "the search finds nothing at all"
    assert not memory_has(workers[1], b"Bearer 12345")
    assert not memory_has(forkserver, b"Bearer 12345")
    for pid in [forkserver, *workers]:
        assert not memory_has(pid, key) and not memory_has(pid, root)
    assert other.sock.fileno() >= 0
