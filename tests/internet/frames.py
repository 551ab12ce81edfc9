"""frames.py - runs in the guest, as root: frames as no kernel would send them, and what comes back.

Each of them asks something whose answer would be known when it came: a name of its own, below wild.test, or a
word. Whether it was heard shows at the other end, too.
"""

import re
import socket
import struct
import time

import names

HOST_MAC, OWN_MAC = bytes.fromhex("024843000001"), bytes.fromhex("024843000002")
OTHER_MAC = bytes.fromhex("024843000003")
HOST, OWN = "169.254.77.1", "169.254.77.2"
LINK = "eth0"
IP4, ARP, IP6, VLAN = 0x800, 0x806, 0x86dd, 0x8100
UDP, TCP, IPIP, SIX_IN_4, GRE, ESP, SCTP = 17, 6, 4, 41, 47, 50, 132
SPORT = 48430


def checksum(data):
    data += b"\0" * (len(data) % 2)
    n = sum(struct.unpack(f">{len(data) // 2}H", data))
    n = (n >> 16) + (n & 0xffff)
    return struct.pack(">H", ~((n >> 16) + n) & 0xffff)


def ip(text):
    return socket.inet_aton(text)


def ether(kind, text, to=HOST_MAC, source=OWN_MAC):
    return to + source + struct.pack(">H", kind) + text


def packet(to, protocol, text, source=OWN, options=b""):
    head = struct.pack(">BBHHHBB", 0x45 + len(options) // 4, 0, 20 + len(options) + len(text), 0x4843, 0, 64, protocol)
    rest = ip(source) + ip(to) + options
    return head + checksum(head + b"\0\0" + rest) + rest + text


def datagram(to, port, text, source=OWN, sport=SPORT):
    size = 8 + len(text)
    false_head = ip(source) + ip(to) + struct.pack(">BBH", 0, UDP, size)
    head = struct.pack(">HHH", sport, port, size)
    return head + checksum(false_head + head + b"\0\0" + text) + text


def syn(to, port, source, sport):
    head = struct.pack(">HHIIBBHHH", sport, port, 1, 0, 0x50, 2, 1000, 0, 0)
    false_head = ip(source) + ip(to) + struct.pack(">BBH", 0, TCP, len(head))
    return head[:16] + checksum(false_head + head) + head[18:]


def ask(name, to=HOST, source=OWN, options=b""):
    """A question that is heard when it comes from where it should."""
    return packet(to, UDP, datagram(to, 53, names.question(f"{name}.wild.test"), source), source, options)


def hello(to="8.8.4.4", source=OWN):
    return packet(to, UDP, datagram(to, 9999, b"hello", source), source)


def arp(what, sender_mac, sender, target_mac, target, to):
    text = struct.pack(">HHBBH", 1, IP4, 6, 4, what) + sender_mac + ip(sender) + target_mac + ip(target)
    return ether(ARP, text, to)


def six(text, protocol, to="ff02::1", source="fe80::48:43ff:fe00:2"):
    return (struct.pack(">IHBB", 6 << 28, len(text), protocol, 255) + socket.inet_pton(socket.AF_INET6, source) +
            socket.inet_pton(socket.AF_INET6, to) + text)


def to_near(to, source=OWN):
    return packet(to, UDP, datagram(to, 7070, b"hello", source), source)


ALL = b"\xff" * 6
NEIGHBOURS = ("169.254.77.6", "10.77.0.6", "45.33.32.7")  # what a guest beside us calls itself, see neighbour.py
FRAMES = {  # what is sent, and what an answer would have in it
    "plain question": ([ether(IP4, ask("frameplain"))], b"frameplain"),
    "source of somebody else": ([ether(IP4, ask("framesource", source="10.9.9.9"))], b"framesource"),
    "source of the host": ([ether(IP4, ask("framehost", source=HOST))], b"framehost"),
    "source of a neighbour": ([ether(IP4, ask("framenear", source="169.254.77.6"))], b"framenear"),
    "source loopback": ([ether(IP4, ask("frameloop", source="127.0.0.1"))], b"frameloop"),
    "connection from elsewhere": ([ether(IP4, packet("93.184.216.34", TCP, syn("93.184.216.34", 80, "10.9.9.9", 48431),
                                                     "10.9.9.9"))], struct.pack(">HH", 80, 48431)),
    "to a neighbour's hardware": ([ether(IP4, ask("framemac"), to=OTHER_MAC)], b"framemac"),
    "with a VLAN": ([ether(VLAN, struct.pack(">HH", 7, IP4) + ask("framevlan"))], b"framevlan"),
    "in another packet": ([ether(IP4, packet("8.8.4.4", IPIP, hello())),
                           ether(IP4, packet(HOST, IPIP, ask("frameinner")))], b"frameinner"),
    "GRE": ([ether(IP4, packet("8.8.4.4", GRE, struct.pack(">HH", 0, IP4) + hello())),
             ether(IP4, packet(HOST, GRE, struct.pack(">HH", 0, IP4) + ask("framegre")))], b"framegre"),
    "SCTP": ([ether(IP4, packet("93.184.216.34", SCTP, struct.pack(">HHII", 48432, 80, 0, 0) + b"\1\0\0\x14" + bytes(16)))],
             struct.pack(">HH", 80, 48432)),
    "ESP": ([ether(IP4, packet("93.184.216.34", ESP, b"espmagic" * 4))], b"espmagic"),
    "IPv6 in IPv4": ([ether(IP4, packet("8.8.4.4", SIX_IN_4, six(b"sixmagic", 59)))], b"sixmagic"),
    "source route": ([ether(IP4, packet("8.8.4.4", UDP, datagram("8.8.4.4", 9999, b"routed"),
                                        options=b"\x83\x07\x04" + ip(HOST) + b"\0"))], b"routed"),
    "IPv6 question to all": ([ether(IP6, six(struct.pack(">HHHH", SPORT, 53, 8 + 35, 0) + names.question("framesix.wild.test"), UDP),
                                    to=bytes.fromhex("333300000001"))], b"framesix"),
    "IPv6 echo to all": ([ether(IP6, six(b"\x80\0\0\0HC\0\1sixecho!", 58), to=bytes.fromhex("333300000001"))], b"sixecho!"),
    "DHCP": ([ether(IP4, packet("255.255.255.255", UDP, datagram("255.255.255.255", 67, b"\1\1\6\0dhcpmagi" + bytes(228),
                                                                 "0.0.0.0", 68), "0.0.0.0"), to=ALL)], b"dhcpmagi"),
    "ARP: I am the host": ([arp(2, OWN_MAC, HOST, ALL, HOST, ALL), arp(1, OWN_MAC, HOST, bytes(6), OWN, ALL)], b"no answer is due"),
    "ARP: the guest is elsewhere": ([arp(2, OTHER_MAC, OWN, HOST_MAC, HOST, HOST_MAC)], b"no answer is due"),
    "ARP: who is everybody": ([arp(1, OWN_MAC, OWN, bytes(6), "8.8.4.4", ALL)], struct.pack(">H", 2) + HOST_MAC + ip("8.8.4.4")),
    **{f"neighbour: {title}": (sent, b"77.77.77.77") for title, sent in {
        "datagram, its hardware": [ether(IP4, to_near(to), OTHER_MAC) for to in NEIGHBOURS],
        "datagram, our hardware": [ether(IP4, to_near(to), OWN_MAC) for to in (*NEIGHBOURS, OWN)],  # all guests have the same
        "datagram to all": [ether(IP4, to_near(to), ALL) for to in (*NEIGHBOURS, OWN)],
        "datagram to the host's hardware": [ether(IP4, to_near(to)) for to in NEIGHBOURS],
        "datagram as from the host": [ether(IP4, to_near(to, HOST), OWN_MAC, HOST_MAC) for to in (*NEIGHBOURS, OWN)],
        "connection, its hardware": [ether(IP4, packet(to, TCP, syn(to, 7070, OWN, 48433)), OTHER_MAC) for to in NEIGHBOURS],
        "connection to all": [ether(IP4, packet(to, TCP, syn(to, 7070, OWN, 48434)), ALL) for to in (*NEIGHBOURS, OWN)],
        "connection as from the host": [ether(IP4, packet(OWN, TCP, syn(OWN, 7070, HOST, 48435), HOST), to, HOST_MAC)
                                        for to in (OWN_MAC, ALL)],
        "ARP, who are you": [arp(1, OWN_MAC, OWN, bytes(6), to, ALL) for to in (*NEIGHBOURS, OWN)],
        "ARP, I am you": [arp(2, OWN_MAC, to, ALL, to, ALL) for to in NEIGHBOURS],
        "ARP, I am your host": [arp(2, OWN_MAC, HOST, to, OWN, to) for to in (OWN_MAC, ALL)],
        "with a VLAN": [ether(VLAN, struct.pack(">HH", 7, IP4) + to_near(to), ALL) for to in NEIGHBOURS],
        "of an unknown kind": [ether(0x88b5, b"hello, neighbours" * 4, to) for to in (ALL, OWN_MAC, OTHER_MAC)],
        "IPv6 to all": [ether(IP6, six(b"\x80\0\0\0HC\0\1hello", 58), bytes.fromhex("333300000001"))],
    }.items()},
    "broadcast": ([ether(IP4, packet("255.255.255.255", UDP, datagram("255.255.255.255", 9999, b"to all")), to=ALL)], b"9999to all"),
}


def send(how, wait):
    """Sends one of them; returns what came back and should not have."""
    sent, mark = FRAMES[how]
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as s:
        s.bind((LINK, 0))
        for text in sent:
            s.send(text)
        end = time.monotonic() + wait
        while (left := end - time.monotonic()) > 0:
            s.settimeout(left)
            data, address = s.recvfrom(4096)
            if address[2] != socket.PACKET_OUTGOING and re.search(re.escape(mark), data):
                return f"answered: {how}"
    return None
