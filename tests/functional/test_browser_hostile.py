"""test_browser_hostile.py - pages that eat memory, open windows without end or crash: the next page works, and nobody else notices."""

import contextlib

import pytest

from browser_support import NETWORK, SITE, Playwright, internet, server  # noqa: F401
from warden import is_alive, wait_for

SECONDS = 300  # an emulated guest is slow
WINDOWS_MAX = 5  # that a click may leave open, of a hundred


@pytest.fixture(scope="module")
def box(server):
    return server.create(templateID="browser", secure=True, network=NETWORK)


def check_next_page(server, box):
    """By a new program, as a user whose program ended would have it."""
    def works():
        with contextlib.suppress(AssertionError), Playwright(server, box) as drive:
            return drive(f"new = context.new_page(); new.goto('{SITE}/'); answer = new.title(); new.close()") == "The test's site"
        return False
    wait_for(works, "the next page works", SECONDS, 1)


def test_a_renderer_that_crashes(server, box):
    with Playwright(server, box) as drive:
        title, crashes = drive(f"""
page.goto("{SITE}/")
crashes = []
page.on("crash", lambda: crashes.append(1))
try:
    page.goto("chrome://crash")
except Exception:
    pass  # that is what it is for
new = context.new_page()
new.goto("{SITE}/")
answer = [new.title(), len(crashes)]
page.close()""")
        assert (title, crashes) == ("The test's site", 1)


def test_a_thousand_windows(server, box):
    """Unasked it gets none; a click, which is a person's wish, gets it one."""
    with Playwright(server, box) as drive:
        got, after, there = drive(f"""
before = len(context.pages)
page.goto("{SITE}/hostile/windows")
page.wait_for_function("window.done == 1")
got = page.evaluate("window.got")
page.mouse.click(50, 50)
page.wait_for_function("window.done == 2")
answer = [got, page.evaluate("window.got"), len(context.pages) - before]""")
        print(f"of 1,000 windows {got} opened unasked, of 100 {after} with a click; {there} more tabs")
        assert got == 0 and 1 <= after <= WINDOWS_MAX and 1 <= there <= WINDOWS_MAX
    check_next_page(server, box)


def test_a_page_that_eats_memory(server, box):
    other = server.create(templateID="browser", secure=True, network=NETWORK)
    pids = {**server.pids, "other": server.vm_pid(other), "its own": server.vm_pid(box)}
    with Playwright(server, box) as drive:
        how = drive(f"""
try:
    with page.expect_event("crash"):
        page.goto("{SITE}/hostile/memory", wait_until="commit")
    answer = "crash"
except Exception as error:
    answer = str(error)""")
    print(f"what ate memory ended: {how}")
    assert how == "crash" or "closed" in how  # the renderer, or all of Chromium
    assert server.run(box, "echo it answers", SECONDS).strip() == "it answers"
    check_next_page(server, box)
    assert all(is_alive(pid) for pid in pids.values()) and pids["other"] == server.vm_pid(other)
    assert server.run(other, "curl -sf http://127.0.0.1:9222/json/version | grep -c Browser", SECONDS).strip() == "1"
