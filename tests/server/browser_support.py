"""browser_support.py - the browser of a sandbox as a user's program has it: Playwright, through the gateway.

    from browser_support import SITE, Playwright, internet, server  # noqa: F401

    with Playwright(server, box) as drive:
        drive(f"page.goto('{SITE}/'); answer = page.title()")

`server` has the template and speaks TLS. What a piece of code finds is in playwright_client.py.
"""

import json
import os
import pathlib
import queue
import subprocess
import threading

import pytest

from engine import artefact
from internet import Internet
from template_server import TemplateServer

SITE = "http://a.wild.test"  # tests/internet/site.py, as all names
NETWORK = {"allowOut": ["*.wild.test"], "denyOut": ["0.0.0.0/0"]}
DEVTOOLS = 9222
TOKEN = "E2B-Traffic-Access-Token"
ANSWER_SECONDS = 900  # an emulated guest is slow


@pytest.fixture(scope="module")
def internet():
    with Internet("site.py") as i:
        yield i


@pytest.fixture(scope="module")
def server(internet):
    with TemplateServer("browser", internet=internet, tls="hotcell.localhost", node={"pool_each_max": 1}) as s:
        yield s


def endpoint(server, box):
    return f"https://{DEVTOOLS}-{box['sandboxID']}.{server.domain}"


def environment(server):
    kept = {name: text for name, text in os.environ.items() if "proxy" not in name.lower() and not name.startswith("PYTHON")}
    return {**kept, "NODE_EXTRA_CA_CERTS": str(server.tls_dir / "authority/ca.pem"), "PYTHONDONTWRITEBYTECODE": "1"}


class Playwright:
    def __init__(self, server, box, token=None):
        """`token`: another one than the sandbox's own."""
        here = pathlib.Path(__file__).resolve().parent
        self.command = [artefact("playwright") / "bin/python", here / "playwright_client.py", endpoint(server, box),
                        json.dumps({TOKEN: box["trafficAccessToken"] if token is None else token})]
        self.env, self.said = environment(server), queue.Queue()
        self.log = pathlib.Path(server.base) / f"playwright-{id(self)}.log"

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        try:
            self.version = self.answer("it connects")
        except BaseException:
            self.__exit__()
            raise
        return self

    def read(self):
        for line in self.process.stdout:
            self.said.put(json.loads(line))
        self.said.put({"error": f"the client ended: {self.log.read_text()[-3000:]}"})

    def answer(self, question):
        try:
            said = self.said.get(timeout=ANSWER_SECONDS)
        except queue.Empty:
            self.process.kill()  # its answer would be taken for that to the next question
            raise AssertionError(f"no answer in {ANSWER_SECONDS} s: {question}") from None
        assert "error" not in said, f"{question}\n{said['error']}"
        return said["value"]

    def __call__(self, code):
        self.process.stdin.write(json.dumps(code) + "\n")
        self.process.stdin.flush()
        return self.answer(code)

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join()
        self.process.stdout.close()
