"""test_cli_run.py - `hotcell run` and `hotcell exec` against a server that is played here: the API, and in its sandboxes an
interpreter that says what a test wants. That a real one says such things is what tests/interpreter and the SDKs' tests see.
"""

import contextlib
import http.server
import json
import os
import pathlib
import pty
import queue
import select
import signal
import socket
import ssl
import subprocess
import threading

import pytest

from warden import build_dir, wait_for

SECONDS = 60
BOX = "i3f9a0b1c2d4"
DOMAIN = "hotcell.localhost"
END = {"type": "end_of_execution"}
TEXT = {"type": "stdout", "text": "hello\n", "timestamp": "2026-01-02T03:04:05Z"}


class Played(http.server.ThreadingHTTPServer):
    """`script` yields what the interpreter says: events, or bytes as they are."""

    daemon_threads = True

    def __init__(self):
        self.asked, self.hosts, self.executed = [], [], []
        self.gone = threading.Event()  # a client left in the middle
        self.hold = None  # a create waits for it
        self.answers = {}
        self.script = lambda: [TEXT, END]
        self.status, self.body = 200, b""
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        """Clients that leave are what some tests are about."""

    def targets(self, method):
        return [path for m, path, _ in self.asked if m == method]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        body = json.loads(body) if body else None
        self.server.hosts.append(self.headers["host"])
        if self.path == "/execute":
            self.server.executed.append((dict(self.headers), body))
            self.execute()
            return
        self.server.asked.append((self.command, self.path, body))
        if self.path == "/sandboxes" and self.server.hold:
            assert self.server.hold.wait(SECONDS)
        status, said = 204, None
        if self.command == "POST":
            status, said = 201, {"sandboxID": BOX, "envdAccessToken": "of-the-agent", "trafficAccessToken": "of-traffic", "domain": None}
        if self.headers["x-api-key"] != "e2b_a1":
            status, said = 401, {"code": 401, "message": "no such key"}
        status, said = self.server.answers.get((self.command, self.path), (status, said))
        data = json.dumps(said).encode() if said is not None else b""
        self.send_response(status)
        if status != 204:
            self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def execute(self):
        self.send_response(self.server.status)
        if self.server.status != 200:
            self.send_header("content-length", str(len(self.server.body)))
            self.end_headers()
            self.wfile.write(self.server.body)
            return
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in self.server.script():
            if event is None:  # nothing more: until the client leaves
                select.select([self.connection], [], [], SECONDS)
                with contextlib.suppress(ConnectionError):
                    assert self.connection.recv(1) == b""
                self.server.gone.set()
                return
            if event is ConnectionError:
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            data = event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_DELETE = answer


@pytest.fixture
def server():
    with Played() as s:
        thread = threading.Thread(target=s.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield s
        s.shutdown()
        thread.join()


def env_of(server, **more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("E2B_", "SSL_"))}
    return {**kept, "E2B_API_KEY": "e2b_a1", "E2B_API_URL": server.url, "E2B_SANDBOX_URL": server.url, **more}


def command(*words):
    return [build_dir() / "src/cli/hotcell", *map(str, words)]


def hotcell(server, *words, cwd=None, given="", **env):
    return subprocess.run(command(*words), capture_output=True, text=True, cwd=cwd, env=env_of(server, **env), input=given, timeout=SECONDS)


def started(server, *words, **how):
    return subprocess.Popen(command(*words), env=env_of(server), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)


@pytest.fixture
def code(tmp_path):
    path = tmp_path / "plot.py"
    path.write_text("print('hello')\n")
    return path


# --- a sandbox --------------------------------------------------------------------------------------------------------


def test_a_file_runs_in_a_sandbox_of_its_own(server, code):
    r = hotcell(server, "run", code)
    assert (r.returncode, r.stdout, r.stderr) == (0, "hello\n", "")
    made, ended = server.asked
    assert made[:2] == ("POST", "/sandboxes") and ended == ("DELETE", f"/sandboxes/{BOX}", None)
    assert made[2]["templateID"] == "code-interpreter-v1" and made[2]["timeout"] > 300
    headers, body = server.executed[0]
    assert body == {"code": "print('hello')\n", "language": "python", "env_vars": {}}
    lower = {name.lower(): value for name, value in headers.items()}
    assert lower["e2b-sandbox-id"] == BOX and lower["e2b-sandbox-port"] == "49999"
    assert lower["x-access-token"] == "of-the-agent" and lower["e2b-traffic-access-token"] == "of-traffic"
    assert "x-api-key" not in lower


def test_a_sandbox_can_be_kept(server, code):
    r = hotcell(server, "run", code, "--keep", "--template", "mine", "--timeout", "7")
    assert r.returncode == 0 and f"hotcell exec {BOX}" in r.stderr and not server.targets("DELETE")
    assert server.asked[0][2] == {"templateID": "mine", "timeout": 67, "secure": True}


def test_in_a_sandbox_that_is_there(server, code):
    assert hotcell(server, "run", code, "--sandbox", BOX).stdout == "hello\n"
    assert hotcell(server, "exec", BOX, "--lang", "python", "-", given="1 + 1").stdout == "hello\n"
    assert hotcell(server, "exec", BOX, "x", "--context", "c-1", "--env", "A=b=c", "--env", "D=").returncode == 0
    assert server.targets("POST") == [f"/sandboxes/{BOX}/connect"] * 3 and not server.targets("DELETE")
    bodies = [body for _, body in server.executed]
    assert bodies[1] == {"code": "1 + 1", "language": "python", "env_vars": {}}
    assert bodies[2] == {"code": "x", "context_id": "c-1", "env_vars": {"A": "b=c", "D": ""}}


@pytest.mark.parametrize("name, language", [("a.py", "python"), ("a.js", "javascript"), ("a.mjs", "javascript"), ("a.ts", "typescript"),
                                            ("a.sh", "bash"), ("a.R", "r"), ("A.java", "java")])
def test_the_ending_says_the_language(server, tmp_path, name, language):
    (tmp_path / name).write_text("code")
    assert hotcell(server, "run", tmp_path / name).returncode == 0
    assert server.executed[0][1]["language"] == language


def test_a_language_that_is_said_counts(server, code):
    assert hotcell(server, "run", code, "--lang", "bash").returncode == 0
    assert server.executed[0][1]["language"] == "bash"


def test_an_ending_that_nobody_knows(server, tmp_path):
    r = hotcell(server, "run", tmp_path / "a.cobol")
    assert r.returncode == 2 and "--lang" in r.stderr and not server.asked


def test_a_large_file_arrives_whole(server, tmp_path):
    text = "# é\n" * 500_000
    (tmp_path / "large.py").write_text(text)
    assert hotcell(server, "run", tmp_path / "large.py").returncode == 0
    assert server.executed[0][1]["code"] == text


# --- what comes out ---------------------------------------------------------------------------------------------------


def test_output_comes_as_it_is_said(server, code):
    seen = queue.Queue()

    def script():
        for n in range(3):
            yield {"type": "stdout", "text": f"{n}\n", "timestamp": ""}
            assert seen.get(timeout=SECONDS) == f"{n}\n"  # not before the line was read
        yield {"type": "stderr", "text": "bad\n", "timestamp": ""}
        yield END

    server.script = script
    with started(server, "run", code) as p:
        for line in p.stdout:
            seen.put(line)
        assert p.stderr.read() == "bad\n"
    assert p.returncode == 0


def test_results_are_text_and_files(server, code, tmp_path):
    server.script = lambda: [
        {"type": "stdout", "text": "no newline", "timestamp": ""},
        {"type": "result", "is_main_result": False, "text": "<Figure>", "png": "aGVsbG8=\n", "chart": {"type": "line"}},
        {"type": "result", "is_main_result": False, "html": "<b>é</b>", "text": "a table", "svg": None},
        {"type": "result", "is_main_result": True, "text": "42"}, END]
    (tmp_path / "plot-1.png").write_text("mine")
    (tmp_path / "plot-2.png").symlink_to("victim")
    r = hotcell(server, "run", code, cwd=tmp_path)
    assert r.returncode == 0 and r.stdout == "no newline\na table\n42\n"
    assert [line.split("wrote ")[1] for line in r.stderr.splitlines()] == ["plot-3.png", "plot-3.chart.json", "plot-4.html"]
    assert (tmp_path / "plot-3.png").read_bytes() == b"hello"
    assert json.loads((tmp_path / "plot-3.chart.json").read_text()) == {"type": "line"}
    assert (tmp_path / "plot-4.html").read_text() == "<b>é</b>"
    assert (tmp_path / "plot-1.png").read_text() == "mine" and not (tmp_path / "victim").exists()


def test_files_go_where_they_are_wanted(server, code, tmp_path):
    server.script = lambda: [{"type": "result", "jpeg": "aGk=", "text": "x"}, END]
    r = hotcell(server, "exec", BOX, "x", "--out", tmp_path / "new", cwd=tmp_path)
    assert r.returncode == 0 and f"{tmp_path}/new/result-1.jpeg" in r.stderr and r.stdout == ""
    r = hotcell(server, "run", code, "--out", "/proc/nowhere")
    assert r.returncode == 1 and "fix: " in r.stderr and len(server.executed) == 1


def test_a_picture_that_is_none_is_said(server, code, tmp_path):
    server.script = lambda: [{"type": "result", "png": "not base64!", "text": "<Figure>"}, TEXT, END]
    r = hotcell(server, "run", code, cwd=tmp_path)
    assert r.returncode == 1 and "plot-1.png" in r.stderr and r.stdout == "<Figure>\nhello\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["plot.py"]


def test_an_exception(server, code):
    server.script = lambda: [TEXT, {"type": "error", "name": "ValueError", "value": "no", "traceback": "Traceback:\n  line 1"}, END]
    r = hotcell(server, "run", code)
    assert (r.returncode, r.stdout, r.stderr) == (1, "hello\n", "Traceback:\n  line 1\n")
    server.script = lambda: [{"type": "error", "name": "ContextRestarting", "value": "again", "traceback": ""}, END]
    assert hotcell(server, "run", code).stderr == "ContextRestarting: again\n"
    assert len(server.targets("DELETE")) == 2


def test_json_is_every_event(server, code, tmp_path):
    result = {"type": "result", "is_main_result": True, "png": "aGk=", "extra": {}}
    server.script = lambda: [TEXT, {"type": "keepalive"}, {"type": "sandbox", "sandboxID": "forged"}, result, END]
    r = hotcell(server, "run", code, "--json", cwd=tmp_path)
    assert [json.loads(line) for line in r.stdout.splitlines()] == [{"type": "sandbox", "sandboxID": BOX}, TEXT, result, END]
    assert r.stderr == "" and sorted(p.name for p in tmp_path.iterdir()) == ["plot.py"]
    r = hotcell(server, "run", code, "--json", "--out", "o", cwd=tmp_path)
    assert json.loads(r.stdout.splitlines()[-2]) == {"type": "file", "path": "o/plot-1.png"}
    server.answers["POST", "/sandboxes"] = 404, {"code": 404, "message": "template 'x' not found"}
    r = hotcell(server, "run", code, "--json")
    assert r.returncode == 1 and json.loads(r.stderr)["error"] == "not_found" and json.loads(r.stderr)["fix"]


ESCAPES = "\x1b]0;title\x07\x1b[2Ja\tb\u009b31m\x7f é\n"


def test_a_terminal_is_not_steered(server, code):
    server.script = lambda: [{"type": "stdout", "text": ESCAPES, "timestamp": ""},
                             {"type": "error", "name": "x", "value": "y", "traceback": ESCAPES}, END]
    assert hotcell(server, "run", code).stdout == ESCAPES  # a pipe: as it was said
    master, slave = pty.openpty()
    with subprocess.Popen(command("run", code), env=env_of(server), stdin=slave, stdout=slave, stderr=slave) as p:
        os.close(slave)
        said = b""
        while b"\xc3\xa9\r\n" not in said[:-100] or p.poll() is None:
            try:
                said += os.read(master, 4096)
            except OSError:  # all of it was read
                break
    os.close(master)
    assert said.decode() == 2 * "?]0;title??[2Ja\tb??31m? é\r\n"


def test_much_output_takes_little_memory(server, code):
    piece = json.dumps({"type": "stdout", "text": "x" * 999_999 + "\n", "timestamp": ""}).encode() + b"\n"
    peaks = []

    def script():
        yield from [piece] * 32
        status = pathlib.Path(f"/proc/{p.pid}/status").read_text()
        peaks.append(next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024)
        yield END

    server.script = script
    with subprocess.Popen(command("run", code), env=env_of(server), stdout=subprocess.DEVNULL) as p:
        pass
    print(f"{peaks[0]:.1f} MiB for 32 MB")
    assert p.returncode == 0
    if b"__asan_init" not in (build_dir() / "src/cli/hotcell").read_bytes():
        assert peaks[0] < 24


# --- what goes wrong --------------------------------------------------------------------------------------------------


def failed(r, *words, status=1):
    assert r.returncode == status and r.stderr.count("  fix: ") == 1, (r.returncode, r.stderr)
    assert all(word in r.stderr for word in words), r.stderr


@pytest.mark.parametrize("name", ["E2B_API_KEY", "E2B_API_URL"])
def test_variables_that_are_not_set(server, code, name):
    failed(hotcell(server, "run", code, **{name: ""}), "E2B_API_KEY" if name == "E2B_API_KEY" else "E2B_DOMAIN")


def test_nobody_answers(server, code):
    failed(hotcell(server, "run", code, E2B_API_URL="http://127.0.0.1:1"), "gateway: 127.0.0.1:1", "E2B_DOMAIN", status=3)


def test_a_wrong_key(server, code):
    failed(hotcell(server, "run", code, E2B_API_KEY="e2b_b2"), "no such key", "hotcell keys add")


def test_refusals_name_a_fix(server, code):
    server.answers["POST", "/sandboxes"] = 404, {"code": 404, "message": "template 'code-interpreter-v1' not found"}
    failed(hotcell(server, "run", code), "code-interpreter-v1", "hotcell templates")
    server.answers["POST", f"/sandboxes/{BOX}/connect"] = 404, {"code": 404, "message": "no such sandbox"}
    failed(hotcell(server, "exec", BOX, "1"), "no such sandbox", "hotcell ps")
    failed(hotcell(server, "exec", "../admin", "1"), "no id of a sandbox")
    assert server.targets("POST") == ["/sandboxes", f"/sandboxes/{BOX}/connect"]


def test_a_sandbox_without_an_interpreter(server, code):
    server.status, server.body = 502, b'{"sandboxId":"x","message":"The sandbox is running but port is not open\\u001b[2J","code":502}'
    r = hotcell(server, "run", code)
    failed(r, "port is not open", "49999")
    assert "\x1b" not in r.stderr and server.targets("DELETE") == [f"/sandboxes/{BOX}"]
    server.status, server.body = 404, b"Context c-1 not found"
    failed(hotcell(server, "exec", BOX, "1", "--context", "c-1"), "Context c-1 not found", "--context")


@pytest.mark.parametrize("said", [b"hello\n", b"\n", b'{"type":1}\n', b'{"type":"stdout","text":"a"\n', b'[{"type":"stdout"}]\n'])
def test_what_is_no_event(server, code, said):
    server.script = lambda: [TEXT, said, END]
    r = hotcell(server, "run", code)
    failed(r, f"sandbox {BOX}: an event that is none")
    assert r.stdout == "hello\n" and server.targets("DELETE")


def test_an_answer_that_is_cut_off(server, code):
    server.script = lambda: [TEXT, ConnectionError]
    r = hotcell(server, "run", code)
    failed(r, "gateway")
    assert r.stdout == "hello\n" and server.targets("DELETE")
    server.script = lambda: [TEXT, b'{"type":"std']
    failed(hotcell(server, "run", code), "cut off in the middle")


def test_a_sandbox_that_cannot_be_ended_is_said(server, code):
    server.answers["DELETE", f"/sandboxes/{BOX}"] = 500, {"code": 500, "message": "on fire"}
    failed(hotcell(server, "run", code), BOX, "on fire", "hotcell kill")


# --- who ends it ------------------------------------------------------------------------------------------------------


def test_after_its_time_it_is_interrupted(server, code):
    server.script = lambda: [TEXT, None]
    r = hotcell(server, "run", code, "--timeout", "1")
    failed(r, "after 1 seconds", "--timeout")
    assert server.gone.wait(SECONDS) and server.targets("DELETE")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts_and_ends_the_sandbox(server, code, how):
    server.script = lambda: [TEXT, None]
    with started(server, "run", code) as p:
        assert p.stdout.readline() == "hello\n"
        p.send_signal(how)
        assert p.stderr.read() == ""
    assert p.returncode == 128 + how and server.gone.wait(SECONDS)
    assert server.targets("DELETE") == [f"/sandboxes/{BOX}"]


def test_a_signal_in_a_sandbox_that_was_there(server, code):
    server.script = lambda: [TEXT, None]
    with started(server, "exec", BOX, "1") as p:
        assert p.stdout.readline() == "hello\n"
        p.send_signal(signal.SIGINT)
    assert p.returncode == 130 and server.gone.wait(SECONDS) and not server.targets("DELETE")


def test_a_signal_while_the_sandbox_is_made(server, code):
    server.hold = threading.Event()
    with started(server, "run", code) as p:
        wait_for(lambda: server.asked, "a create", SECONDS)
        p.send_signal(signal.SIGINT)
        assert "again" in p.stderr.readline()
        server.hold.set()
    assert p.returncode == 130 and server.targets("DELETE") == [f"/sandboxes/{BOX}"] and not server.executed


def test_a_signal_while_nobody_reads(server, code):
    server.script = lambda: [{"type": "stdout", "text": "x" * 1_000_000, "timestamp": ""}, None]
    with started(server, "run", code) as p:
        assert p.stdout.read(1) == "x"
        p.send_signal(signal.SIGINT)
        wait_for(lambda: p.poll() is not None, "its end", SECONDS)
    assert p.returncode == 130 and server.targets("DELETE")


def test_a_reader_that_leaves(server, code):
    server.script = lambda: [json.dumps(TEXT).encode() + b"\n"] * 100_000 + [END]
    with started(server, "run", code) as p:
        assert p.stdout.readline() == "hello\n"
        p.stdout.close()
        assert p.stderr.read() == ""
    assert p.returncode == 1 and server.targets("DELETE")


# --- HTTPS ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def https(server, tmp_path):
    """With a certificate of `hotcell tls init`, under names that nobody has to look up."""
    made = tmp_path / "tls"
    made.mkdir()
    subprocess.run(command("tls", "init", DOMAIN, "--tls-dir", made, "--owner", str(os.getuid())), check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair = next(p.parent for p in made.glob("*/privkey.pem"))
    context.load_cert_chain(pair / "fullchain.pem", pair / "privkey.pem")
    server.names = []
    context.sni_callback = lambda _socket, name, _context: server.names.append(name)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.ca = made / "authority/ca.pem"
    server.env = {"E2B_API_URL": "", "E2B_SANDBOX_URL": "", "E2B_DOMAIN": f"{DOMAIN}:{server.server_port}"}
    return server


def test_https_under_a_domain(https, code):
    r = hotcell(https, "run", code, SSL_CERT_FILE=str(https.ca), **https.env)
    assert (r.returncode, r.stdout, r.stderr) == (0, "hello\n", "")
    names = [f"api.{DOMAIN}", f"49999-{BOX}.{DOMAIN}", f"api.{DOMAIN}"]
    assert https.names == names and https.hosts == [f"{name}:{https.server_port}" for name in names]


def test_a_server_that_nobody_vouches_for(https, code):
    failed(hotcell(https, "run", code, **https.env), "certificate", "SSL_CERT_FILE")
    assert not https.asked
