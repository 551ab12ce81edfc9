"""test_refusal_pages.py - a sandbox whose template shows refusals as pages, without a machine: what a browser in it
sees of a name that is refused, and that nobody outside hears of it.
"""

import concurrent.futures
import socket
import ssl
import time

import names
import pytest
from egress import KNOWN, LOG
from place import HOST, SECONDS, Place

STANDS_FOR = "198.18.0.0"  # every refused name: src/egress/fake_ip.h
PAGES_PER_S = 20           # src/egress/sandbox_egress.h
BROWSER = "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n"
ONLY_WILD = {"allowOut": ["*.wild.test", HOST], "denyOut": ["0.0.0.0/0"], "rules": {HOST: []}}
HEADERS = {HOST: [{"transform": {"headers": {"Authorization": "Bearer ${e2b.secrets.token}"}}}]}
REFUSED = "shop.evil.test"


@pytest.fixture(scope="module", name="world")
def fixture_world():
    with Place() as place:
        place.open()
        place.authority = place.injector.facts()["ca"]
        yield place


@pytest.fixture(name="place")
def fixture_place(world):
    world.rule({"refusalPages": True, "network": ONLY_WILD}, HEADERS)
    world.internet.heard()
    yield world


def ask(place, name, kind=names.A):
    """code, records and addresses of the answer."""
    with place.cell.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(SECONDS)
        s.sendto(names.question(name, kind), ("127.0.0.1", 53))
        return names.read_answer(s.recv(1024))


def read_answer(s):
    """All of a refusal, which ends the connection; of others the beginning."""
    data = b""
    while part := s.recv(1 << 16):
        data += part
        if b" 403 " not in data[:20]:
            break
    return data.decode()


def request(name, more=BROWSER):
    return f"GET /a?b HTTP/1.1\r\nHost: {name}\r\n{more}\r\n".encode()


def fetch(place, name, ip=STANDS_FOR, more=BROWSER, offers=("h2", "http/1.1")):
    """Over TLS; the certificate is checked as a program in the guest does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=place.authority)
    context.set_alpn_protocols(list(offers))
    with place.dial(ip, 443) as raw, context.wrap_socket(raw, server_hostname=name) as s:
        s.settimeout(SECONDS)
        s.sendall(request(name, more))
        return read_answer(s)


def get(place, name, ip=STANDS_FOR, more=BROWSER):
    with place.dial(ip, 80) as s:
        s.settimeout(SECONDS)
        s.sendall(request(name, more))
        return read_answer(s)


def is_page(answer, name, why):
    return answer.startswith("HTTP/1.1 403 ") and f"<title>Refused: {name}</title>" in answer \
        and f"<dt>Why</dt><dd>{why}</dd>" in answer and f"hotcell-why {name}" in answer


def decisions(place, name):
    return [(e["kind"], e["verdict"], e["why"]) for e in place.egress.told(LOG) if e.get("name", "") == name]


def test_a_refused_name_leads_to_a_page(place):
    why = "denyOut 0.0.0.0/0"
    before = place.egress.counts(0)
    assert ask(place, REFUSED) == (names.NOERROR, 1, [STANDS_FOR])
    assert ask(place, REFUSED, names.AAAA) == (names.NOERROR, 0, [])
    for answer in get(place, REFUSED), fetch(place, REFUSED):
        assert is_page(answer, REFUSED, why), answer
        assert f"whoever made the sandbox adds {REFUSED} to allowOut" in answer
    for answer in get(place, REFUSED, more="Accept: */*\r\n"), fetch(place, REFUSED, more=""):
        assert answer.split("\r\n\r\n")[1].startswith(f"hotcell: not allowed: {why}\nhotcell: fix: "), answer
    assert place.egress.counts(0) == (before[0] + 4, before[1] + 2)
    assert set(decisions(place, REFUSED)) == {(kind, "refused", why) for kind in ("name", "tls", "http")}
    assert not place.internet.heard()


def test_a_name_that_leads_inside_does_too(place):
    place.rule({"refusalPages": True, "network": {"rules": {HOST: []}}}, HEADERS)
    assert place.ask("inside.test") == [STANDS_FOR]
    assert is_page(fetch(place, "inside.test"), "inside.test", "the address is private")
    assert is_page(get(place, "inside.test"), "inside.test", "the address is private")


def test_what_is_allowed_is_as_ever(place):
    assert place.ask("a.wild.test") == [names.OTHER]
    assert "200 OK" in get(place, "a.wild.test", names.OTHER)
    assert place.ask(HOST) == [names.GOOD]
    assert "200 OK" in fetch(place, HOST, names.GOOD)
    assert any(place.value in str(event) for event in place.internet.heard())


def test_names_that_stay_away(place):
    """Of one label: browsers ask for such to see who answers for everything. And one that nobody has."""
    place.rule({"refusalPages": True, "network": {"rules": {HOST: []}}}, HEADERS)
    assert ask(place, "nobody.example")[1] == 0
    place.rule({"refusalPages": True, "network": ONLY_WILD}, HEADERS)
    assert ask(place, "qwertzuiop")[0] == names.NXDOMAIN
    assert ask(place, "shop.evil.test.why.hotcell.internal", names.TXT)[1] > 0


def test_other_sandboxes_are_told_that_there_is_no_such_name(place):
    place.rule({"network": ONLY_WILD}, HEADERS)
    assert ask(place, REFUSED)[0] == names.NXDOMAIN
    with pytest.raises(OSError):
        fetch(place, REFUSED)
    assert is_page(get(place, REFUSED), REFUSED, "denyOut 0.0.0.0/0")


def test_a_name_that_is_allowed_now_is_reached_by_who_remembers(place):
    assert is_page(get(place, REFUSED), REFUSED, "denyOut 0.0.0.0/0")
    place.rule({"refusalPages": True, "network": {**ONLY_WILD, "allowOut": ["*.evil.test", HOST]}}, HEADERS)
    assert "200 OK" in get(place, REFUSED, STANDS_FOR)
    assert place.ask(REFUSED) == [names.EVIL]


def test_other_protocols_are_cut_at_that_address(place):
    with place.dial(STANDS_FOR, 22) as s, pytest.raises(ConnectionResetError):
        s.settimeout(SECONDS)
        s.sendall(b"SSH-2.0-x\r\n")
        if not s.recv(100):
            raise ConnectionResetError
    assert ("tcp", "refused", "it stands for a name that is refused") in decisions(place, "")


def test_one_that_speaks_http2_alone_is_cut(place):
    with pytest.raises(OSError):
        fetch(place, REFUSED, offers=("h2",))
    assert is_page(fetch(place, REFUSED), REFUSED, "denyOut 0.0.0.0/0")


def try_fetch(place, name):
    try:
        return is_page(fetch(place, name), name, "denyOut 0.0.0.0/0")
    except OSError:
        return False


def test_many_names_are_bounded(place):
    """Nothing is kept of a name that was refused, and so many pages are made in a second; the sandbox has them again
    in the next, and what it is allowed meanwhile."""
    some = [f"n{i}.evil.test" for i in range(200)]
    assert all(place.ask(name) == [STANDS_FOR] for name in some)
    assert not [pair for pair in place.egress.told(KNOWN) if pair[1] == STANDS_FOR]
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        shown = sum(pool.map(lambda name: try_fetch(place, name), some))
    seconds = time.monotonic() - begun
    print(f"{shown} of {len(some)} refusals over TLS were pages, in {seconds:.1f} s")
    assert PAGES_PER_S <= shown <= PAGES_PER_S * (seconds + 2), (shown, seconds)
    assert "200 OK" in fetch(place, HOST, names.GOOD)
    end = time.monotonic() + SECONDS
    while not try_fetch(place, REFUSED):
        assert time.monotonic() < end
    assert len(place.injector.processes()[1]) == 1
