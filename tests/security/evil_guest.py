"""evil_guest.py - a node made of a few answers, and a guest that lies. A program, in a network of its own:

    unshare --net python3 evil_guest.py NODE_SOCKET

It answers a gateway in node's place: every sandbox exists, and its sockets lead here. What the guest says is chosen by
the path of the request (lies.py); on EARLY_PORT it does not wait for one. Lines on its standard input:
`gone ID` ends a sandbox, `heard NAME` asks how often it was asked for that.
"""

import asyncio
import contextlib
import json
import logging
import os
import pathlib
import signal
import socket
import subprocess
import sys

from lies import HEARD, SAID, serve_asked, serve_early

HERE = pathlib.Path(__file__).resolve().parent
ADDRESS = "169.254.77.2"
AGENT_PORT = 49983
PORT = 8000
EARLY_PORT = 8001
HONEST_PORT = 8002


async def serve_honest(reader, writer):
    """As it should be: keeps its connections."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(SAID["ok"])
    writer.close()


# --- node -------------------------------------------------------------------------------------------------


class FakeNode:
    def __init__(self, path):
        sys.path[:0] = [str(HERE.parent / "node"), str(HERE.parent / "warden")]
        global link_hello
        import link_hello
        import node_client  # with the layout of this build
        self.nc = node_client
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listening.bind(path)
        os.chmod(path, 0o666)
        self.listening.listen()
        self.gateways = []
        asyncio.get_running_loop().add_reader(self.listening, self.accept)

    def accept(self):
        s, _ = self.listening.accept()
        self.gateways.append(s)
        asyncio.get_running_loop().add_reader(s, self.answer, s)

    def reply(self, sandbox, **values):
        raw = bytearray(self.nc.pack("node_reply", **values))
        at, size, _ = self.nc.fields("node_reply")["sandbox"]
        raw[at:at + size] = self.nc.pack("node_sandbox", id=sandbox, team="team", template_id="base",
                                         started_ns=1, end_ns=1 << 62, generation=1)
        return bytes(raw)

    def answer(self, s):
        raw = b""
        with contextlib.suppress(ConnectionResetError):
            raw = s.recv(self.nc.value("NODE_MESSAGE_MAX"))
        if raw.startswith(link_hello.MAGIC):
            version = self.nc.value("NODE_VERSION_MAX")
            s.send(link_hello.pack(version, version))
            return
        if not raw:
            asyncio.get_running_loop().remove_reader(s)
            self.gateways.remove(s)
            s.close()
            return
        field = {name: raw[at:at + size] for name, (at, size, _) in self.nc.fields("node_request").items()}
        tag = int.from_bytes(field["tag"], "little")
        sandbox = field["id"].split(b"\0")[0].decode()
        verb = int.from_bytes(field["verb"], "little")
        if verb == self.nc.value("NODE_READY"):
            s.send(self.reply("", tag=tag))
            return
        if verb != self.nc.value("NODE_SOCKETS"):
            s.send(self.reply("", tag=tag, code=self.nc.LAYOUT.errors.index("not_found")))
            return
        n = int.from_bytes(field["count"], "little")
        sockets = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(n)]
        for new in sockets:
            new.setblocking(False)
        socket.send_fds(s, [self.reply(sandbox, tag=tag, count=n)], [new.fileno() for new in sockets])
        for new in sockets:
            new.close()

    def gone(self, sandbox):
        for s in self.gateways:
            s.send(self.reply(sandbox, event=self.nc.value("NODE_GONE")))


async def listen_to_orders(node):
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        word, _, name = line.decode().strip().partition(" ")
        assert word in ("gone", "heard"), line
        if word == "gone":
            node.gone(name)
        else:
            print(HEARD[name], flush=True)


async def be_honest():
    await asyncio.start_server(serve_honest, ADDRESS, HONEST_PORT, backlog=1024)
    await asyncio.Event().wait()


async def be_evil():
    node = FakeNode(sys.argv[1])
    for port, how in (AGENT_PORT, serve_asked), (PORT, serve_asked), (EARLY_PORT, serve_early):
        await asyncio.start_server(how, ADDRESS, port, backlog=1024)
    print(json.dumps({"ready": True}), flush=True)
    await listen_to_orders(node)


def main():
    logging.disable(logging.WARNING)  # of writes to clients that left
    for command in ("ip link set lo up", f"ip address add {ADDRESS}/32 dev lo"):
        subprocess.run(command.split(), check=True)
    honest = os.fork()  # lies must not delay it here already
    if honest == 0:
        asyncio.run(be_honest())
    try:
        asyncio.run(be_evil())
    finally:
        os.kill(honest, signal.SIGKILL)


if __name__ == "__main__":
    main()
