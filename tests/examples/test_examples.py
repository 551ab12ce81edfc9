"""test_examples.py - the programs of examples/, as a user would copy and run them.

Each is copied to a folder of its own and run there, unmodified, with the published packages. It has the server's address
and key (E2B_...), those of a model that says what stands here (scripted_model.py), and loopback: whatever else it tried
to reach would be this test's own internet, which writes down who came. The answer that it prints is a number which only
the code can give that the model wanted, with the name of the sandbox that it ran in.
"""

import os
import random
import shutil
import subprocess
import time

import pytest

import shelves
from closed_network import Relay, listen
from engine import TOP, artefact
from internet import Internet
from interpreter_server import interpreter_server
from scripted_model import ANSWER, ScriptedModel
from sdk_builds import SdkClient

SECONDS = 600  # for one program, emulated, on a busy machine
INDEX = "pip.wild.test"
QUESTION = "What is the product of the two numbers?"
PIP_CONFIG = f"pip config --global set global.index-url http://{INDEX}/files/simple && pip config --global set global.trusted-host {INDEX}"


@pytest.fixture(scope="module")
def internet():
    with Internet() as i:
        yield i


@pytest.fixture(scope="module")
def server(internet):
    with interpreter_server(internet=internet, egress={"network": "allowlist", "allow": f"packages {INDEX}"}) as s:
        yield s


class Example:
    """One of them, where a user put it, with its packages."""

    def __init__(self, name, folder):
        self.packages, self.folder = artefact("example", name), folder / name
        shutil.copytree(TOP / "examples" / name, self.folder)
        if (self.folder / "package.json").exists():
            (self.folder / "node_modules").symlink_to(self.packages / "node_modules")
            newer = artefact("sdks") / "newest/js/node_modules/.bin/node"  # where the distribution's is too old
            self.command = [newer if newer.exists() else "node", "agent.mjs"]
        else:
            self.command = [self.packages / "python/bin/python", "agent.py"]

    def run(self, internet, environment):
        begun = time.monotonic()
        done = subprocess.run([*internet.inside, *self.command, QUESTION], cwd=self.folder, env=environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
        print(f"{self.folder.name}: {done.returncode} in {time.monotonic() - begun:.1f} s\n{done.stdout}\n{done.stderr}")
        return done


def environment(server, model, folder, more):
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1",
            "E2B_API_URL": server.url, "E2B_SANDBOX_URL": server.url, "E2B_API_KEY": server.key,
            "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": model.key, **more}


class Told:
    """What a program printed, what its tool gave back, in which sandboxes, and who was asked elsewhere."""

    def __init__(self, server, internet, example, pieces, more):
        self.boxes = set()
        internet.heard()
        with Relay(internet, server.port), ScriptedModel(listen(internet), pieces, self.look(server)) as model:
            done = example.run(internet, environment(server, model, example.folder, more))
        assert done.returncode == 0 and model.refused == [], (done, model.refused)
        self.out, self.results, self.heard = done.stdout, model.results, internet.heard()
        assert len(self.boxes) == 1 and server.ids() == set(), "one sandbox, and it is gone"

    def look(self, server):
        return lambda: self.boxes.update(server.ids())


@pytest.fixture
def numbers():
    return random.getrandbits(40), random.getrandbits(40)


def run(server, internet, name, folder, numbers, last, **more):
    first = "import os\nn = {} * {}\nhost = os.uname().nodename".format(*numbers)
    return Told(server, internet, Example(name, folder), [first, last], more)


def check_tool(told, numbers):
    """The first piece gives nothing; the second finds what the first left."""
    [box], product = told.boxes, numbers[0] * numbers[1]
    assert told.results == ["", f"{product} {box}\n"]
    assert f"{ANSWER}{product} {box}" in told.out and told.heard == []


def test_ai_sdk(server, internet, tmp_path, numbers):
    check_tool(run(server, internet, "ai-sdk", tmp_path, numbers, "print(n, host)"), numbers)


def test_langgraph(server, internet, tmp_path, numbers):
    check_tool(run(server, internet, "langgraph", tmp_path, numbers, "print(n, host)"), numbers)


def test_openai_agents(server, internet, tmp_path, numbers):
    check_tool(run(server, internet, "openai-agents", tmp_path, numbers, "print(n, host)",
                   OPENAI_AGENTS_DISABLE_TRACING="1"), numbers)


@pytest.fixture
def with_index(server, internet):
    """A template of the team's own, under the same name, whose pip asks an index that the operator allows."""
    shelves.put_wheel(internet.folder / "files", next((artefact("example", "smolagents") / "wheels").iterdir()))
    with SdkClient(server, artefact("sdks")) as sdk:
        built = sdk.build([["from_template", "hotcell/code-interpreter-v1"], ["run_cmd", PIP_CONFIG, {"user": "root"}]],
                          "code-interpreter-v1", cpu_count=2, memory_mb=1024)
    assert built.error is None, built.log


def test_smolagents(server, internet, tmp_path, numbers, with_index):
    """It installs a package inside the sandbox, from the index, and its own executor runs the code."""
    last = f"import humanize\nfinal_answer(f'{ANSWER}{{humanize.intcomma(n)}} {{host}}')"
    told = run(server, internet, "smolagents", tmp_path, numbers, last)
    [box] = told.boxes
    assert f"{ANSWER}{numbers[0] * numbers[1]:,} {box}" in told.out
    asked = [h["target"] for h in told.heard if h["proto"] == "http"]
    assert any(target.endswith(".whl") for target in asked), asked
    assert {h.get("host", h.get("name")) for h in told.heard if h["proto"] in ("http", "dns")} == {INDEX}
    assert not [h for h in told.heard if h["proto"] in ("https", "tls", "udp")], told.heard
