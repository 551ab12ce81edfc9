"""chromium.py - a headless Chromium that a test looks through, by its DevTools protocol over two pipes.

    with Chromium(folder, trusted=[ca_pem]) as browser:
        page = browser.open("https://8080-i1.hotcell.localhost:8443/")
        page.wait("document.title === 'ready'")
        page.screenshot(folder / "page.png")
        browser.downloads        # the folder that files are saved in

Its profile, its home and its store of authorities are folders of the test: nothing of the machine's is changed. Names
below `localhost` are the loopback address to Chromium, without any resolver, and so are those of `here`.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time

ANSWER_SECONDS = 60
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic",
         "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--no-default-browser-check", "--window-size=1000,700", "--remote-debugging-pipe"]


class Chromium:
    def __init__(self, base, trusted=(), here=()):
        self.base, self.trusted = base / "chromium", trusted
        self.rules = ", ".join(f"MAP {name} 127.0.0.1" for name in here)
        self.downloads = self.base / "downloads"
        self.process = self.into = self.out = None
        self.pending, self.answers, self.events, self.last = b"", {}, [], 0

    def trust(self, home):
        """The authorities that this browser believes, as a user would add them."""
        store = home / ".pki/nssdb"
        store.mkdir(parents=True)
        certutil = ["certutil", "-d", f"sql:{store}"]
        subprocess.run([*certutil, "-N", "--empty-password"], check=True)
        for n, path in enumerate(self.trusted):
            subprocess.run([*certutil, "-A", "-n", f"test {n}", "-t", "C,,", "-i", path], check=True)

    def __enter__(self):
        self.downloads.mkdir(parents=True)
        self.trust(self.base)
        (theirs_in, self.into), (self.out, theirs_out) = os.pipe(), os.pipe()

        def set_pipes():  # commands are read from 3, answers written to 4
            os.dup2(os.dup(theirs_in), 103), os.dup2(os.dup(theirs_out), 104)
            os.dup2(103, 3), os.dup2(104, 4)

        with open(self.base / "chromium.log", "wb") as log:
            self.process = subprocess.Popen(
                ["chromium", *FLAGS, f"--user-data-dir={self.base / 'profile'}", f"--host-resolver-rules={self.rules}",
                 "about:blank"],
                env={"PATH": os.environ["PATH"], "HOME": str(self.base)}, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, close_fds=False, preexec_fn=set_pipes, start_new_session=True)
        os.close(theirs_in), os.close(theirs_out)
        self.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))
        return self

    def __exit__(self, *exc):
        os.close(self.into), os.close(self.out)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()
        shutil.rmtree(self.base, ignore_errors=True)

    def read(self, seconds):
        ready, _, _ = select.select([self.out], [], [], seconds)
        data = os.read(self.out, 1 << 20) if ready else None
        if not data:
            log = (self.base / "chromium.log").read_text(errors="replace")
            raise AssertionError(f"Chromium says nothing more: {log[-3000:]}")
        *whole, self.pending = (self.pending + data).split(b"\0")
        for message in map(json.loads, whole):
            if "id" in message:
                self.answers[message["id"]] = message
            else:
                self.events.append(message)

    def ask(self, method, session=None, **params):
        self.last += 1
        os.write(self.into, json.dumps({"id": self.last, "method": method, "params": params,
                                        **({"sessionId": session} if session else {})}).encode() + b"\0")
        until = time.monotonic() + ANSWER_SECONDS
        while self.last not in self.answers:
            self.read(until - time.monotonic())
        answer = self.answers.pop(self.last)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def open(self, url):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        return Page(self, self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"], url)


class Page:
    def __init__(self, browser, session, url):
        self.browser, self.session = browser, session
        self.ask("Page.enable")
        self.failed = self.ask("Page.navigate", url=url).get("errorText")  # None: it was loaded

    def ask(self, method, **params):
        return self.browser.ask(method, self.session, **params)

    def value(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, expression, seconds=60):
        until = time.monotonic() + seconds
        while not self.value(expression):
            assert time.monotonic() < until, f"{expression} never came true; the page: {self.value('document.body.innerText')}"
            time.sleep(0.1)

    def statuses(self, end):
        """Of the answers to what was asked at addresses with that end, since Network.enable."""
        return [one["params"]["response"]["status"] for one in self.browser.events
                if one.get("sessionId") == self.session and one["method"] == "Network.responseReceived"
                and one["params"]["response"]["url"].endswith(end)]

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))
