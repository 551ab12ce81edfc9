"""neighbour.py - runs in another guest, as root: listens wherever somebody might look for it, and writes down who comes.

    python3 neighbour.py FILE      # FILE: a line of JSON for each; it exists as soon as it listens

Besides what its listeners hear it writes down every frame that arrives, but for those of its own conversations: with
who runs its commands, and answers to what it asked itself.
"""

import json
import socket
import struct
import subprocess
import sys
import threading

import frames

PORT, WEB = 7070, 80
AGENT, NAMES = 49983, 53
NEAR, LINKED, FAR, BOUGHT = "169.254.77.6", "169.254.77.10", "10.77.0.6", "45.33.32.7"  # the last: one that others may reach
SIX = "fd00:77::6"
ANSWER = b"reached 77.77.77.77:7070"  # like nobody else's
LOCK = threading.Lock()


def note(what, **more):
    with LOCK, open(sys.argv[1], "a", encoding="ascii") as f:
        print(json.dumps({"what": what, **more}), file=f)


def is_own(data):
    kind = struct.unpack(">H", data[12:14])[0]
    if kind == frames.ARP:
        return data[20:22] == b"\0\2" and data[28:32] == frames.ip(frames.HOST)
    if kind != frames.IP4 or data[6:12] != frames.HOST_MAC:
        return False
    source, ports = data[26:30], struct.unpack(">HH", data[34:38])
    if data[23] == frames.UDP:
        return ports[0] == NAMES
    return data[23] == frames.TCP and source == frames.ip(frames.HOST) and ports[1] == AGENT


def hear_frames():
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind((frames.LINK, 0))
    while True:
        data, address = s.recvfrom(4096)
        if address[2] != socket.PACKET_OUTGOING and not is_own(data.ljust(64, b"\0")):
            note("frame", data=data[:200].hex())


def answer_tcp(s, who):
    note("tcp", who=who[0])
    with s:
        s.settimeout(2)
        try:
            s.recv(4096)
        except OSError:
            pass
        s.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(ANSWER) + ANSWER)


def hear_tcp(s):
    while True:
        threading.Thread(target=answer_tcp, args=s.accept()).start()


def hear_udp(s):
    while True:
        _, who = s.recvfrom(4096)
        note("udp", who=who[0])
        s.sendto(ANSWER, who)


def main():
    for address in (NEAR, LINKED, FAR, BOUGHT):
        subprocess.run(["ip", "address", "add", address + "/32", "dev", frames.LINK], check=True)
    subprocess.run(["ip", "address", "add", SIX + "/128", "dev", frames.LINK, "nodad"], check=False)  # where there is IPv6
    doors = [(hear_frames, ())]
    for port in (PORT, WEB):
        doors.append((hear_tcp, (socket.create_server(("", port), backlog=64),)))
    for port in (PORT, NAMES):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(("", port))
        doors.append((hear_udp, (s,)))
    for hear, args in doors:
        threading.Thread(target=hear, args=args).start()
    open(sys.argv[1], "a", encoding="ascii").close()


if __name__ == "__main__":
    main()
