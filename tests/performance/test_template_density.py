"""test_template_density.py - many idle browsers, many idle desktops: what each costs the host, of what that is made, and how much of
its memory it makes its own while nobody asks for anything.

HOTCELL_ALIVE (4) is how many; the long suite asks for 20. In desktops the commands of the SDK's create have run.
"""

import os

from template_density import idle_sandboxes

ALIVE = int(os.environ.get("HOTCELL_ALIVE", "4"))
IDLE_SECONDS = 120
IDLE_MB_MAX = 120
WROTE_MB_MAX = {"browser": 6, "desktop": 4}  # in all that time
COMMANDS = ("Xvfb :0 -ac -screen 0 1024x768x24 -retro -dpi 96 -nolisten tcp -nolisten unix", "startxfce4")
THERE = "xdpyinfo -display :0 >/dev/null && pgrep -x xfce4-session && pgrep -x xfwm4 && pgrep -x xfdesktop"


def begin(server, box):
    """As Sandbox.create() of e2b-desktop."""
    for command in COMMANDS:
        server.run(box, f"DISPLAY=:0 setsid {command} >/dev/null 2>&1 </dev/null &")
    assert len(server.run(box, THERE).split()) == 3


def check(template, begin=None):
    charged, wrote = idle_sandboxes(template, ALIVE, IDLE_SECONDS, begin)
    assert charged <= IDLE_MB_MAX
    assert max(wrote) <= WROTE_MB_MAX[template]


def test_idle_browsers():
    check("browser")


def test_idle_desktops():
    check("desktop", begin)
