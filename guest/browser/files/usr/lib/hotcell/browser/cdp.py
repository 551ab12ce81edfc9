"""cdp.py - Chromium's tabs, by its DevTools protocol, with nothing but Python itself.

    page = first_page()
    page.go("https://example.com/")
    page.value("document.title")
"""

import base64
import json
import os
import socket
import urllib.request

PORT = 9222
ANSWER_SECONDS = 120


def read(path):
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}{path}", timeout=ANSWER_SECONDS) as answer:
        return json.load(answer)


def pages():
    """Ids of tabs, the last used first."""
    return [t["id"] for t in read("/json/list") if t["type"] == "page"]


def first_page():
    return Page(pages()[0])


class Page:
    """A tab, by its WebSocket: texts of less than 64 KiB are asked, texts are answered."""

    def __init__(self, target):
        self.id, self.last, self.events = target, 0, []
        self.conn = socket.create_connection(("127.0.0.1", PORT), timeout=ANSWER_SECONDS)
        self.file = self.conn.makefile("rb")
        self.conn.sendall(f"GET /devtools/page/{target} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\nUpgrade: websocket\r\n"
                          "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                          f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n\r\n".encode())
        if b" 101 " not in self.file.readline():
            raise RuntimeError(f"there is no tab {target}")
        while self.file.readline().strip():
            pass
        self.ask("Page.enable")

    def ask(self, method, **params):
        self.last, self.events = self.last + 1, []
        text = json.dumps({"id": self.last, "method": method, "params": params}).encode()
        self.conn.sendall(b"\x81\xfe" + len(text).to_bytes(2, "big") + bytes(4) + text)  # a mask of zeros is a mask
        while (said := self.message()).get("id") != self.last:
            self.events.append(said["method"])
        if "error" in said:
            raise RuntimeError(f"{method}: {said['error']}")
        return said["result"]

    def message(self):
        length = self.file.read(2)[1]
        if length > 125:
            length = int.from_bytes(self.file.read(2 if length == 126 else 8), "big")
        return json.loads(self.file.read(length))

    def go(self, url):
        """Until it is there. What Chromium says of a page that it cannot show, or None."""
        failed = self.ask("Page.navigate", url=url).get("errorText")
        while "Page.loadEventFired" not in self.events:
            self.events.append(self.message().get("method"))
        return failed

    def value(self, expression):
        said = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in said:
            raise RuntimeError(said["exceptionDetails"])
        return said["result"].get("value")

    def open(self):
        """Another tab."""
        return Page(self.ask("Target.createTarget", url="about:blank")["targetId"])

    def close(self):
        self.ask("Page.close")
