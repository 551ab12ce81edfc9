"""A kernel that forges, lies, floods or falls silent harms its own context, and no other."""
import json
import pathlib
import time

import pytest

from conftest import need
from lone_interp import KERNELS, Interp, next_event

HOSTILE = pathlib.Path(__file__).resolve().parent / "hostile_kernel.py"


@pytest.fixture(scope="module")
def interp(tmp_path_factory):
    need("python")
    kernels = tmp_path_factory.mktemp("k")
    (kernels / "hostile").mkdir()
    (kernels / "hostile/kernel.json").write_text(json.dumps({
        "argv": ["/usr/bin/python3", str(HOSTILE), "{connection_file}"], "metadata": {"transport": "ipc"}}))
    made = Interp(tmp_path_factory.mktemp("h"), kernels=(KERNELS, kernels)).start()
    yield made
    assert made.stop() == 0


BREAKS = ["decent", "forge", "lie", "garble", "odd", "no reply", "no idle"]


@pytest.mark.parametrize("how", BREAKS)
def test_what_breaks_the_rules_is_left_out(interp, how):
    ran = interp.run(how, 30, language="hostile")
    assert ran.stdout.endswith("done") and "forged" not in ran.stdout and "lied" not in ran.stdout
    assert ran.error is None
    assert interp.run("1 + 1", 10).text == "2"
    assert interp.run("decent", 30, language="hostile").stdout == "done"


def test_a_silent_kernel_is_replaced_when_its_client_has_gone(interp):
    connection, answer = interp.open("silent", language="hostile")
    assert next_event(answer)["type"] == "number_of_executions"
    assert interp.run("1 + 1", 10).text == "2"
    answer.close()
    connection.close()
    assert interp.run("decent", 30, language="hostile").stdout == "done"


def test_a_flood_of_messages_delays_nobody_else(interp):
    connection, answer = interp.open("flood", 60, language="hostile")
    assert next_event(answer)["type"] == "number_of_executions"
    for _ in range(20):
        begun = time.monotonic()
        assert interp.run("1 + 1", 10).text == "2"
        assert time.monotonic() - begun < 5
    answer.close()
    connection.close()
    interp.must_have_taken(48)


def test_a_message_that_is_too_large_is_not_taken(interp):
    """The connection is cut by libzmq; what came before and comes later is there."""
    context = interp.context(language="hostile")["id"]
    ran = interp.run("large", 60, context_id=context)
    assert len(ran.stdout) < 1024
    interp.must_have_taken(400)
    interp.get(f"/contexts/{context}", "DELETE")
    assert interp.run("1 + 1", 10).text == "2"
