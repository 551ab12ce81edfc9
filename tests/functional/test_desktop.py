"""test_desktop.py - the template `desktop` as people have it: the published e2b-desktop, a server, a sandbox. One for all of it, and
one of another resolution by @e2b/desktop. The first is made by the code of docs/desktop.md.

What a person sees is in meson-logs/desktop-*.png of the build folder.
"""

import re
import time

import pytest

from chromium import Chromium
from desktop_support import Desktop
from engine import TOP, artefact
from layout import build_dir
from template_server import TemplateServer
from warden import wait_for

DOMAIN = "hotcell.localhost"
SECONDS = 120
LOAD_SECONDS = 300  # noVNC is some 80 files, and a process for each in an emulated guest
BACKGROUND = (51, 87, 115)
NOTE, TYPED = "/home/user/note.txt", "Typed: 6 * 7 = 42"
FOUND = "xdotool search --onlyvisible --class mousepad || true"


@pytest.fixture(scope="module")
def server():
    with TemplateServer("desktop", tls=DOMAIN, node={"pool_each_max": 1}) as s:
        yield s


@pytest.fixture(scope="module")
def desktop(server):
    with Desktop(server, artefact("sdks")) as d:
        begun = time.monotonic()
        d.make_by(re.search(r"```python\n(.*?)```", (TOP / "docs/desktop.md").read_text(), re.S)[1])
        print(f"docs/desktop.md took {time.monotonic() - begun:.1f} s")
        yield d


def test_a_screenshot_is_a_picture_of_a_desktop(desktop):
    picture = desktop.picture_of("picture")
    assert (picture.width, picture.height) == (1024, 768)
    assert desktop("get_screen_size") == [1024, 768]
    assert picture.colour(700, 500) == BACKGROUND
    assert min(picture.colour(700, 12)) > 200         # and the panel


def test_text_was_typed_into_an_editor(desktop):
    wait_for(lambda: desktop("files.read", NOTE).rstrip("\n") == TYPED, "it is in the file", SECONDS, 0.5)
    window = desktop("commands.run", FOUND).split()[-1]
    assert NOTE in desktop("get_window_title", window).replace("~", "/home/user")
    (build_dir() / "meson-logs/desktop-editor.png").write_bytes(desktop.picture().data)
    desktop("press", ["alt", "f4"])
    wait_for(lambda: not desktop("commands.run", FOUND).strip(), "it is closed", SECONDS, 0.5)


def test_a_click_opens_a_menu(desktop):
    desktop("move_mouse", 500, 400)
    assert desktop("get_cursor_position") == [500, 400]
    before = desktop.picture()
    desktop("right_click")
    wait_for(lambda: desktop.picture().differs(before) > 10_000, "a menu is there", SECONDS, 0.2)
    desktop("press", "escape")
    wait_for(lambda: desktop.picture().differs(before) < 1_000, "it is gone", SECONDS, 0.2)


class Watching:
    """noVNC's page in a person's browser."""

    def __init__(self, browser, url):
        self.page = browser.open(url)
        assert self.page.failed is None

    def state(self):
        return self.page.value("[...document.documentElement.classList].filter(c => /^noVNC_.*ed$/.test(c)).join()")

    def status(self):
        return self.page.value("document.getElementById('noVNC_status')?.textContent ?? ''")

    def colour(self, x, y):
        return tuple(self.page.value(f"[...document.querySelector('canvas').getContext('2d').getImageData({x}, {y}, 1, 1).data].slice(0, 3)"))

    def shows(self, picture):
        """Is it what the picture has? Pictures on their way are compressed, and not to the point."""
        return self.state() == "noVNC_connected" and all(
            abs(mine - its) < 32 for x in range(20, 1000, 70) for y in (12, 40, 300, 600)
            for mine, its in zip(self.colour(x, y), picture.colour(x, y)))

    def click(self, x, y, button, kinds=("mouseMoved", "mousePressed", "mouseReleased")):
        """At a point of the desktop, wherever that is shown."""
        left, top, scale = self.page.value("(c => (r => [r.left, r.top, r.width / c.width])(c.getBoundingClientRect()))(document.querySelector('canvas'))")
        for kind in kinds:
            self.page.ask("Input.dispatchMouseEvent", type=kind, x=left + x * scale, y=top + y * scale, clickCount=1,
                          button="none" if kind == "mouseMoved" else button)


def test_a_person_watches_and_takes_over(server, desktop, tmp_path):
    """By the address that the SDK makes, over TLS, through the gateway."""
    desktop("move_mouse", 500, 300)
    plain = desktop.picture()
    key = desktop("stream.get_auth_key")
    url = desktop("stream.get_url", auth_key=key)
    assert url.startswith(f"https://6080-{desktop.id}.{server.domain}/vnc.html?")
    with Chromium(tmp_path, trusted=[server.tls_dir / "authority/ca.pem"]) as person:
        stranger = Watching(person, url.replace(key, "0" * len(key)))
        wait_for(lambda: "rejected" in stranger.status(), "a wrong password is refused", LOAD_SECONDS, 0.2)
        assert stranger.state() != "noVNC_connected" and not stranger.page.value("document.querySelector('canvas')?.width > 500")
        viewer, driver = (Watching(person, desktop("stream.get_url", auth_key=key, view_only=only)) for only in (True, False))
        for one in (viewer, driver):
            wait_for(lambda: one.shows(plain), "it is shown", LOAD_SECONDS, 0.2)
            assert one.page.value("(c => [c.width, c.height])(document.querySelector('canvas'))") == [1024, 768]
        driver.page.screenshot(build_dir() / "meson-logs/desktop-stream.png")
        viewer.click(200, 200, "right")
        driver.click(550, 350, "none", kinds=["mouseMoved"])
        wait_for(lambda: desktop("get_cursor_position") != [500, 300], "what was done later is seen", SECONDS, 0.2)
        assert all(abs(at - asked) <= 2 for at, asked in zip(desktop("get_cursor_position"), (550, 350)))
        assert desktop.picture().differs(plain) < 1_000  # the pointer, and no menu
        driver.click(600, 400, "right")
        wait_for(lambda: desktop.picture().differs(plain) > 10_000, "a menu is there", SECONDS, 0.2)
        assert all(abs(at - asked) <= 2 for at, asked in zip(desktop("get_cursor_position"), (600, 400)))  # it is scaled
        wait_for(lambda: min(viewer.colour(650, 450)) > 200, "the other sees it", SECONDS, 0.2)
        driver.page.screenshot(build_dir() / "meson-logs/desktop-menu.png")
    desktop("press", "escape")
    desktop("stream.stop")


def test_another_resolution_by_javascript(server):
    """The screen and the session of the snapshot are replaced: the same things once more, with the other package."""
    with Desktop(server, artefact("sdks"), "js") as desktop:
        begun = time.monotonic()
        desktop.make(resolution=[1280, 720], dpi=120)
        print(f"a desktop of another size in {time.monotonic() - begun:.1f} s")
        assert desktop("getScreenSize") == {"width": 1280, "height": 720}
        assert "120x120 dots" in desktop("commands.run", "xdpyinfo")
        picture = wait_for(lambda: (now := desktop.picture()).colour(700, 500) == BACKGROUND and now, "it is drawn", SECONDS, 0.5)
        assert (picture.width, picture.height) == (1280, 720)
        desktop("moveMouse", 300, 200)
        assert desktop("getCursorPosition") == {"x": 300, "y": 200}
        desktop("files.write", NOTE, "")
        desktop("open", NOTE)
        window = wait_for(lambda: desktop("commands.run", FOUND).strip(), "its window is there", SECONDS, 0.5)
        desktop("commands.run", f"xdotool windowactivate --sync {window.split()[-1]}")
        desktop("write", TYPED)
        desktop("press", ["ctrl", "s"])
        wait_for(lambda: desktop("files.read", NOTE).rstrip("\n") == TYPED, "it is in the file", SECONDS, 0.5)
