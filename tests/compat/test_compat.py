"""test_compat.py - the published, unmodified `e2b` packages against a whole server, check by check.

Items and checks stand in items.toml. Each client is one process that knows of the server what a user would: two
addresses and a key. It runs its checks, a few at once, and says of each how it went; that is one case here.

  HOTCELL_COMPAT=all         every check with every client, newest and oldest (items.py says what is usual)
  HOTCELL_COMPAT_RESULTS=F   the results as lines of JSON, from which `tests/compat/page` writes the documentation
"""

import json
import os
import pathlib
import subprocess

import items
import page
import pytest

from engine import artefact
from internet import Internet
from server import Server

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 1500
AT_ONCE = os.environ.get("HOTCELL_COMPAT_AT_ONCE", "1")  # checks of each client
EVERYTHING = os.environ.get("HOTCELL_COMPAT") == "all"
CASES = list(items.cases(EVERYTHING))


@pytest.fixture(scope="module")
def server():
    with Internet() as internet, Server(node={"pool": 4}, internet=internet, injector={}, tls="hotcell.localhost") as s:
        yield s


def over_tls(age):
    return EVERYTHING or age == "newest"


def environment(server, age):
    """As a user's: nothing of ours but what `hotcell tls init` or `tools/dev up` print, and for the checks' own
    requests the plain address."""
    authority = str(server.tls_dir / "authority/ca.pem")
    where = ({"E2B_DOMAIN": server.domain, "SSL_CERT_FILE": authority, "NODE_EXTRA_CA_CERTS": authority} if over_tls(age)
             else {"E2B_API_URL": server.url, "E2B_SANDBOX_URL": server.url})
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("E2B_", "PYTHON")) and "proxy" not in name.lower()}
    return {**kept, **where, "E2B_API_KEY": server.key, "PLAIN_URL": server.url, "PYTHONDONTWRITEBYTECODE": "1"}


def command(sdks, age, client):
    if client != "js":
        return [sdks / age / "python/bin/python", HERE / "run.py", client]
    modules = sdks / age / "js/node_modules"
    own = modules / ".bin/node"
    return [own if own.exists() else "node", HERE / "run.mjs", modules]


def run_clients(server, sdks, age, chosen):
    """All clients of one age side by side; returns their results."""
    running = []
    for client in items.CLIENTS:
        names = [check.name for a, c, check in chosen if (a, c) == (age, client)]
        if names:
            args = [*command(sdks, age, client), items.versions()[age, client], AT_ONCE, *names]
            log = server.base / f"compat-{age}-{client}.log"
            with open(log, "wb") as errors:
                running.append((log, subprocess.Popen(args, env=environment(server, age), stdin=subprocess.DEVNULL,
                                                      stdout=subprocess.PIPE, stderr=errors, text=True)))
    found = []
    for log, process in running:
        try:
            out, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
        print(log.read_text(errors="replace")[-3000:])
        found += [{"age": age, **json.loads(line)} for line in out.splitlines() if line.startswith("{")]
    return found


@pytest.fixture(scope="module")
def results(server, request):
    """Of the cases that this run of pytest was asked for."""
    chosen = [i.callspec.params["case"] for i in request.session.items
              if i.module is request.module and hasattr(i, "callspec")]
    sdks = artefact("sdks")
    found = [r for age in items.AGES for r in run_clients(server, sdks, age, chosen)]
    if path := os.environ.get("HOTCELL_COMPAT_RESULTS"):
        pathlib.Path(path).write_text("".join(json.dumps(r) + "\n" for r in found))
    for result in sorted(found, key=lambda r: -r["seconds"])[:10]:
        print("slow:", result["age"], result["client"], result["check"], result["seconds"])
    return {(r["age"], r["client"], r["check"]): r for r in found}


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{c[1]}-{c[2].item:02}-{c[2].name}")
def test_check(case, results):
    age, client, check = case
    result = results.get((age, client, check.name))
    assert result, "the client's process ended before it came to this check"
    assert result["result"] == "pass", result["error"]


def test_http2_was_spoken_as_the_server_saw_it(server, results):
    """The packages ask for it by themselves."""
    spoken = server.admin("GET", "/admin/status").json["gateway"]["http"]
    print("requests by version:", spoken)
    assert spoken["2"]["requests"] >= sum(over_tls(age) for age, _, _ in results), spoken


def test_nothing_is_left_when_the_clients_are_done(server, results):
    assert server.ids() == set()


def test_the_page_says_what_was_found(results):
    """docs/compatibility.md has every item and check, and of those that ran here it says how they went."""
    assert page.differences(list(results.values())) == []
