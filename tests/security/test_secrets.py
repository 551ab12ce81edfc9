"""test_secrets.py - a secret reaches the server it is for, with whatever client, and nobody else.

It is looked for where it must not be: in the guest's memory and disk, in what a pause keeps, in logs, databases and
every other file of the server, in the memory of the daemons that pass it on sealed. The same search finds it in the
one process that has it.

A server that sends back what it was sent is out of scope: rules are for hosts one trusts with the secret.
"""

import contextlib
import json
import os
import pathlib
import re
import secrets

import pytest

from guest import one, prepare
from internet import Internet
from names import GOOD, OTHER
from server import Server, wait_for

PIECE = 1 << 22
WAIT_SECONDS = 60
VALUE = "sv" + secrets.token_hex(20)
NEXT = "nx" + secrets.token_hex(20)
PLAIN = "plain-" + secrets.token_hex(8)
RULES = {"allowOut": ["good.test", "*.wild.test"], "denyOut": ["0.0.0.0/0"],
         "rules": {"good.test": [{"transform": {"headers": {"Authorization": "Bearer ${e2b.secrets.token}",
                                                            "X-Plain": PLAIN}}}]}}
REQUESTS = ("import os\nfrom pip._vendor import requests\n"
            "print(requests.get('https://good.test/requests', timeout=60).text)")
CLIENTS = {
    "curl": "curl -sS --fail --max-time 60 https://good.test/curl",
    "requests": f'python3 -c "{REQUESTS}"',
    "urllib": "python3 -c \"import urllib.request as u; print(u.urlopen('https://good.test/urllib', timeout=60).read())\"",
    "git": "timeout 60 git -c http.lowSpeedTime=60 ls-remote https://good.test/git 2>&1 | tail -1; true",
}


@pytest.fixture(scope="module")
def internet():
    with Internet() as i:
        yield i


@pytest.fixture(scope="module")
def server(internet):
    with Server(internet=internet, opener={}) as s:
        yield s


@pytest.fixture(scope="module")
def box(server):
    server.must("POST", "/secrets", {"name": "token", "value": VALUE})
    box = server.create(network=RULES)
    prepare(server, box)
    yield box
    server.delete(box)


def sent(internet, path):
    """The fields of the requests for that path which reached the server."""
    return [h["fields"] for h in internet.heard() if h["proto"] == "https" and h["target"].startswith(path)]


@pytest.mark.parametrize("client", CLIENTS)
def test_it_reaches_the_server(server, internet, box, client):
    out = server.run(box, CLIENTS[client])
    got = sent(internet, f"/{client}")
    assert got and all(f["authorization"] == f"Bearer {VALUE}" and f["x-plain"] == PLAIN for f in got), (out, got)
    assert VALUE not in out


def ask(server, box, words):
    """The status of what curl asks as told."""
    return server.run(box, f"curl -sS -o /dev/null -w '%{{http_code}}' --max-time 60 {words}")


def test_what_the_guest_says_of_its_own_is_gone(server, internet, box):
    assert ask(server, box, "-H 'Authorization: mine' -H 'authorization: too' -H 'X_Plain: mine' https://good.test/own") == "200"
    [fields] = sent(internet, "/own")
    assert fields["authorization"] == f"Bearer {VALUE}" and "mine" not in json.dumps(fields), fields


def test_nobody_else_gets_it(server, internet, box):
    assert ask(server, box, "-k https://a.wild.test/other") == "200"  # not opened
    [fields] = sent(internet, "/other")
    assert "authorization" not in fields
    assert ask(server, box, "-H 'Host: a.wild.test' https://good.test/host") in ("403", "421")
    assert ask(server, box, "http://good.test/clear") == "403"
    assert ask(server, box, f"--resolve good.test:443:{OTHER} https://good.test/moved") == "200"
    heard = internet.heard()
    assert {h["to"] for h in heard if VALUE in json.dumps(h)} == {GOOD}, heard
    assert not [h for h in heard if h.get("target") in ("/host", "/clear")], heard


def test_what_is_not_opened_passes_untouched(server, internet, box):
    """The certificate that the guest sees is the server's own; that of an opened host is the installation's."""
    server.write(box, "/home/user/theirs.pem", internet.certificate.read_bytes())
    assert ask(server, box, "--cacert /home/user/theirs.pem https://a.wild.test/") == "200"
    assert ask(server, box, "https://good.test/") == "200"
    assert one(server, box, "tls", {"to": "a.wild.test", "sni": "a.wild.test"}) == f"{OTHER}:443"


# --- the search -------------------------------------------------------------------------------------------------


def in_memory(pid, what):
    """Is it anywhere in a process's memory? Not in that of one that is gone."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/maps", encoding="ascii", errors="replace") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            at, end = (int(n, 16) for n in line.split()[0].split("-"))
            if not line.split()[1].startswith("r") or line.rstrip().endswith(("[vvar]", "[vsyscall]")):
                continue
            tail = b""
            while at < end:
                with contextlib.suppress(OSError):
                    data = os.pread(mem.fileno(), min(PIECE, end - at), at)
                    if what in tail + data:
                        return True
                    tail = data[-len(what):]
                at += PIECE
    return False


def in_file(path, what):
    with open(path, "rb", 0) as f:
        at, end = 0, os.fstat(f.fileno()).st_size
        while at < end:
            try:
                at = os.lseek(f.fileno(), at, os.SEEK_DATA)
            except OSError:  # nothing but holes
                return False
            data = os.pread(f.fileno(), PIECE + len(what), at)
            if what in data:
                return True
            at += PIECE
    return False


def files_with(folder, what):
    found = []
    for path in pathlib.Path(folder).rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and not path.is_symlink() and in_file(path, what):
                found.append(str(path))
    return found


def family(pid):
    """A process and those it forked."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid] + [other for child in children for other in family(int(child))]


def workers(server):
    return family(server.pids["opener"])[1:]


def forms(value):
    """As it is, and as text of a guest with other habits would hold it."""
    return value.encode(), value.encode("utf-16-le")


def check_no_trace(server, box, value):
    for what in forms(value):
        assert files_with(server.base, what) == []
        for name in ("egress", "node", "gateway"):  # the opener can read it whenever it likes
            assert not in_memory(server.pids[name], what), f"{name} holds it"
        if box:
            assert not in_memory(server.vm_pid(box), what), "the guest holds it"


def test_it_is_nowhere_else(server, box):
    mark = "mk" + secrets.token_hex(20)
    server.write(box, "/home/user/mark", mark.encode())
    server.run(box, "cat /home/user/mark > /dev/null; sync")
    assert in_memory(server.vm_pid(box), mark.encode()), "the search finds nothing at all"
    assert any(in_memory(pid, VALUE.encode()) for pid in workers(server)), "who has it, then?"
    assert re.search(r"e2b\.secrets\.token", json.dumps(server.must("GET", f"/sandboxes/{box['sandboxID']}")))
    assert VALUE not in server.api("GET", "/secrets").raw.decode()
    check_no_trace(server, box, VALUE)


def test_a_pause_keeps_nothing_of_it(server, internet, box):
    assert server.api("POST", f"/sandboxes/{box['sandboxID']}/pause").status == 204
    check_no_trace(server, None, VALUE)
    wait_for(lambda: not any(in_memory(pid, VALUE.encode()) for pid in workers(server)), "its worker is gone", WAIT_SECONDS, 0.1)
    server.must("POST", f"/sandboxes/{box['sandboxID']}/connect", {"timeout": 3600})
    server.run(box, CLIENTS["curl"])
    [fields] = sent(internet, "/curl")
    assert fields["authorization"] == f"Bearer {VALUE}"


def test_the_next_version_is_used_at_once(server, internet, box):
    [secret] = server.must("GET", "/secrets")
    server.must("POST", f"/secrets/{secret['secretID']}", {"value": NEXT})
    internet.heard()

    def is_new():
        server.run(box, CLIENTS["curl"] + " || true")
        return any(f["authorization"] == f"Bearer {NEXT}" for f in sent(internet, "/curl"))
    wait_for(is_new, "the new value is sent", WAIT_SECONDS, 0.2)
    check_no_trace(server, box, NEXT)
    server.restart("opener")
    wait_for(is_new, "the next opener adds it as well", WAIT_SECONDS, 0.2)
    server.restart("egress", "node")
    server.wait_up()
    wait_for(is_new, "and with the next node and egress", WAIT_SECONDS, 0.2)


def test_without_its_secret_a_request_is_refused(server, internet, box):
    [secret] = server.must("GET", "/secrets")
    assert server.api("DELETE", f"/secrets/{secret['secretID']}").status in (200, 204)
    internet.heard()
    wait_for(lambda: ask(server, box, "https://good.test/gone") == "403", "it is told so", WAIT_SECONDS, 0.2)
    internet.heard()
    assert ask(server, box, "https://good.test/gone") == "403"
    assert sent(internet, "/gone") == []
