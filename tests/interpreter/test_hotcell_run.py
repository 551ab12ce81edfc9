"""`hotcell run` and `hotcell exec` with a real interpreter and real kernels. The API before it is played: a sandbox is that interpreter."""
import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import threading

import pytest

HOTCELL = pathlib.Path(os.environ["HOTCELL_BUILD"], "src/cli/hotcell")
BOX = "i1"
SECONDS = 120

PLOT = """
import sys
import matplotlib.pyplot as plt
print("drawing")
print("to standard error", file=sys.stderr)
plt.plot([1, 2, 3], [4, 5, 6])
plt.title("A line")
plt.show()
6 * 7
"""


class Api(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self):
        self.server.asked.append(f"{self.command} {self.path}")
        data = json.dumps({"sandboxID": BOX}).encode()
        self.send_response(204 if self.command == "DELETE" else 201)
        if self.command != "DELETE":
            self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "DELETE":
            self.wfile.write(data)

    do_POST = do_DELETE = answer


@pytest.fixture
def api():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def hotcell(api, interp, tmp_path):
    def start(*words, program=None):
        env = {**os.environ, "PATH": f"{HOTCELL.parent}:{os.environ['PATH']}", "E2B_API_KEY": "e2b_a1", "E2B_API_URL": f"http://127.0.0.1:{api.server_port}",
               "E2B_SANDBOX_URL": f"http://127.0.0.1:{interp.port}"}
        return subprocess.Popen(program or [HOTCELL, *words], env=env, cwd=tmp_path, text=True, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(*words, given=""):
        process = start(*words)
        out, err = process.communicate(given, timeout=SECONDS)
        return process.returncode, out, err

    run.start = start
    return run


def test_a_chart_becomes_files(hotcell, api, tmp_path):
    (tmp_path / "plot.py").write_text(PLOT)
    status, out, err = hotcell("run", "plot.py")
    assert (status, out) == (0, "drawing\n42\n")
    assert err == "to standard error\nhotcell: wrote plot-1.png\nhotcell: wrote plot-1.chart.json\n"
    assert (tmp_path / "plot-1.png").read_bytes().startswith(b"\x89PNG\r\n")
    chart = json.loads((tmp_path / "plot-1.chart.json").read_text())
    assert chart["type"] == "line" and chart["title"] == "A line"
    assert api.asked == ["POST /sandboxes", f"DELETE /sandboxes/{BOX}"]


def test_state_is_kept_between_calls(hotcell):
    assert hotcell("exec", BOX, "--lang", "python", "-", given="kept = 41\n") == (0, "", "")
    assert hotcell("exec", BOX, "kept + 1") == (0, "42\n", "")


def test_variables_of_a_call(hotcell):
    assert hotcell("exec", BOX, "import os; os.environ['CITY']", "--env", "CITY=Oslo") == (0, "Oslo\n", "")
    assert hotcell("exec", BOX, "os.environ.get('CITY', 'gone')") == (0, "gone\n", "")


def test_an_exception_has_its_traceback(hotcell):
    status, out, err = hotcell("exec", BOX, "print('before'); 1 / 0")
    assert (status, out) == (1, "before\n") and "ZeroDivisionError: division by zero" in err


def test_a_data_frame_is_a_table_and_a_page(hotcell, tmp_path):
    status, out, err = hotcell("exec", BOX, "import pandas; pandas.DataFrame({'a': [1, 2]})", "--out", "o")
    assert status == 0 and out.split() == ["a", "0", "1", "1", "2"], (out, err)
    assert "<table" in (tmp_path / "o/result-1.html").read_text()


def test_a_loop_is_interrupted_and_the_next_runs(hotcell):
    status, out, err = hotcell("exec", BOX, "--timeout", "2", "while True: pass")
    assert status == 1 and "not done after 2 seconds" in err
    process = hotcell.start("exec", BOX, "print('loops', flush=True)\nwhile True: pass")
    assert process.stdout.readline() == "loops\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert hotcell("exec", BOX, "1 + 1") == (0, "2\n", "")


def test_a_language_that_is_not_there(hotcell):
    status, _, err = hotcell("exec", BOX, "--lang", "cobol", "x")
    assert status == 1 and "cobol" in err and "fix: name a language" in err


def test_the_commands_of_the_page(api, interp, hotcell, tmp_path):
    """docs/run.md, A file and A line: as they are printed."""
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/run.md").read_text().partition("## A command, a terminal\n")[0]
    blocks = re.findall(r"```sh\n(.*?)```", page, re.S)
    (tmp_path / "plot.py").write_text(PLOT)
    process = hotcell.start(program=("bash", "-e", "-c", "".join(blocks).replace("SANDBOX", BOX)))
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0 and out == 2 * "drawing\n42\n" + "42\n41\n", (out, err)
    assert [p.name for p in sorted(tmp_path.glob("**/*.png"))] == ["plot-1.png", "plot-1.png"]
    assert len(blocks) == 2 and len(api.asked) == 7
