"""test_desktop.py - the template `desktop` as people have it: the published e2b-desktop, a server, a sandbox. One for all of it."""

import time

import pytest

from desktop_support import Desktop
from engine import artefact
from template_server import TemplateServer
from warden import wait_for

SECONDS = 120
FOUND = "xdotool search --onlyvisible --class mousepad || true"


@pytest.fixture(scope="module")
def server():
    with TemplateServer("desktop", node={"pool_each_max": 1}) as s:
        yield s


@pytest.fixture(scope="module")
def desktop(server):
    with Desktop(server, artefact("sdks")) as d:
        begun = time.monotonic()
        d.make()
        print(f"a desktop in {time.monotonic() - begun:.1f} s")
        yield d


def test_a_screenshot_is_a_picture_of_a_desktop(desktop):
    picture = desktop.picture()
    assert (picture.width, picture.height) == (1024, 768)
    assert desktop("get_screen_size") == [1024, 768]
    assert picture.colour(700, 500) == (51, 87, 115)  # the background
    assert min(picture.colour(700, 12)) > 200         # and the panel


def test_a_click_opens_a_menu(desktop):
    desktop("move_mouse", 500, 400)
    assert desktop("get_cursor_position") == [500, 400]
    before = desktop.picture()
    desktop("right_click")
    wait_for(lambda: desktop.picture().differs(before) > 10_000, "a menu is there", SECONDS, 0.2)
    desktop("press", "escape")
    wait_for(lambda: desktop.picture().differs(before) < 1_000, "it is gone", SECONDS, 0.2)


def test_text_is_typed_into_an_editor(desktop):
    path = "/home/user/note.txt"
    desktop("files.write", path, "")
    desktop("open", path)
    window = wait_for(lambda: desktop("commands.run", FOUND).strip(), "its window is there", SECONDS, 0.5)
    desktop("commands.run", f"xdotool windowactivate --sync {window.split()[-1]}")
    desktop("write", "Typed: 6 * 7 = 42")
    desktop("press", ["ctrl", "s"])
    wait_for(lambda: desktop("files.read", path).rstrip("\n") == "Typed: 6 * 7 = 42", "it is in the file", SECONDS, 0.5)


def test_the_stream_wants_a_password(server, desktop):
    """What a person's browser is told by noVNC's proxy; the picture itself is looked at through the gateway elsewhere."""
    desktop("stream.start", require_auth=True)
    page = desktop("commands.run", "curl -sf http://localhost:6080/vnc.html | grep -c noVNC")
    assert int(page) > 0
    # RFB 003.008, then one kind of entry: 2, by password
    said = desktop("commands.run", "printf 'RFB 003.008\\n' | timeout 20 nc -q 2 localhost 5900 | head -c 14 | od -An -tx1 -c | head -n 1")
    assert said.split()[:14] == [*(f"{b:02x}" for b in b"RFB 003.008\n"), "01", "02"], said
    desktop("stream.stop")
