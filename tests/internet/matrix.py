"""matrix.py - what a guest tries, and what must become of it under RULES. The kinds are those of probes.py.

MUST_PASS says who must answer. What is in MUST_FAIL must be answered by nobody, and nobody may hear of it: strangers()
finds in what the internet heard whatever RULES does not explain.
"""

import frames
import neighbour
from names import (AAAA, ALL_INSIDE, ANY, BEHIND, EVIL, GOOD, HTTPS, INSIDE, METADATA, MOVED, NULL, OTHER, PROXY,
                   PROXY_PORT, RANGE, SERVICE, SRV, TXT)
from probes import REFUSALS

NAMES = ("good.test", "flip.test", "inside.test", "meta.test", "loop.test", "host.test", "mixed.test")
RULES = {"allowOut": [*NAMES, "*.wild.test", "45.33.32.0/24"], "denyOut": ["0.0.0.0/0"]}
DOOR = "169.254.77.1"
PG = ("\0\0\0\x08\x04\xd2\x16\x2f", "\0\0\0\x08\0\3\0\0")  # may I have TLS; then: I begin


def get(host, path="/", more=""):
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"


def to_good(port):
    return f"{GOOD}:{port}"


def curl(*words):
    return ["command", {"words": ["curl", "-sS", "--max-time", "20", "--noproxy", "*", *words]}]


UPGRADE = "Connection: upgrade\r\nUpgrade: websocket\r\n"

# title: (who answers, kind, arguments)
MUST_PASS = {
    "HTTP by name": (to_good(80), "http", {"to": "good.test"}),
    "HTTP at another port": (to_good(8080), "http", {"to": "good.test", "port": 8080, "host": "good.test:8080"}),
    "HTTP, name in capitals": (to_good(80), "http", {"to": "GOOD.test", "host": "Good.TEST"}),
    "HTTP, name with its last dot": (to_good(80), "http", {"to": "good.test.", "host": "good.test."}),
    "HTTP, two requests": (to_good(80), "say", {"to": "good.test", "port": 80, "parts": [get("good.test") * 2], "need": 2}),
    "HTTP, a body and another request": (to_good(80), "say", {"to": "good.test", "port": 80, "need": 2, "parts": [
        get("good.test", more="Content-Length: 5\r\n") + "hello" + get("good.test")]}),
    "HTTP, the client has said all": (to_good(80), "http", {"to": "good.test", "close": True}),
    "HTTP, 1 MiB unchanged": (to_good(80), "large", {"to": "good.test"}),
    "HTTP below a wildcard": (f"{OTHER}:80", "http", {"to": "a.wild.test"}),
    "HTTP far below a wildcard": (f"{OTHER}:80", "http", {"to": "a.b.c.wild.test"}),
    "HTTP for an allowed name at a foreign address": (to_good(80), "http", {"to": EVIL, "host": "good.test"}),
    "HTTP for an allowed name at a metadata address": (to_good(80), "http", {"to": METADATA, "host": "good.test"}),
    "HTTP to an allowed range": (f"{RANGE}:80", "http", {"to": RANGE}),
    "HTTP to an allowed range, any name": (f"{RANGE}:80", "http", {"to": RANGE, "host": "any.example"}),
    "HTTP, a name with one address inside": (to_good(80), "http", {"to": "mixed.test"}),
    "HTTP, redirected to an allowed name": (f"{OTHER}:80", "follow", {
        "url": "http://good.test/redirect?http://a.wild.test/"}),
    "TLS by name": (to_good(443), "tls", {"to": "good.test", "sni": "good.test"}),
    "TLS, name in capitals": (to_good(443), "tls", {"to": "good.test", "sni": "GOOD.test"}),
    "TLS below a wildcard": (f"{OTHER}:443", "tls", {"to": "b.wild.test", "sni": "b.wild.test"}),
    "TLS at another port": (to_good(8443), "tls", {"to": "good.test", "port": 8443, "sni": "good.test"}),
    "TLS, greeting in pieces": (to_good(443), "tls", {"to": "good.test", "sni": "good.test", "pieces": 7}),
    "TLS, greeting in many records": (to_good(443), "odd_hello", {"to": GOOD, "port": 443, "sni": "good.test", "how": "records"}),
    "TLS for an allowed name at a foreign address": (to_good(443), "tls", {"to": EVIL, "sni": "good.test"}),
    "TLS without a name to an allowed range": (f"{RANGE}:443", "tls", {"to": RANGE}),
    "TLS without a name to an allowed name's address": (to_good(443), "tls", {"to": "good.test"}),
    "TLS, slow to greet": (to_good(443), "tls", {"to": "good.test", "sni": "good.test", "quiet": 0.7}),
    "HTTP, slow to ask": (to_good(80), "http", {"to": "good.test", "quiet": 0.7}),
    "curl, HTTPS": (to_good(443), *curl("-k", "https://good.test/")),
    "WebSocket": (to_good(80), "websocket", {"to": "good.test"}),
    "WebSocket over TLS": (to_good(443), "websocket", {"to": "good.test", "port": 443, "tls": "good.test"}),
    "SSH to an allowed name": (to_good(22), "say", {"to": "good.test", "port": 22}),
    "SSH, the client first": (to_good(22), "say", {"to": "good.test", "port": 22, "parts": ["SSH-2.0-probe\r\n"]}),
    "SMTP to an allowed name": (to_good(25), "say", {"to": "good.test", "port": 25, "parts": ["", "EHLO me\r\n"]}),
    "PostgreSQL to an allowed name": (to_good(5432), "say", {"to": "good.test", "port": 5432, "parts": PG, "gap": 0.1}),
    "a protocol of its own to an allowed range": (f"{RANGE}:7", "say", {"to": RANGE, "port": 7, "parts": ["\1\2\3"]}),
    "frame: plain question": ("answered: plain question", "frame", {"how": "plain question"}),
    "resolver: an allowed name": (GOOD, "resolve", {"name": "good.test"}),
    "resolver: any server's address": (GOOD, "dns", {"server": "8.8.8.8", "name": "good.test"}),
    "resolver: one address of two": (GOOD, "dns", {"server": DOOR, "name": "mixed.test"}),
    "resolver: AAAA, there is none": ("nodata", "dns", {"server": DOOR, "name": "good.test", "kind": AAAA}),
}

SERVICES_PASS = {
    "service by its name": (f"{SERVICE}:5432", "say", {"to": "db.hotcell.internal", "port": 5432, "parts": PG, "gap": 0.1}),
    "service, the resolver": (SERVICE, "dns", {"server": DOOR, "name": "db.hotcell.internal"}),
}
SERVICES_FAIL = {
    "service of others": ("say", {"to": "cache.hotcell.internal", "port": 6379, "parts": ["PING\r\n"]}),
    "service of others, by address": ("say", {"to": "10.1.2.4", "port": 6379, "parts": ["PING\r\n"]}),
    "service, another port": ("say", {"to": SERVICE, "port": 22}),
    "service, another port by name": ("http", {"to": "db.hotcell.internal"}),
    "service, its neighbour": ("say", {"to": "10.1.2.5", "port": 5432, "parts": PG, "gap": 0.1}),
}

ADDRESSES = {
    "raw address": EVIL, "decimal": "134743044", "octal": "010.010.04.04", "hexadecimal": "0x08080404",
    "short form": "8.8.1028", "mapped IPv6": f"::ffff:{EVIL}", "mapped IPv6, hexadecimal": "::ffff:808:404",
    "IPv6": "2606:4700:4700::1111", "IPv6 by NAT64": "64:ff9b::808:404", "IPv6 of the host": "fe80::48:43ff:fe00:1%eth0",
    "IPv6, 6to4": "2002:808:404::1", "metadata, decimal": "2852039166", "metadata, hexadecimal": "0xa9fea9fe",
    "metadata, mapped IPv6": f"::ffff:{METADATA}", "metadata, IPv6": "fd00:ec2::254", "nobody": "0.0.0.0",
    "multicast": "224.0.0.1", "all": "255.255.255.255", "reserved": "240.0.0.1", "the door's address": DOOR,
    "a neighbour": "169.254.77.6", "Docker's": "172.17.0.1", "shared": "100.64.0.1",
}

MUST_FAIL = {
    **{f"HTTP to {title} ({to})": ("http", {"to": to}) for title, to in ADDRESSES.items()},
    **{f"HTTP inside, {to}": ("http", {"to": to}) for to in ALL_INSIDE if to != "127.0.0.1"},
    **{f"TLS without a name to {title}": ("tls", {"to": to})
       for title, to in (("a raw address", EVIL), ("metadata", METADATA), ("inside", INSIDE))},
    # foreign names
    "HTTP by a foreign name": ("http", {"to": "evil.test"}),
    "HTTP for a foreign name at its address": ("http", {"to": EVIL, "host": "evil.test"}),
    "HTTP for a foreign name at an allowed address": ("http", {"to": GOOD, "host": "evil.test"}),
    "HTTP for a neighbour of an allowed name": ("http", {"to": GOOD, "host": "shared.test"}),
    "HTTP below an allowed name": ("http", {"to": GOOD, "host": "x.good.test"}),
    "HTTP for a wildcard's own name": ("http", {"to": OTHER, "host": "wild.test"}),
    "HTTP for a name that begins like one": ("http", {"to": GOOD, "host": "good.test.evil.test"}),
    "HTTP for a name that ends like one": ("http", {"to": GOOD, "host": "notgood.test"}),
    "TLS for a foreign name at its address": ("tls", {"to": EVIL, "sni": "evil.test"}),
    "TLS for a foreign name at an allowed address": ("tls", {"to": GOOD, "sni": "evil.test"}),
    "TLS for a neighbour of an allowed name": ("tls", {"to": GOOD, "sni": "shared.test"}),
    "TLS, a foreign name in many records": ("odd_hello", {"to": GOOD, "port": 443, "sni": "shared.test", "how": "records"}),
    "TLS, a foreign name in pieces": ("tls", {"to": GOOD, "sni": "shared.test", "pieces": 9}),
    "TLS, an encrypted greeting (ECH)": ("odd_hello", {"to": "good.test", "port": 443, "sni": "good.test", "how": "ech"}),
    "curl, another address for an allowed name": curl("-k", "--resolve", f"shared.test:443:{GOOD}", "https://shared.test/"),
    "curl, connected elsewhere": curl("-k", "--connect-to", f"::{EVIL}:443", "https://evil.test/"),
    # names that lead inside
    **{f"HTTP by {name}, which leads inside": ("http", {"to": to, "host": name}) for name, to in (
        ("inside.test", INSIDE), ("meta.test", METADATA), ("host.test", DOOR), ("loop.test", GOOD))},
    "TLS by a name that leads inside": ("tls", {"to": INSIDE, "sni": "inside.test"}),
    "HTTP by the metadata service's name": ("http", {"to": METADATA, "host": "metadata.google.internal"}),
    "resolver: a name that leads inside": ("resolve", {"name": "inside.test"}),
    "rebinding, the first address": ("http", {"to": MOVED, "host": "inside.test"}),
    # fronting: an allowed first word, then somebody else
    "pipelined behind an allowed request": ("say", {
        "to": GOOD, "port": 80, "parts": [get("good.test") + get("shared.test")], "need": 2}),
    "later on the same connection": ("say", {
        "to": GOOD, "port": 80, "parts": [get("good.test"), get("shared.test")], "need": 2}),
    "pipelined behind a body": ("say", {"to": GOOD, "port": 80, "need": 2, "parts": [
        get("good.test", more="Content-Length: 5\r\n") + "hello" + get("shared.test")]}),
    "smuggled behind two lengths": ("say", {"to": GOOD, "port": 80, "need": 2, "parts": [
        get("good.test", more="Content-Length: 60\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n" + get("shared.test")]}),
    "smuggled behind an odd encoding": ("say", {"to": GOOD, "port": 80, "need": 2, "parts": [
        get("good.test", more="Content-Length: 5\r\nTransfer-Encoding : chunked\r\n") + "0\r\n\r\n" + get("shared.test")]}),
    "a request with two hosts": ("say", {"to": GOOD, "port": 80, "parts": [get("good.test", more="Host: shared.test\r\n")]}),
    "a host on a folded line": ("say", {"to": GOOD, "port": 80, "parts": ["GET / HTTP/1.1\r\nHost:\r\n shared.test\r\n\r\n"]}),
    "another host in the target": ("say", {"to": GOOD, "port": 80, "parts": [get("good.test", "http://shared.test/")]}),
    "another host in a later target": ("say", {"to": GOOD, "port": 80, "need": 2, "parts": [
        get("good.test") + get("good.test", "http://shared.test/")]}),
    "a request behind an upgrade that is not agreed": ("say", {"to": GOOD, "port": 80, "need": 2, "parts": [
        get("good.test", more=UPGRADE) + get("shared.test")]}),
    "an upgrade behind another request": ("say", {"to": GOOD, "port": 80, "need": 2, "parts": [
        get("good.test") + get("shared.test", "/ws", UPGRADE)]}),
    "HTTP after an empty line": ("say", {"to": GOOD, "port": 80, "parts": ["\r\n" + get("shared.test")]}),
    "HTTP with bare line ends": ("say", {"to": GOOD, "port": 80, "parts": ["GET / HTTP/1.1\nHost: shared.test\n\n"]}),
    "HTTP with two spaces": ("say", {"to": GOOD, "port": 80, "parts": ["GET  /  HTTP/1.1\r\nHost: shared.test\r\n\r\n"]}),
    "HTTP with a tab": ("say", {"to": GOOD, "port": 80, "parts": ["GET\t/\tHTTP/1.1\r\nHost: shared.test\r\n\r\n"]}),
    "HTTP with an odd method": ("say", {"to": GOOD, "port": 80, "parts": ["G3T! / HTTP/1.1\r\nHost: shared.test\r\n\r\n"]}),
    "HTTP/1.0 without a host": ("say", {"to": EVIL, "port": 80, "parts": ["GET / HTTP/1.0\r\n\r\n"]}),
    "HTTP/2 in the clear": ("say", {"to": GOOD, "port": 80, "parts": ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + get("shared.test")]}),
    "silent at first, then HTTP for another": ("http", {"to": GOOD, "host": "shared.test", "quiet": 0.7}),
    "silent at first, then TLS for another": ("tls", {"to": GOOD, "sni": "shared.test", "quiet": 0.7}),
    "silent at first, then pipelined": ("say", {"to": GOOD, "port": 80, "need": 2, "parts": [
        "", get("good.test") + get("shared.test")]}),
    "silent at first, then hidden (ECH)": ("say", {"to": GOOD, "port": 443, "parts": ["", "\x15\3\1\0\2\1\x5a"]}),
    "TLS for another behind an alert": ("odd_hello", {"to": GOOD, "port": 443, "sni": "shared.test", "how": "alert"}),
    "TLS for another behind a cipher change": ("odd_hello", {"to": GOOD, "port": 443, "sni": "shared.test", "how": "cipher"}),
    # proxies, redirects
    "a proxy at an allowed name": ("say", {"to": "good.test", "port": 3128, "parts": [
        "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n"]}),
    "a proxy, target and host disagree": ("say", {"to": "good.test", "port": 3128, "parts": [
        "CONNECT evil.test:443 HTTP/1.1\r\nHost: good.test\r\n\r\n"]}),
    "a proxy elsewhere": ("command", {"words": ["curl", "-sS", "--max-time", "20", "-x", f"http://{EVIL}:3128", "http://good.test.evil.test/"]}),
    "redirected to a foreign name": ("follow", {"url": "http://good.test/redirect?http://evil.test/"}),
    "redirected inside": ("follow", {"url": f"http://good.test/redirect?http://{METADATA}/"}),
    # names, and what can be carried in them
    **{f"resolver: {title}": ("dns", {"server": DOOR, **how}) for title, how in {
        "a foreign name": {"name": "evil.test"}, "a long name": {"name": ".".join(["x" * 60] * 3) + ".evil.test"},
        "TXT of a foreign name": {"name": "t.evil.test", "kind": TXT}, "TXT of an allowed name": {"name": "good.test", "kind": TXT},
        "NULL of an allowed name": {"name": "good.test", "kind": NULL}, "ANY of an allowed name": {"name": "good.test", "kind": ANY},
        "SRV": {"name": "_x._tcp.good.test", "kind": SRV}, "HTTPS, the key of ECH": {"name": "good.test", "kind": HTTPS},
        "data below an allowed name": {"name": "c2VjcmV0.good.test"}, "AAAA of a foreign name": {"name": "evil.test", "kind": AAAA},
    }.items()},
    "resolver elsewhere": ("dns", {"server": "8.8.8.8", "name": "evil.test"}),
    "resolver elsewhere, port 5353": ("dns", {"server": "8.8.8.8", "name": "good.test", "port": 5353}),
    "resolver elsewhere, TCP": ("dns_tcp", {"server": "8.8.8.8", "name": "evil.test"}),
    "resolver elsewhere, TLS (853)": ("tls", {"to": "8.8.8.8", "port": 853, "sni": "dns.evil.test"}),
    "resolver elsewhere, TLS without a name": ("tls", {"to": "8.8.8.8", "port": 853}),
    "resolver elsewhere, HTTPS (DoH)": ("tls", {"to": "8.8.8.8", "sni": "dns.evil.test"}),
    "resolver elsewhere, HTTPS by address": ("tls", {"to": "8.8.8.8", "host": "8.8.8.8"}),
    "resolver elsewhere, IPv6": ("dns", {"server": "2001:4860:4860::8888", "name": "good.test"}),
    # other protocols
    "SSH elsewhere": ("say", {"to": EVIL, "port": 22}), "SMTP elsewhere": ("say", {"to": EVIL, "port": 25}),
    "PostgreSQL elsewhere": ("say", {"to": EVIL, "port": 5432, "parts": PG, "gap": 0.1}),
    "a protocol of its own elsewhere": ("say", {"to": EVIL, "port": 7, "parts": ["\1\2\3"]}),
    **{f"UDP {port} to {title}": ("udp", {"to": to, "port": port}) for title, to, port in (
        ("an allowed name's address (QUIC)", GOOD, 443), ("an allowed range", RANGE, 9999), ("elsewhere", EVIL, 9999),
        ("a time server", EVIL, 123), ("a tunnel", EVIL, 4789), ("all in the link", "224.0.0.251", 5353))},
    **{f"ping of {title}": ("ping", {"to": to}) for title, to in (
        ("the door", DOOR), ("an allowed address", GOOD), ("elsewhere", EVIL), ("metadata", METADATA))},
    **{f"frame: {how}": ("frame", {"how": how}) for how in (
        "source of somebody else", "source of the host", "source of a neighbour", "source loopback", "connection from elsewhere",
        "to a neighbour's hardware", "with a VLAN", "in another packet", "GRE", "SCTP", "ESP", "IPv6 in IPv4", "source route",
        "IPv6 question to all", "IPv6 echo to all", "DHCP", "ARP: I am the host", "ARP: the guest is elsewhere",
        "ARP: who is everybody", "broadcast")},
}

# Of a guest beside ours, which has these addresses, RANGE of the internet, too, and listens (neighbour.py).
NEAR = neighbour.PORT
NEIGHBOUR_FAIL = {
    **{f"{kind} {NEAR} to {to}": (kind, {"to": to, "port": NEAR})
       for to in (neighbour.NEAR, neighbour.FAR, neighbour.SIX, frames.OWN, DOOR) for kind in ("http", "tls", "say", "udp")},
    **{f"ping of {to}": ("ping", {"to": to}) for to in (neighbour.NEAR, neighbour.FAR, neighbour.BOUGHT)},
    f"UDP {NEAR} to an address it shares with the internet": ("udp", {"to": neighbour.BOUGHT, "port": NEAR}),
    **{f"HTTP to {to}": ("http", {"to": to}) for to in (neighbour.NEAR, neighbour.FAR)},
    **{f"as a resolver, {to}": ("dns", {"server": to, "name": "evil.test"}) for to in (neighbour.NEAR, neighbour.FAR)},
    "put on the link by hand": ("command", {"words": ["sh", "-c", f"""
        ip address add 169.254.77.9/29 dev {frames.LINK}
        ip neighbour replace {neighbour.LINKED} lladdr 02:48:43:00:00:02 dev {frames.LINK} nud permanent
        ip route replace {neighbour.LINKED}/32 dev {frames.LINK} src 169.254.77.9
        curl -sS --max-time 5 --noproxy '*' http://{neighbour.LINKED}:{NEAR}/"""]}),
    **{f"frame: {how}": ("frame", {"how": how}) for how in frames.FRAMES if how.startswith("neighbour: ")},
}


SHARED = {title: MUST_PASS[title] for title in ("HTTP to an allowed range", "TLS without a name to an allowed range")}


def by_gateway(gateways, box):
    """The same neighbour as those see it who come from outside: through Hotcell's own gateway."""
    name, named = f"{NEAR}-{box}.localhost", f"E2b-Sandbox-Id: {box}\r\nE2b-Sandbox-Port: {NEAR}\r\n"
    return {f"{title} at {to}:{port}": ("http", {"to": to, "port": port, **how}) for to, port in gateways
            for title, how in (("by host", {"host": name}), ("by headers", {"more": named}))} | {
        "by host, at an allowed address": ("http", {"to": GOOD, "host": name}),
        "its name": ("dns", {"server": DOOR, "name": name})}


# With a proxy of the operator's, which leads wherever it is asked to: the same, and it itself is nobody's to ask.
PROXY_FAIL = {
    **MUST_FAIL,
    **{f"the proxy itself, {title}": ("say", {"to": PROXY, "port": PROXY_PORT, "parts": [text]}) for title, text in (
        ("a foreign name", "CONNECT evil.test:80 HTTP/1.1\r\nHost: evil.test:80\r\n\r\n" + get("evil.test")),
        ("an allowed one", "CONNECT good.test:80 HTTP/1.1\r\nHost: good.test:80\r\n\r\n" + get("good.test")))},
}
# With one that resolves names: it is told them, and addresses stand for them.
RESOLVING_NAMES = "good.test *.wild.test 45.33.32.0/24"
RESOLVING_PASS = {title: MUST_PASS[title] for title in (
    "HTTP by name", "HTTP far below a wildcard", "HTTP for an allowed name at a metadata address", "HTTP to an allowed range",
    "TLS by name", "SSH to an allowed name", "resolver: AAAA, there is none")}
RESOLVING_FAIL = {
    **{f"HTTP inside, {to}": ("http", {"to": to}) for to in (INSIDE, METADATA)},
    "HTTP for a foreign name at an allowed address": ("http", {"to": GOOD, "host": "evil.test"}),
    "HTTP by a name that the operator does not list": ("http", {"to": GOOD, "host": "inside.test"}),
    "an allowed name's own address, SSH": ("say", {"to": GOOD, "port": 22}),
    "an address that stands for nothing": ("say", {"to": "198.19.255.254", "port": 22}),
}


def is_refusal(result):
    return result.startswith(REFUSALS)


def is_allowed(name):
    name = (name or "").lower().rsplit(":", 1)[0].rstrip(".")
    return name in NAMES or name.endswith(".wild.test")


def is_expected(h, services=()):
    """Do the rules explain that the internet heard this?"""
    if h["proto"] == "dns":
        return h["to"] == "127.0.0.1" and h["kind"] == 1 and is_allowed(h["name"]) and not (
            h["name"].startswith("frame") and not h["name"].startswith("frameplain"))
    if h["proto"] == "udp":
        return False
    if h["to"].startswith("45.33.32.") or (h["to"], h["port"]) in services:
        return True
    if h["to"] not in (GOOD, OTHER, MOVED):
        return False
    if h["proto"] == "tls":
        return not h["sni"] or is_allowed(h["sni"])
    if h["proto"] == "http":
        return is_allowed(h["host"]) and (h["target"].startswith("/") or "good.test" in h["target"])
    return True


def is_proxied(h, resolves=False):
    """Does a proxy explain it? It is asked for addresses that may be reached, or, if it resolves, for names; then nobody is
    asked for a name. Nobody else is dialled but by it."""
    host, _, port = h.get("target", "").rpartition(":")
    if (h["to"], h["port"]) == (PROXY, PROXY_PORT):
        judged = is_allowed(host) if resolves else host in (GOOD, OTHER, MOVED)
        return h["proto"] == "tcp" or (h["method"] == "CONNECT" and port.isdigit() and (
            judged or host.startswith("45.33.32.")))
    if (h["proto"] == "dns" and resolves) or h.get("peer", BEHIND) != BEHIND:
        return False
    return is_expected(h)


def strangers(heard, services=()):
    return [h for h in heard if not is_expected(h, services)]
