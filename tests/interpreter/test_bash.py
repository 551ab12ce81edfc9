"""Cells in one shell."""
import concurrent.futures

import pytest

from conftest import need
from lone_interp import Interp, next_event


@pytest.fixture(scope="module")
def bash(tmp_path_factory):
    need("python")
    need("bash")
    made = Interp(tmp_path_factory.mktemp("b"), eager=("bash",)).start()
    yield made
    assert made.stop() == 0


CELLS = [
    # cell, stdout, stderr, name and value of the error
    ("echo hello; echo oops >&2", "hello\n", "oops\n", None),
    ("cat <<E\nmulti\nE\nfor i in 1 2; do\n  echo $i\ndone", "multi\n1\n2\n", "", None),
    ("printf 'é%.0s' 1 2 3", "ééé", "", None),
    ("printf '\\xff\\n'", "\ufffd\n", "", None),
    ("cat", "", "", None),
    ("false", "", "", ("ExitStatus", "1")),
    ("(exit 7)", "", "", ("ExitStatus", "7")),
    ("no-such-command", "", "bash: no-such-command: command not found\n", ("ExitStatus", "127")),
    ("echo 'open", "", "bash: unexpected EOF while looking for matching `''\n", ("ExitStatus", "2")),
    ("sleep 0.1 & wait $!; echo waited", "waited\n", None, None),
    ("echo !! '!x'", "!! !x\n", "", None),
    ("", "", "", None),
]


@pytest.mark.parametrize("cell, stdout, stderr, error", CELLS, ids=[c[0][:30] for c in CELLS])
def test_a_cell_prints_and_may_fail(bash, cell, stdout, stderr, error):
    ran = bash.run(cell, language="bash")
    assert ran.stdout == stdout and stderr in (None, ran.stderr)
    assert error == (ran.error and (ran.error["name"], ran.error["value"]))


def test_the_shell_stays(bash):
    first = bash.run("kept=5; cd /; f() { echo in f $1; }; shopt -s extglob", language="bash")
    ran = bash.run("echo $kept $PWD; f x", language="bash")
    assert (ran.stdout, ran.count) == ("5 /\nin f x\n", first.count + 1)


def test_a_shell_that_ends_is_replaced(bash):
    assert bash.run("gone=1; exit 3", language="bash").error["name"] == "ShellExited"
    assert bash.run("echo ${gone:-new}", language="bash").stdout == "new\n"


LOOPS = ["sleep 300; echo no", "while :; do :; done", "python3 -c 'while True: pass'", "yes"]


@pytest.mark.parametrize("loop", LOOPS)
def test_who_leaves_is_not_waited_for(bash, loop):
    bash.run("kept=yes", language="bash")
    connection, answer = bash.open(loop, language="bash")
    assert next_event(answer)["type"] == "number_of_executions"
    waiting = concurrent.futures.ThreadPoolExecutor(1).submit(bash.run, "echo $kept", 30, language="bash")
    answer.close()
    connection.close()
    assert waiting.result().stdout == "yes\n"


def test_variables_of_one_execution(bash):
    value = "it's \"a\" \\ $x `y` \n€"
    assert bash.run('printf %s "$MINE"', language="bash", env_vars={"MINE": value, "no good": "x"}).stdout == value
    assert bash.run("echo ${MINE:-gone}", language="bash").stdout == "gone\n"


def test_much_output_is_whole(bash):
    assert len(bash.run("head -c 16000000 /dev/zero | tr '\\0' x", 120, language="bash").stdout) == 16_000_000
    bash.must_have_taken(48)
