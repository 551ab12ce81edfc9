"""test_tls_handshakes.py - long: what a handshake costs the gateway and the signer, and what an idle connection does.

Prints handshakes per second of a processor, in full and resumed, with an EC key and an RSA key, and the memory of a
connection over TLS that nobody uses. The gateway and the signer are on one processor, clients on the others.
"""

import os
import re
import subprocess

import pytest

from tls_gateway import TlsGateway
from warden import is_sanitized, wait_for

SECONDS, CLIENTS, IDLE = 5, 4, 1000
LEAST = {"P-256": 150, "RSA": 60}  # a slow machine, busy with other things
IDLE_KIB_MAX = 64

pytestmark = pytest.mark.skipif(is_sanitized(), reason="a build with sanitizers is not measured")


def used_s(pid):
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9


def memory_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"^VmRSS:\s+(\d+)", status.read(), re.M)[1])


def clients(gateway, *words):
    """So many, one connection after the other, for a while: how many handshakes there were."""
    others = sorted(os.sched_getaffinity(0))[1:] or [0]
    command = ["taskset", "-c", ",".join(map(str, others)), "openssl", "s_time", "-connect", f"127.0.0.1:{gateway.tls_port}",
               "-time", str(SECONDS), *words]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(CLIENTS)]
    said = [one.communicate()[0] for one in running]
    return sum(int(re.findall(r"^(\d+) connections in \d+ real", text, re.M)[-1]) for text in said)


@pytest.fixture(scope="module", params=LEAST, name="gateway")
def fixture_gateway(request):
    with TlsGateway(kind=request.param) as gateway:
        for pid in (gateway.daemon.pid, gateway.signer.daemon.pid):
            os.sched_setaffinity(pid, {sorted(os.sched_getaffinity(0))[0]})
        gateway.kind = request.param
        yield gateway


# of TLS 1.3 this client resumes nothing: it hangs up before it is given a ticket
@pytest.mark.parametrize("version, how", [("-tls1_3", "-new"), ("-tls1_2", "-new"), ("-tls1_2", "-reuse")])
def test_handshakes_per_second_of_a_processor(gateway, version, how):
    pids = gateway.daemon.pid, gateway.signer.daemon.pid
    before = [used_s(pid) for pid in pids]
    n = clients(gateway, how, version)
    used = [used_s(pid) - was for pid, was in zip(pids, before)]
    rate = n / sum(used)
    print(f"\n{gateway.kind} {version} {how}: {rate:.0f} handshakes per second of a processor; each "
          f"{1e3 * used[0] / n:.2f} ms of the gateway and {1e3 * used[1] / n:.2f} ms of the signer")
    assert rate >= LEAST[gateway.kind]


def test_memory_of_an_idle_connection(gateway):
    context = gateway.context()
    with gateway.connect(context=context) as sock:  # what is made once is made
        gateway.get(sock)
    before = memory_kib(gateway.daemon.pid)
    idle = [gateway.connect(context=context) for _ in range(IDLE)]
    for sock in idle:
        assert gateway.get(sock)[0] in (200, 204)
    each = (memory_kib(gateway.daemon.pid) - before) / IDLE
    print(f"\n{gateway.kind}: {each:.1f} KiB for a connection that is idle")
    for sock in idle:
        sock.close()
    wait_for(lambda: gateway.admin("GET", "/admin/status").json["gateway"]["connections"] == 0, "they are gone", 30, 0.05)
    assert each < IDLE_KIB_MAX
