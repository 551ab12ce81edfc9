"""playwright_drives.py - run by the Python that has Playwright: drives a browser over CDP as a user's program does.

    playwright_drives.py ENDPOINT HEADERS_JSON SITE PICTURE [PAGES]

A page, a script in it, a form field, a picture; so many tabs at once. Prints JSON.
"""

import json
import sys

from playwright.sync_api import sync_playwright

SECONDS = 60


def main(endpoint, headers, site, picture, pages="1"):
    with sync_playwright() as p:
        browser = p.chromium.connect_over_cdp(endpoint, headers=json.loads(headers), timeout=SECONDS * 1000)
        context = browser.contexts[0]
        tabs = [context.new_page() for _ in range(int(pages))]
        for tab in tabs:
            tab.set_default_timeout(SECONDS * 1000)
            tab.goto(site)
        tab = tabs[0]
        tab.evaluate("document.body.insertAdjacentHTML('beforeend', '<input id=name>')")
        tab.fill("#name", "written by Playwright")
        size = len(tab.screenshot(path=picture))
        print(json.dumps({"browser": browser.version, "title": tab.inner_text("h1"), "sum": tab.evaluate("6 * 7"),
                          "field": tab.input_value("#name"), "picture": size, "tabs": len(context.pages)}))
        for tab in tabs:
            tab.close()
        browser.close()


main(*sys.argv[1:])
