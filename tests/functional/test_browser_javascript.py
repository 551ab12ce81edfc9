"""test_browser_javascript.py - Playwright for JavaScript drives the browser of a sandbox, through the gateway: a page, a form, a picture.
Long: in CI the same is done by Playwright for Python (test_browser_template.py), which has this library in it.
"""

import json
import pathlib
import subprocess

from browser_support import NETWORK, SITE, TOKEN, endpoint, environment, internet, server  # noqa: F401
from desktop_support import Picture
from engine import artefact
from secret_use import heard

SECONDS = 900  # an emulated guest is slow
PROGRAM = """
import { chromium } from '%(library)s'
const browser = await chromium.connectOverCDP('%(endpoint)s', { headers: %(headers)s, timeout: 240_000 })
const context = browser.contexts()[0], page = context.pages()[0]
context.setDefaultTimeout(240_000)
await page.goto('%(site)s/')
const title = await page.title()
await page.screenshot({ path: '%(picture)s' })
await page.fill('#who', 'a program')
await page.click('#send')
const said = await page.innerText('#said')
console.log(JSON.stringify({ title, said }))
await browser.close()
"""


def test_a_page_a_form_and_a_picture(server, internet, tmp_path):
    box = server.create(templateID="browser", secure=True, network=NETWORK)
    driver = next(pathlib.Path(artefact("playwright")).glob("lib/python3*/site-packages/playwright/driver"))
    program, picture = tmp_path / "drive.mjs", tmp_path / "page.png"
    program.write_text(PROGRAM % {"library": driver / "package/index.mjs", "endpoint": endpoint(server, box), "site": SITE, "picture": picture,
                                  "headers": json.dumps({TOKEN: box["trafficAccessToken"]})})
    done = subprocess.run([driver / "node", program], env=environment(server), capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["title"] == "The test's site" and json.loads(said["said"].removeprefix("thank you, "))["who"] == "a program"
    assert Picture(picture.read_bytes()).colour(5, 5) == (0x1e, 0x7a, 0x46)
    assert [one["method"] for one in heard(internet)] == ["GET", "POST"]
