"""test_run_sandbox.py - `hotcell run` and `hotcell exec` as people have them: a server, HTTPS under its domain, sandboxes of
code-interpreter-v1. What they do with everything that such a sandbox may say: test_cli_run.py.
"""

import os
import re
import signal
import subprocess

import pytest

from interpreter_server import interpreter_server
from warden import build_dir, wait_for

SECONDS = 240  # a create, emulated, on a busy machine

PICTURE = b"\x89PNG\r\n\x1a\n and so on"
# Without libraries: to load those that draw takes a minute of processor time, emulated.
CODE = f"""
import os
from IPython.display import Image, display
print("drawing for", os.environ["CITY"])
display(Image(data={PICTURE!r}, format="png"))
kept = 41
"""


@pytest.fixture(scope="module")
def server():
    with interpreter_server(tls="hotcell.localhost") as s:
        yield s


def started(server, folder, *words):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("E2B_", "HOTCELL_ADMIN"))}
    env = {**kept, "E2B_DOMAIN": server.domain, "E2B_API_KEY": server.key, "SSL_CERT_FILE": str(server.tls_dir / "authority/ca.pem")}
    return subprocess.Popen([build_dir() / "src/cli/hotcell", *words], env=env, cwd=folder, text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def hotcell(server, folder, *words, given=""):
    process = started(server, folder, *words)
    out, err = process.communicate(given, timeout=SECONDS)
    print(words[0], process.returncode, out, err)
    return process.returncode, out, err


@pytest.fixture(scope="module")
def ran(server, tmp_path_factory):
    """A file that ran in a sandbox that is kept: what it said, and where."""
    folder = tmp_path_factory.mktemp("ran")
    (folder / "plot.py").write_text(CODE)
    status, out, err = hotcell(server, folder, "run", "plot.py", "--keep", "--env", "CITY=Oslo", "--timeout", str(SECONDS))
    box = re.search(r"sandbox (\w+) stays", err)
    assert status == 0 and box, err
    yield folder, box[1], out, err
    assert server.delete({"sandboxID": box[1]}) == 204


def test_a_picture_becomes_a_file(ran):
    folder, _, out, err = ran
    assert out == "drawing for Oslo\n" and "wrote plot-1.png" in err
    assert (folder / "plot-1.png").read_bytes() == PICTURE


def test_state_is_kept_for_the_next_line(server, ran):
    folder, box, _, _ = ran
    assert hotcell(server, folder, "exec", box, "--lang", "python", "-", given="kept += 1\n") == (0, "", "")
    assert hotcell(server, folder, "exec", box, "kept") == (0, "42\n", "")
    status, _, err = hotcell(server, folder, "exec", box, "1 / 0")
    assert status == 1 and "ZeroDivisionError: division by zero" in err


def test_an_interrupt_ends_the_sandbox(server, ran):
    folder, box, _, _ = ran
    process = started(server, folder, "run", "--lang", "python", "-")
    process.stdin.write("print('loops', flush=True)\nwhile True: pass\n")
    process.stdin.close()
    assert process.stdout.readline() == "loops\n"
    assert len(server.ids()) == 2
    process.send_signal(signal.SIGINT)
    assert process.stderr.read() == "" and process.wait(SECONDS) == 130
    process.stdout.close()
    wait_for(lambda: [*server.ids()] == [box], "only the one that is kept", SECONDS)
