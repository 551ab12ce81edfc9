"""playwright_client.py - run by the Python that has Playwright: a program of a user that drives a browser over CDP, a piece at a time.

    playwright_client.py ENDPOINT HEADERS_JSON

Each line of its input is a piece of Python as JSON, which finds `browser`, `context` and `page`, and what pieces before it left; its
value is what it leaves in `answer`. It is told as a line of JSON: {"value"} or {"error"}.
"""

import json
import sys
import traceback

from playwright.sync_api import sync_playwright

SECONDS = 240  # an emulated guest is slow


def main(endpoint, headers):
    with sync_playwright() as p:
        browser = p.chromium.connect_over_cdp(endpoint, headers=json.loads(headers), timeout=SECONDS * 1000)
        context = browser.contexts[0]
        context.set_default_timeout(SECONDS * 1000)
        known = {"browser": browser, "context": context, "page": context.pages[0] if context.pages else context.new_page()}
        print(json.dumps({"value": browser.version}), flush=True)
        for line in sys.stdin:
            print(json.dumps(told(json.loads(line), known)), flush=True)


def told(code, known):
    known["answer"] = None
    try:
        exec(code, known)  # a test's own
        return {"value": known["answer"]}
    except Exception:
        return {"error": traceback.format_exc()}


main(*sys.argv[1:])
