"""test_injector_calls.py - the injector, its forkserver and its workers do all they do with the system calls they have.

None that they make is refused, or the fixture says so; test_needed_calls.py runs this with one call less each time, for
each of the three, and each must be missed here. What happens too seldom to be waited for is made to happen.
"""

import os
import pathlib
import platform
import signal
import socket
import ssl
import struct

import injector
import pytest
from taken import Taken, may_make
from warden import is_sanitized

HOST = "api.example.com"
RULES = {HOST: [{"transform": {"headers": {"Authorization": "Bearer 12345"}}}]}
# As in test_egress_calls.py; and a worker has a line for the log only when something is wrong with it.
SELDOM = ("epoll_wait", "epoll_pwait", "fstat", "newfstatat", "clock_gettime", "futex", "mremap", "munmap", "write")

pytestmark = pytest.mark.skipif(is_sanitized(), reason="a build with sanitizers allows what they need")
known_registers = pytest.mark.skipif(platform.machine() != "x86_64", reason="its registers are not known here")


@pytest.fixture(scope="module")
def cert(tmp_path_factory):
    return injector.certificate(tmp_path_factory.mktemp("cert"), HOST)


@pytest.fixture(name="it")
def fixture_it(cert):
    it = injector.Injector(extra_ca=cert[1]).start()
    try:
        yield it
    finally:
        it.end()


@pytest.fixture(name="server")
def fixture_server(cert):
    server = injector.Server(cert[0])
    yield server
    server.close()


def say(stream, method, body=b""):
    stream.write(f"{method} / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    stream.flush()
    status, length = stream.readline(), 0
    while (line := stream.readline()) not in (b"\r\n", b""):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return status, stream.read(length)


def open_tls(it, channel, server):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=it.facts()["ca"])
    return context.wrap_socket(channel.hand(HOST, server.address), server_hostname=HOST)


@pytest.fixture(name="pids")
def fixture_pids(it, server):
    """Of all three. A worker that has served somebody has its filter."""
    channel = it.worker(RULES)
    with open_tls(it, channel, server) as sock, sock.makefile("rwb") as stream:
        assert b" 200 " in say(stream, "GET")[0]
    forkserver, (worker,) = it.processes()
    yield {"injector": it.process.pid, "forkserver": forkserver, "worker": worker}
    channel.sock.close()


def has_ended(pid):
    """Its forkserver waits for nobody."""
    return not pathlib.Path(f"/proc/{pid}").exists()


def test_a_connection_is_opened(it, server):
    channel = it.worker(RULES)
    with open_tls(it, channel, server) as sock, sock.makefile("rwb") as stream:
        assert b" 200 " in say(stream, "GET")[0]
    assert channel.over()[3] == ""
    assert "Authorization: Bearer 12345" in server.heads[0]


def test_much_passes(it, server):
    channel, body = it.worker(RULES), os.urandom(2 << 20)
    with open_tls(it, channel, server) as sock, sock.makefile("rwb") as stream:
        assert say(stream, "POST", body)[1][:len(body)] == body


def test_a_server_that_breaks_off(it):
    channel = it.worker(RULES)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with channel.hand(HOST, listener.getsockname(), tls=False) as guest:
            guest.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            server, _who = listener.accept()
            assert server.recv(1000)
            server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            server.close()
            assert b" 502 " in guest.recv(1000)
    assert channel.over()[3]


def test_a_worker_ends_with_its_channel_and_its_slot(it):
    channel = it.worker(RULES)
    (pid,) = it.processes()[1]
    channel.sock.close()
    injector.wait_until(lambda: has_ended(pid), "a worker outlives its channel")
    channel = it.worker(RULES, slot=1)
    it.ask(injector.STOP, slot=1)
    assert channel.sock.recv(1) == b""


def test_there_is_room_for_long_rules(it):
    headers = {f"X-{i}": "x" * 700 for i in range(30)}
    channel = it.worker({f"{i}.example.com": [{"transform": {"headers": headers}}] for i in range(60)})
    channel.sock.close()


@known_registers
def test_what_libraries_do_elsewhere_is_allowed(pids):
    for who in ("worker", "injector"):
        may_make(pids[who], *SELDOM)


@known_registers
@pytest.mark.parametrize("who", ["injector", "forkserver", "worker"])
def test_a_bug_ends_it_as_a_bug(it, pids, who):
    """abort(), as a failed assertion calls it: nothing is refused on the way, and that is all that ends."""
    pid = pids[who]
    with Taken(pid) as taken:
        taken.go_on_at("abort")
    if who == "injector":
        assert it.process.wait(injector.PATIENCE) == -signal.SIGABRT
    else:
        injector.wait_until(lambda: has_ended(pid) or is_dead(pid), f"the {who} goes on")
    if who == "forkserver":
        assert it.process.wait(injector.PATIENCE) == 1  # its supervisor starts it anew


def is_dead(pid):
    try:
        return "\nState:\tZ" in pathlib.Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True


def test_a_forkserver_that_does_not_answer_is_given_up(it):
    forkserver, _workers = it.processes()
    os.kill(forkserver, signal.SIGSTOP)
    try:
        with pytest.raises(injector.Refused, match="forkserver"):
            it.worker(RULES)
    finally:
        os.kill(forkserver, signal.SIGKILL)
    assert it.process.wait(injector.PATIENCE) == 1
