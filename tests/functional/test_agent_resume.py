"""The guest agent across a pause: what is frozen, what is kept, and who is parted from; on the host.

The machine is not paused here. The agent sees what it would see of that: a freeze, then the message that
resumes it. Processes that are to say something meanwhile are taken out of the cgroup that freezes.
"""

import base64
import http.client
import json
import os

import pytest

from test_agent import Agent, cgroup, fake_cgroup, give_identity, identity, is_frozen, wait_thawed  # noqa: F401
from test_agent_process import Attached, begin, send

TOKEN = {"X-Access-Token": "client-token"}
CONTROL = {"X-Hotcell-Control": "control-token"}


@pytest.fixture
def agent(tmp_path, cgroup):  # noqa: F811
    a = Agent(tmp_path, "--cgroup", cgroup)
    a.cgroup = cgroup
    yield a
    a.stop()


def begin_outside(agent):
    """A process that answers each line, whether it is frozen or not: its stream, its pid."""
    stream, pid = begin(agent, "while read line; do echo said $line; done", headers=TOKEN)
    with open(os.path.join(os.path.dirname(agent.cgroup), "cgroup.procs"), "w") as f:
        f.write(str(pid))
    return stream, pid


def freeze(agent, query=""):
    assert agent.ask("POST", "/control/freeze" + query, headers=CONTROL).status == 204


def resume(agent, headers=CONTROL, token="control-token", **more):
    message = {k: identity()[k] for k in ("clockOffsetNs", "entropy")}
    message.update(resume=True, controlToken=token, **more)
    return agent.ask("POST", "/control/identity", json.dumps(message), headers)


def text(stream):
    return base64.b64decode(stream.next()[1]["event"]["data"]["stdout"])


def test_what_is_said_before_a_pause_is_heard_after_it(agent):
    assert give_identity(agent).status == 200
    stream, pid = begin_outside(agent)
    assert send(agent, pid, b"one\n", headers=TOKEN).status == 200
    assert text(stream) == b"said one\n"
    freeze(agent)
    assert is_frozen(agent.cgroup)
    assert send(agent, pid, b"two\n", headers=TOKEN).status == 200  # stays in the pipe
    idle = agent.connect()
    assert agent.ask("GET", "/health", conn=idle).status == 204
    assert resume(agent).status == 200
    wait_thawed(agent.cgroup)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        text(stream)  # parted from
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        idle.request("GET", "/health")
        idle.getresponse()
    idle.close()
    again = Attached(agent, {"pid": pid}, headers=TOKEN)
    assert again.next()[1]["event"]["start"]["pid"] == pid
    assert text(again) == b"said two\n"
    assert send(agent, pid, b"three\n", headers=TOKEN).status == 200
    assert text(again) == b"said three\n"
    again.drop()


def test_in_place_nobody_is_parted_from(agent):
    assert give_identity(agent).status == 200
    stream, pid = begin_outside(agent)
    freeze(agent)
    assert send(agent, pid, b"one\n", headers=TOKEN).status == 200
    assert resume(agent, inPlace=True).status == 200
    assert text(stream) == b"said one\n"
    stream.drop()


def test_only_its_host_may_let_it_resume(agent):
    assert resume(agent, headers={}).status == 403  # it is nobody yet
    assert give_identity(agent).status == 200
    freeze(agent)
    assert resume(agent, headers={}).status == 404
    assert resume(agent, token="client-token").status == 403
    assert resume(agent, entropy="AAAA").status == 400
    assert is_frozen(agent.cgroup)
    r = resume(agent)
    assert r.status == 200 and "monotonicNs" in json.loads(r.data)
    assert agent.ask("GET", "/envs", headers=TOKEN).status == 200  # tokens are what they were
    assert json.loads(agent.ask("GET", "/envs", headers=TOKEN).data)["COLOUR"] == "blue"


def test_the_disk_is_written_back_only_if_asked_for(tmp_path):
    path = fake_cgroup(tmp_path)
    (path / "cgroup.events").write_text("populated 1\nfrozen 1\n")
    agent = Agent(tmp_path, "--cgroup", str(path))
    assert agent.ask("POST", "/control/freeze").status == 204
    assert agent.ask("POST", "/control/freeze?flush=1").status == 204
    assert give_identity(agent).status == 200
    freeze(agent)
    freeze(agent, "?flush=1")
    assert [line for line in agent.stop() if line == "effect flush"] == ["effect flush"] * 2
