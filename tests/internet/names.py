"""names.py - the names of the test's internet, and the packets of DNS: for its server and for the guest's probes."""

import struct

GOOD, OTHER, EVIL, RANGE = "93.184.216.34", "93.184.216.35", "8.8.4.4", "45.33.32.7"
INSIDE, SERVICE, METADATA = "10.0.0.1", "10.1.2.3", "169.254.169.254"
PROXY, PROXY_PORT, BEHIND = "10.9.8.7", 3129, "127.0.0.99"  # the operator's, and whom it is taken for by those it dials
MOVED = "93.184.216.40"  # where flip.test is at first
ALL_INSIDE = (INSIDE, "172.16.0.1", "192.168.1.1", "100.100.100.200", "168.63.129.16", METADATA, "127.0.0.1")

ZONE = {
    "good.test": [GOOD], "shared.test": [GOOD],  # two names of one server: only one of them is allowed
    "slow.test": [GOOD], "evil.test": [EVIL], "dns.evil.test": [EVIL],
    "mixed.test": [INSIDE, GOOD],  # one of the two leads inside
    "inside.test": [INSIDE], "meta.test": [METADATA], "loop.test": ["127.0.0.1"], "host.test": ["169.254.77.1"],
    "metadata.google.internal": [METADATA],
}
A, NULL, TXT, AAAA, SRV, HTTPS, ANY = 1, 10, 16, 28, 33, 65, 255
NOERROR, NXDOMAIN = 0, 3


def addresses(name):
    """What the internet's resolver says. Below wild.test and evil.test everything exists."""
    if name in ZONE:
        return ZONE[name]
    if name.endswith(".wild.test"):
        return [OTHER]
    return [EVIL] if name.endswith(".evil.test") else []


def question(name, kind=A, tag=0x4843):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">HHHHHH", tag, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


def read_question(data):
    """name, kind, and the bytes that are asked."""
    at, labels = 12, []
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]].decode("latin-1"))
        at += 1 + data[at]
    return ".".join(labels).lower(), struct.unpack(">H", data[at + 1:at + 3])[0], data[12:at + 5]


def answer(data, found, code=NOERROR):
    """The answer to a question: these addresses, for no longer than this instant."""
    head = data[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(found), 0, 0)
    return head + read_question(data)[2] + b"".join(
        b"\xc0\x0c" + struct.pack(">HHIH", A, 1, 0, 4) + bytes(map(int, ip.split("."))) for ip in found)


def read_answer(data):
    """code, how many records, and the addresses among them."""
    code, n = data[3] & 15, struct.unpack(">H", data[6:8])[0]
    at, found = 12 + len(read_question(data)[2]), []
    for _ in range(n):
        while data[at] and data[at] < 0xc0:
            at += 1 + data[at]
        at += 2 if data[at] >= 0xc0 else 1
        kind, _, _, size = struct.unpack(">HHIH", data[at:at + 10])
        if kind == A:
            found.append(".".join(map(str, data[at + 10:at + 14])))
        at += 10 + size
    return code, n, found
