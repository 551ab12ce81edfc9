"""test_browser_forks.py - a login is done once, then the browser is forked: each copy is logged in, and is itself from then on.

HOTCELL_FORKS (3) is how many copies. A page that is open goes on in each of them: with its own connections, clock and cryptographic
random numbers, and with the parent's Math.random(), which is a state in the memory of the page (guest/browser/README.md).
"""

import concurrent.futures
import os
import time

from browser_support import NETWORK, SITE, Playwright, internet, server  # noqa: F401
from secret_use import heard

SECONDS = 300  # an emulated guest is slow
FORKS = int(os.environ.get("HOTCELL_FORKS", "3"))
AT_ONCE = 2

# A text that comes for as long as somebody reads it: a connection that is in use.
LISTEN = """() => {
    window.ticks = 0, window.ended = null
    fetch('/ticks').then(async answer => {
        const reader = answer.body.getReader()
        while (!(await reader.read()).done) ticks++
        ended = 'the end'
    }).catch(error => ended = String(error))
}"""
CHANCE = "[...crypto.getRandomValues(new Uint32Array(4))].join()"


def log_in(drive):
    drive(f"""
page.goto("{SITE}/login")
page.evaluate({LISTEN!r})
page.wait_for_function("ticks > 2")""")


def first_look(drive):
    """Of the page that was open, before it goes anywhere."""
    ended = drive("page.wait_for_function('ended'); answer = page.evaluate('ended')")
    early, late, chance = drive(f"""
import time
before = time.time()
now, chance = page.evaluate("() => [Date.now() / 1000, {CHANCE}]")
answer = [before - now, now - time.time(), chance]""")
    assert max(early, late) < 1, "its clock is another's"
    return ended, chance


def visit(drive, who, path="/me"):
    return drive(f"page.goto('{SITE}{path}?{who}'); answer = page.title()")


def session(drive):
    return drive("answer = [c['value'] for c in context.cookies() if c['name'] == 'session']")


def own_things(server, box):
    """What a copy finds, and becomes."""
    who = box["sandboxID"]
    with Playwright(server, box) as drive:
        ended, chance = first_look(drive)
        inherited = session(drive)
        titles = [visit(drive, who), visit(drive, who)]
        drawn = drive(f"""
new = context.new_page()
new.goto("{SITE}/?{who}")
answer = new.evaluate("Math.random()")""")
        return {"who": who, "ended": ended, "chance": chance, "inherited": inherited, "titles": titles, "drawn": drawn, "session": session(drive)}


def each(do, boxes):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(do, boxes))


def test_each_copy_of_a_logged_in_browser_is_its_own(server, internet):
    box = server.create(templateID="browser", secure=True, network=NETWORK)
    with Playwright(server, box) as drive:
        log_in(drive)
        before, [login] = heard(internet), session(drive)
        begun = time.monotonic()
        answers = server.must("POST", f"/sandboxes/{box['sandboxID']}/fork", {"count": FORKS, "timeout": 3600}, seconds=SECONDS)
        copies = [a["sandbox"] for a in answers]
        print(f"{FORKS} forks of a browser in {time.monotonic() - begun:.1f} s")
        found = each(lambda b: own_things(server, b), copies)
        ticks = drive("answer = page.evaluate('[ticks, ended]')")
        asked = heard(internet)
        check_sessions(found, login)
        check_connections(found, before, asked)
        assert ticks[1] is None, "the parent lost its connection"
        parent = drive(f"page.wait_for_function('ticks > {ticks[0]}'); answer = page.evaluate('() => {CHANCE}')")
        assert len({f["chance"] for f in found} | {parent}) == FORKS + 1 and len({f["drawn"] for f in found}) == FORKS

        first, *others = copies
        with Playwright(server, first) as one:  # who logs out is the only one who is out
            assert [visit(one, "x", "/logout"), visit(one, "x")] == ["out", "out"]
        with Playwright(server, others[0]) as another:
            assert visit(another, "x") == "in"
        assert visit(drive, "parent") == "in"


def check_sessions(found, login):
    for one in found:
        assert one["inherited"] == [login] and one["titles"] == ["in", "in"], one
    assert len({one["session"][0] for one in found} | {login}) == FORKS + 1


def check_connections(found, before, asked):
    """No connection is anybody else's; none of those from before the fork is used by a copy."""
    old, used = {one["conn"] for one in before}, {}
    for one in asked:
        used.setdefault(one["conn"], set()).add(one["target"].partition("?")[2])
    assert set(used) & old == set(), "a copy speaks by a connection of its parent"
    assert {len(who) for who in used.values()} == {1}, used
    assert {who for [who] in used.values()} == {one["who"] for one in found}
    assert all("network error" in one["ended"] for one in found), found
