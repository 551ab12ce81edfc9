"""Contexts: made, listed, restarted, removed; kernels that die; clients that leave."""
import concurrent.futures
import contextlib
import http.server
import json
import os
import re
import signal
import threading

import pytest

from lone_interp import next_event, wait_for

NO_KERNEL = ("Failed to create context: {\"message\": \"The '%s' kernel is not available. Please pick another suitable "
             "kernel instead, or install that kernel.\", \"short_message\": \"%s not found\"}")


def wrong_field(kind, where, message, value):
    return json.dumps({"detail": [{"type": kind, "loc": ["body", *where], "msg": message, "input": value}]},
                      separators=(",", ":"))


def no_string(value, *where):
    return wrong_field("string_type", where, "Input should be a valid string", value)


# What E2B's own server answers to the same requests, to the byte.
WRONG = [
    # method, path, body, status, text
    ("POST", "/execute", {"code": "1", "context_id": "x", "language": "python"}, 400,
     "Only one of context_id or language can be provided"),
    ("POST", "/execute", {"code": "1", "context_id": "nope"}, 404, "Context nope not found"),
    ("POST", "/execute", {"code": "1", "context_id": "n" * 200}, 404, f"Context {'n' * 200} not found"),
    ("POST", "/execute", {"code": "1", "language": " COBOL\t"}, 500, NO_KERNEL % ("cobol", "cobol")),
    ("POST", "/execute", {"code": "1", "language": "../python"}, 500, NO_KERNEL % ("../python", "../python")),
    ("POST", "/execute", {"code": "1", "language": "x" * 100}, 500, NO_KERNEL % ("x" * 100, "x" * 100)),
    ("POST", "/execute", {}, 422, wrong_field("missing", ["code"], "Field required", {})),
    ("POST", "/execute", {"code": 1}, 422, no_string(1, "code")),
    ("POST", "/execute", {"code": None}, 422, no_string(None, "code")),
    ("POST", "/execute", {"code": "1", "context_id": 5}, 422, no_string(5, "context_id")),
    ("POST", "/execute", {"code": "1", "language": {}}, 422, no_string({}, "language")),
    ("POST", "/execute", {"code": "1", "env_vars": {"A": 1}}, 422, no_string(1, "env_vars", "A")),
    ("POST", "/execute", {"code": "1", "env_vars": []}, 422,
     wrong_field("dict_type", ["env_vars"], "Input should be a valid dictionary", [])),
    ("POST", "/execute", b"[]", 422, wrong_field(
        "model_attributes_type", [], "Input should be a valid dictionary or object to extract fields from", [])),
    ("POST", "/contexts", {"cwd": 5}, 422, no_string(5, "cwd")),
    ("POST", "/contexts", {"language": "cobol"}, 500, NO_KERNEL % ("cobol", "cobol")),
    ("DELETE", "/contexts/nope", None, 404, "Context nope not found"),
    ("POST", "/contexts/nope/restart", None, 404, "Context nope not found"),
    ("GET", "/", None, 404, '{"detail":"Not Found"}'),
    ("GET", "/contexts/nope/nope", None, 404, '{"detail":"Not Found"}'),
    ("GET", "/execute", None, 405, '{"detail":"Method Not Allowed"}'),
    ("PUT", "/contexts", None, 405, '{"detail":"Method Not Allowed"}'),
    ("GET", "/contexts/nope", None, 405, '{"detail":"Method Not Allowed"}'),
    ("GET", "/contexts/nope/restart", None, 405, '{"detail":"Method Not Allowed"}'),
]
# And where it differs: how a parser says what it did not like, and limits that are ours.
WRONG_HERE = [
    ("POST", "/execute", b"{", 422, "JSON decode error"),
    ("POST", "/execute", b"", 422, "JSON decode error"),
    ("POST", "/execute", b"[" * 1000, 422, "JSON decode error"),
    ("POST", "/execute", {"code": "1", "env_vars": {"A": "x" * 10**6, "B": 1}}, 422, '"B"'),
    ("POST", "/execute", {"code": ["x" * 10**6]}, 422, "Input should be a valid string"),
    ("POST", "/contexts", {"cwd": "/" + "x" * 5000}, 500, "cwd"),
    ("POST", "/execute", {"code": "1", "language": "x" * 10**6}, 500, "kernel is not available"),
]


def ids(rows):
    return [str(row[2])[:30] + row[1] for row in rows]


@pytest.mark.parametrize("method, path, body, status, text", WRONG, ids=ids(WRONG))
def test_what_is_wrong_is_said_as_e2b_says_it(interp, method, path, body, status, text):
    assert interp.get(path, method, body) == (status, text)


@pytest.mark.parametrize("method, path, body, status, text", WRONG_HERE, ids=ids(WRONG_HERE))
def test_what_is_wrong_is_said(interp, method, path, body, status, text):
    got = interp.get(path, method, body)
    assert got[0] == status and text in got[1] and len(got[1]) < 2000, got


def test_where_there_is_no_folder_a_kernel_starts_where_others_do(interp, tmp_path):
    """So it is with E2B: the context has the name of the folder, and is where every other context is."""
    (tmp_path / "file").write_text("")
    for cwd, real in (("/nowhere", interp.folder), (str(tmp_path / "file"), interp.folder), ("run", interp.folder / "run")):
        made = interp.context(cwd=cwd)
        assert made["cwd"] == cwd
        assert interp.run("import os; os.getcwd()", context_id=made["id"]).text == str(real)
        interp.get(f"/contexts/{made['id']}", "DELETE")


def test_pages_of_any_origin_may_ask(interp):
    connection, answer = interp.ask("OPTIONS", "/execute", headers={"Origin": "http://example.test"})
    assert answer.status == 204 and answer.getheader("access-control-allow-origin") == "*"
    connection.close()


def test_a_context_is_its_own(interp, tmp_path):
    made = interp.context(cwd=str(tmp_path))
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made["id"])
    assert (made["language"], made["cwd"]) == ("python", str(tmp_path))
    assert json.loads(interp.get("/contexts")[1])[-1] == made
    assert interp.run("import os; os.getcwd()", context_id=made["id"]).text == str(tmp_path)
    interp.run("only_here = 1")
    assert interp.run("only_here", context_id=made["id"]).error["name"] == "NameError"
    assert interp.get(f"/contexts/{made['id']}", "DELETE") == (200, "null")
    assert made not in json.loads(interp.get("/contexts")[1])
    assert interp.get("/execute", "POST", {"code": "1", "context_id": made["id"]})[0] == 404


def test_a_restart_keeps_the_name_and_forgets_the_rest(interp):
    made = interp.context()
    interp.run("x = 1", context_id=made["id"])
    assert interp.get(f"/contexts/{made['id']}/restart", "POST") == (200, "null")
    again = interp.run("x", context_id=made["id"])
    assert (again.error["value"], again.count) == ("name 'x' is not defined", 1)
    interp.get(f"/contexts/{made['id']}", "DELETE")


def test_one_after_the_other_in_a_context(interp):
    code = "import time; t = time.monotonic(); time.sleep(0.3); print(t, time.monotonic())"
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        spans = [tuple(map(float, e.stdout.split())) for e in pool.map(interp.run, [code] * 4)]
    spans.sort()
    assert all(ended <= begun for (_, ended), (begun, _) in zip(spans, spans[1:])), spans


ENDS = ["restart", "delete", "kill"]
TOLD = [
    ("UnexpectedEndOfExecution", "Connection to the execution was closed before the execution was finished"),
    ("ContextRestarting", "Context was restarted"),  # why: where a traceback would be
]


@pytest.mark.parametrize("how", ENDS)
def test_what_runs_is_told_of_the_end_of_its_kernel(interp, how):
    made = interp.context()
    connection, answer = interp.open("import os; print(os.getpid(), flush=True)\nwhile True: pass", context_id=made["id"])
    assert next_event(answer)["type"] == "number_of_executions"
    pid = int(next_event(answer)["text"])
    if how == "restart":
        assert interp.get(f"/contexts/{made['id']}/restart", "POST")[0] == 200
    elif how == "delete":
        assert interp.get(f"/contexts/{made['id']}", "DELETE")[0] == 200
    else:
        os.kill(pid, signal.SIGKILL)
    error = next_event(answer)
    assert (error["name"], error["value"]) == TOLD[how == "kill"], error
    assert ("signal 9" in error["traceback"]) == (how == "kill"), error
    assert next_event(answer) == {"type": "end_of_execution"} and answer.read() == b""
    connection.close()
    wait_for(lambda: pid not in interp.kernels_alive(), 5, "end of the old kernel")
    if how != "delete":
        assert interp.run("2 + 2", context_id=made["id"]).text == "4"
        interp.get(f"/contexts/{made['id']}", "DELETE")


LOOPS = ["while True: pass", "import time; time.sleep(300)", "!sleep 300"]


@pytest.mark.parametrize("loop", LOOPS)
def test_who_leaves_is_not_waited_for(interp, loop):
    made = interp.context()
    interp.run("kept = 5", context_id=made["id"])
    connection, answer = interp.open(loop, context_id=made["id"])
    assert next_event(answer)["type"] == "number_of_executions"
    waiting = concurrent.futures.ThreadPoolExecutor(1).submit(interp.run, "kept", 30, context_id=made["id"])
    answer.close()
    connection.close()
    assert waiting.result().text == "5"
    interp.get(f"/contexts/{made['id']}", "DELETE")


def leave(opened):
    connection, answer = opened
    answer.close()
    connection.close()


def test_the_code_of_who_is_left_behind_goes_on(own_interp):
    """As after a resume, and in a copy: the machine parted from all of its clients, and says so."""
    interp = own_interp().start()
    interp.partings.write_text("7\n")
    opened = interp.open("import time\nfor n in range(8): time.sleep(0.25)\ndone = True")
    assert next_event(opened[1])["type"] == "number_of_executions"
    with contextlib.closing(interp.send("POST", "/execute", {"code": "done = 'twice'"})) as waiting:
        assert interp.get("/health")[0] == 200  # it has read what came before
        interp.partings.write_text("8\n")
        leave(opened)
        assert interp.run("n, done").text == "(7, True)"
        with pytest.raises(OSError):
            waiting.getresponse()
    assert interp.run("done").text == "True", "what had not begun is not begun"
    opened = interp.open("while True: time.sleep(1)")
    assert next_event(opened[1])["type"] == "number_of_executions"
    leave(opened)
    assert interp.run("n").text == "7", "who leaves later still interrupts"


def test_output_for_who_was_left_behind_stops_nothing(own_interp):
    """Their connection is not closed by anybody: it is the server that notices."""
    interp = own_interp().start()
    interp.partings.write_text("1\n")
    opened = interp.open("for n in range(64): print('x' * 1_000_000)\nn")
    assert next_event(opened[1])["type"] == "number_of_executions"
    interp.partings.write_text("2\n")
    assert interp.run("n", 60).text == "63"
    leave(opened)


def test_code_that_cannot_be_interrupted_costs_its_kernel(interp):
    made = interp.context()
    code = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN)\nprint(1, flush=True)\nwhile True: time.sleep(9)"
    connection, answer = interp.open(code, context_id=made["id"])
    next_event(answer), next_event(answer)
    answer.close()
    connection.close()
    assert interp.run("'signal' in globals()", 60, context_id=made["id"]).text == "False"
    interp.get(f"/contexts/{made['id']}", "DELETE")


def test_silence_is_filled(interp):
    connection, answer = interp.open("import time; time.sleep(5.5)")
    kinds = [next_event(answer)["type"] for _ in range(3)]
    assert kinds == ["number_of_executions", "keepalive", "end_of_execution"]
    connection.close()


class Agent(http.server.BaseHTTPRequestHandler):
    asked = []

    def do_GET(self):
        self.asked.append((self.path, self.headers.get("X-Access-Token")))
        body = json.dumps({"OF_THE_SANDBOX": "yes", "TWICE": "sandbox"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_variables_of_the_sandbox_are_asked_for_once(own_interp):
    with http.server.HTTPServer(("127.0.0.1", 0), Agent) as agent:
        threading.Thread(target=agent.serve_forever, daemon=True).start()
        interp = own_interp(agent=f"127.0.0.1:{agent.server_port}").start()
        code = "import os; os.environ['OF_THE_SANDBOX'] + os.environ['TWICE']"
        connection, answer = interp.open(code, headers={"X-Access-Token": "t0ken"}, env_vars={"TWICE": "mine"})
        assert b'"yesmine"' in answer.read()
        connection.close()
        assert interp.run(code).text == "yessandbox"
        assert Agent.asked == [("/envs", "t0ken")]
        agent.shutdown()
        assert interp.stop() == 0


def test_no_kernel_outlives_its_server(own_interp):
    interp = own_interp().start()
    interp.context()
    kernels = interp.kernels_alive()
    assert len(kernels) == 2
    interp.process.kill()
    interp.process.wait()
    wait_for(lambda: not any(alive(pid) for pid in kernels), 10, "end of the kernels")
    interp.start(interp.port)
    assert interp.run("1 + 1").text == "2"


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_first_context_may_go(own_interp):
    interp = own_interp().start()
    first, = json.loads(interp.get("/contexts")[1])
    interp.run("x = 1")
    assert interp.get(f"/contexts/{first['id']}", "DELETE")[0] == 200
    assert interp.get("/health") == (200, '"OK"')
    assert interp.run("'x' in globals()").text == "False"
    assert [c["language"] for c in json.loads(interp.get("/contexts")[1])] == ["python"]


def test_a_kernel_that_never_starts_is_an_error(own_interp, tmp_path):
    for name, program in (("dies", "/bin/false"), ("missing", "/no/such/program")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernel.json").write_text(json.dumps({"argv": [program, "{connection_file}"]}))
    interp = own_interp(eager=(), kernels=(tmp_path,)).start()
    for name in ("dies", "missing"):
        status, text = interp.get("/execute", "POST", {"code": "1", "language": name})
        assert status == 500 and "Failed to create context" in text
    assert json.loads(interp.get("/contexts")[1]) == []


def test_nothing_is_seen_of_what_warms_a_kernel(own_interp):
    """Those that are there from the start have run code of ours; a later one has not, and looks the same."""
    interp = own_interp().start()
    code = "[(n, repr(globals()[n])) for n in sorted(globals()) if not n.startswith(('_i', 'In'))], dict(Out), len(In)"
    made = interp.context()["id"]
    first, later = interp.run(code), interp.run(code, context_id=made)
    assert first.count == later.count == 1
    assert hide(first.text) == hide(later.text)


def hide(text):
    return re.sub(r"0x[0-9a-f]+", "", text)


def test_chance_is_every_kernels_own(own_interp):
    """Seeds that a snapshot would have copied: they are set anew before the first code of a user's, and only then."""
    interp = own_interp().start()
    code = "import random, numpy; (random.getstate()[1][:5], numpy.random.get_state()[1][:5].tolist())"
    first = interp.run(code).text
    assert interp.run(code).text == first
    assert interp.run("random.seed(1); random.random()").text == "0.13436424411240122"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file: needs root")
def test_no_context_is_made_where_memory_ends(own_interp, tmp_path):
    """A guest without memory hangs, with all its contexts. They go on, and when there is memory again one more is made."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 1009664 kB\nMemFree: 1 kB\nMemAvailable: 98304 kB\n")
    interp = own_interp(within=["unshare", "--mount", "sh", "-c", f'mount --bind {meminfo} /proc/meminfo && exec "$@"', "sh"]).start()
    meminfo.write_text("MemTotal: 1009664 kB\nMemFree: 1 kB\nMemAvailable: 98303 kB\n")
    assert interp.get("/contexts", "POST", {}) == (429, "Failed to create context: the sandbox has 95 MiB of memory left, and a "
                                                   "kernel needs 96: remove a context, or use a template with more memory")
    assert interp.run("1 + 1").text == "2"
    first = json.loads(interp.get("/contexts")[1])[0]["id"]
    assert interp.get(f"/contexts/{first}/restart", "POST")[0] == 200
    assert interp.run("1 + 1").text == "2"
    meminfo.write_text("MemTotal: 1009664 kB\nMemFree: 1 kB\nMemAvailable: 98304 kB\n")
    assert interp.get("/contexts", "POST", {})[0] == 200
