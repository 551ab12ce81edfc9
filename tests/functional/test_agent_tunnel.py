"""The way to services that listen on the guest's loopback alone, through the agent."""

import contextlib
import socket
import threading

import pytest

from test_agent import Agent, agent, give_identity  # noqa: F401


def ask(agent, port, extra=b"", upgrade="hotcell-tunnel"):
    """The connection after the agent's answer, and the answer."""
    s = socket.create_connection(("127.0.0.1", agent.port), timeout=30)
    s.sendall(f"GET /tunnel HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: {upgrade}\r\n"
              f"Hotcell-Tunnel-Port: {port}\r\n\r\n".encode() + extra)
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = s.recv(1)
        assert piece, answer
        answer += piece
    return s, int(answer.split()[1])


def read_all(s):
    data = b""
    while piece := s.recv(65536):
        data += piece
    return data


class Echo:
    """Sends back what it gets until the other side has finished."""

    def __init__(self, address, family=socket.AF_INET):
        self.listener = socket.socket(family)
        self.listener.bind((address, 0))
        self.listener.listen()
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            with s, contextlib.suppress(ConnectionResetError):
                s.sendall(b"hello ")
                while piece := s.recv(65536):
                    s.sendall(piece)


@pytest.mark.parametrize("address, family", [("127.0.0.1", socket.AF_INET),
                                             ("::1", socket.AF_INET6)])
def test_a_service_on_loopback_is_reached(agent, address, family):
    try:
        echo = Echo(address, family)
    except OSError:
        pytest.skip(f"this machine has no {address}")
    give_identity(agent)  # a token changes nothing
    s, status = ask(agent, echo.port, b"early ")
    assert status == 101
    data = bytes(range(256)) * 2000
    threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR))).start()
    assert read_all(s) == b"hello early " + data
    echo.listener.close()


def test_where_nobody_listens(agent):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert ask(agent, port)[1] == 502


@pytest.mark.parametrize("port", ["", "0", "65536", "-1", "x", "80 "])
def test_what_is_no_port(agent, port):
    assert ask(agent, port)[1] == (502 if port == "80 " else 400)


def test_what_is_no_request_for_a_tunnel(agent):
    assert ask(agent, 80, upgrade="websocket")[1] == 400
    assert agent.ask("GET", "/tunnel", headers={"Hotcell-Tunnel-Port": "80"}).status == 400
    assert agent.ask("GET", "/health").status == 204


def test_it_stops_cleanly_with_tunnels_open(tmp_path):
    agent = Agent(tmp_path)
    echo = Echo("127.0.0.1")
    tunnels = [ask(agent, echo.port) for _ in range(5)]
    assert all(status == 101 for _, status in tunnels)
    agent.stop()
    echo.listener.close()
