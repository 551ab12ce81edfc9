"""test_interpreter_speed.py - what the code interpreter's server costs, beside the kernel it drives; and creates of its template.

HOTCELL_PAIRS (40) executions of each kind; HOTCELL_CREATES (8) creates of each template.
"""

import http.client
import json
import os
import pathlib
import statistics
import time

import pytest

from engine import artefact
from interpreter_server import interpreter_server
from interpreter_support import InterpreterClient
from warden import wait_for

PAIRS = int(os.environ.get("HOTCELL_PAIRS", "40"))
CREATES = int(os.environ.get("HOTCELL_CREATES", "8"))
MEDIAN_MAX, P95_MAX = 1.1, 1.3
CREATE_MAX = 1.3
FIRST_MAX = 1.5
LATER = 5
TRIES = 5  # a shared machine has bad moments
PATIENCE = 600
TEMPLATE = "code-interpreter-v1"


@pytest.fixture(scope="module")
def server():
    with interpreter_server(node={"pool": 1, "pool_each_max": 1, "pool_memory_mib": 1024}) as s:
        yield s


@pytest.fixture(scope="module")
def client(server):
    with InterpreterClient(server, artefact("sdks")) as py:
        yield py


def p95(values):
    return sorted(values)[len(values) * 95 // 100]


def shown(values):
    return f"p50 {statistics.median(values):.1f} ms, p95 {p95(values):.1f} ms"


def test_an_execution_beside_a_bare_client_of_the_same_kernel(server, client):
    script = (pathlib.Path(__file__).parent / "beside_jupyter.py").read_text()
    box = client.create()
    box.run(f"open('/tmp/beside.py', 'w').write({script!r})")
    for attempt in range(TRIES):
        taken = json.loads(box.command(f"python3 /tmp/beside.py {PAIRS}", user="root", timeout=PATIENCE))
        ours, bare = taken["ours"], taken["bare"]
        median, slow = statistics.median(ours) / statistics.median(bare), p95(ours) / p95(bare)
        outside = through_gateway(server, box)
        print(f"\n1 + 1 in the guest: {shown(ours)}; by jupyter_client {shown(bare)}; {median:.2f} x and {slow:.2f} x (limits "
              f"{MEDIAN_MAX} and {P95_MAX}), {PAIRS} pairs; through the gateway {shown(outside)}")
        if median <= MEDIAN_MAX and slow <= P95_MAX:
            break
    box.call("kill")
    assert median <= MEDIAN_MAX and slow <= P95_MAX


class Door:
    """The interpreter's port of a sandbox, by a connection that is kept, as SDKs keep theirs."""

    def __init__(self, server, box):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        self.headers = {"E2B-Sandbox-Id": box.id, "E2B-Sandbox-Port": "49999", "content-type": "application/json"}
        token = server.must("POST", f"/sandboxes/{box.id}/connect", {"timeout": 3600}).get("envdAccessToken")
        if token:
            self.headers["X-Access-Token"] = token

    def once(self):
        begun = time.monotonic()
        self.connection.request("POST", "/execute", json.dumps({"code": "1 + 1"}), self.headers)
        answer = self.connection.getresponse()
        said = answer.read()
        took = (time.monotonic() - begun) * 1000
        assert answer.status == 200 and b'"text":"2"' in said.replace(b'": "', b'":"'), said
        return took


def through_gateway(server, box):
    door = Door(server, box)
    return [door.once() for _ in range(PAIRS)]


def pool_of(server, name):
    """VMs that wait in the pool of a template."""
    return sum(p["ready"] for p in server.node_status()["pools"] if p["name"].split("/")[-1].split(":")[0] == name)


def create_pooled(server, client, name):
    """(milliseconds, the sandbox), of one that waited in a pool. Nothing else is under way."""
    for template in ("base", TEMPLATE):
        wait_for(lambda t=template: pool_of(server, t) >= 1, f"the pool of {template} has a VM", PATIENCE, 0.05)
    waiting = server.node_status()["pooledIDs"]
    begun = time.monotonic()
    box = client.create(template=name)
    took = (time.monotonic() - begun) * 1000
    assert box.id in waiting, "it did not wait in a pool"
    return took, box


def test_creates_from_a_warm_pool_beside_base_and_the_first_execution(server, client):
    client.create().call("kill")  # from now on the template is in use, and has a pool
    client.create(template="base").call("kill")
    for attempt in range(TRIES):
        taken, first, later = {TEMPLATE: [], "base": []}, [], []
        for _ in range(CREATES):
            for name in taken:
                took, box = create_pooled(server, client, name)
                taken[name].append(took)
                if name == TEMPLATE:
                    door = Door(server, box)
                    first.append(door.once())
                    later += [door.once() for _ in range(LATER)]
                box.call("kill")
        ratio = statistics.median(taken[TEMPLATE]) / statistics.median(taken["base"])
        slow = statistics.median(first) / statistics.median(later)
        print(f"\ncreate from a warm pool, by the SDK: {shown(taken[TEMPLATE])}; of base {shown(taken['base'])}; {ratio:.2f} x "
              f"(limit {CREATE_MAX}), {CREATES} pairs\nfirst execution {shown(first)}; later ones {shown(later)}; {slow:.1f} x "
              f"(limit {FIRST_MAX} with KVM)")
        if ratio <= CREATE_MAX:
            break
    assert ratio <= CREATE_MAX
    assert slow <= FIRST_MAX or server.node_status()["emulated"]
