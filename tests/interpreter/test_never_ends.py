"""What never ends, and what is left over: code of ours, agents, processes, descriptors."""
import os
import pathlib
import socket
import time

from conftest import need
from lone_interp import next_event, wait_for

OURS_S = 20  # after which code of ours is interrupted


def test_code_of_ours_that_never_ends_is_interrupted(own_interp):
    """The user's code can replace what it calls. Its own context waits, and goes on."""
    interp = own_interp().start()
    interp.run("import os, time\nos.environ.update = lambda *_: time.sleep(1000)")
    begun = time.monotonic()
    assert interp.run("print('here', state := 5)", 90, env_vars={"A": "b"}).stdout == "here 5\n"
    assert time.monotonic() - begun >= OURS_S - 1
    assert interp.run("state").text == "5"


def test_a_client_that_leaves_while_an_agent_is_slow(own_interp):
    """The agent is asked with the token of a request that is gone by then."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as agent:
        port = agent.getsockname()[1]
        interp = own_interp(agent=f"127.0.0.1:{port}").start()
        first = socket.create_connection(("127.0.0.1", port))  # who else comes has to wait
        connection, _ = interp.open("1", headers={"X-Access-Token": "a-token-that-is-known"}.items())
        connection.close()
        wait_for(lambda: not interp_connections(interp), 10, "a connection less")
        first.close()
        agent.accept()[0].close()
        agent.settimeout(10)
        with agent.accept()[0] as asked:
            asked.settimeout(10)
            assert b"x-access-token: a-token-that-is-known\r\n" in asked.recv(4096).lower()
            asked.sendall(b'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"A":"b"}')
        assert interp.run("import os; os.environ['A']").text == "b"


def interp_connections(interp):
    """Of clients, that are open."""
    mine = f":{interp.port:04X}"
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    return [line for line in lines if line.split()[1].endswith(mine) and line.split()[3] == "01"]


def alive(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] != "Z"


def gone(pid):
    try:
        return not alive(pid)
    except FileNotFoundError:
        return True


def test_what_a_kernel_started_ends_with_it(own_interp):
    interp = own_interp().start()
    child = int(interp.run("import subprocess\nprint(subprocess.Popen(['sleep', '1000']).pid)").stdout)
    kernel, = interp.kernels_alive()
    assert alive(child)
    os.kill(kernel, 9)
    wait_for(lambda: gone(child), 10, "end of what the kernel started")
    assert interp.run("1 + 1", 60).text == "2"


def test_a_shell_ends_with_its_server(own_interp):
    """In the middle of a loop, where it does not notice by itself."""
    need("bash")
    interp = own_interp(eager=("bash",)).start()
    shell = int(interp.run("echo $$", language="bash").stdout)
    connection, answer = interp.open("echo begun; while :; do :; done", language="bash")
    while next_event(answer).get("text") != "begun\n":
        pass
    interp.process.kill()
    wait_for(lambda: gone(shell), 10, "end of the shell")
    connection.close()


def test_kernels_have_no_descriptors_of_others(own_interp):
    interp = own_interp().start()
    others = [interp.context()["id"] for _ in range(2)]
    interp.run("1", context_id=others[0])
    code = "import os\nprint(sorted({os.readlink(f'/proc/self/fd/{n}').split(':')[0] for n in range(3, 512) if os.path.exists(f'/proc/self/fd/{n}')}))"
    seen = [interp.run(code, context_id=each).stdout for each in others]
    before = len(os.listdir(f"/proc/{interp.process.pid}/fd"))
    assert seen[0] == seen[1]  # the second is not told of the first
    for _ in range(5):
        for each in others:
            assert interp.get(f"/contexts/{each}/restart", "POST")[0] == 200
    assert len(os.listdir(f"/proc/{interp.process.pid}/fd")) <= before + 2
    for each in others:
        interp.get(f"/contexts/{each}", "DELETE")
    wait_for(lambda: len(interp.kernels_alive()) == 1, 10, "end of the kernels, none of them a zombie")


def test_a_shell_needs_no_room_in_tmp(own_interp, tmp_path, monkeypatch):
    """Who cleans up /tmp, or fills it, goes on."""
    need("bash")
    (tmp_path / "t").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))
    interp = own_interp(eager=("bash",)).start()
    assert interp.run("x=5; echo $x", language="bash").stdout == "5\n"
    assert not os.listdir(tmp_path / "t")
    assert interp.run("echo $x; printf '%s' \"$0\"", language="bash").stdout == "5\n/bin/bash"
