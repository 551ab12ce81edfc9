"""test_interpreter_life.py - sandboxes of code-interpreter-v1 that are copied, paused and resumed: each has chance of its
own, and code that runs goes on.

  HOTCELL_COPIES (4)         how many sandboxes are compared with each other
  HOTCELL_INTERPRETER=all    with numpy, bash and R, and with sandboxes that are copies of one that ran nothing
"""

import concurrent.futures
import json
import os

import pytest

from engine import artefact
from interpreter_server import interpreter_server
from interpreter_support import Failed, InterpreterClient

COPIES = int(os.environ.get("HOTCELL_COPIES", "4"))
ALL = os.environ.get("HOTCELL_INTERPRETER") == "all"
AT_ONCE = 2
STEPS = 48  # of a quarter of a second: longer than it takes the server to notice that a client is not there

# In each language: draw from whatever there is to draw from. These two kernels are in the template's memory.
CHANCE = {
    "python": """
import json, random, secrets, ssl, tempfile, uuid
print(json.dumps({
    "random": random.random(), "uuid1": str(uuid.uuid1()), "uuid4": str(uuid.uuid4()), "tempfile": tempfile.mktemp(),
    "secrets": secrets.token_hex(8), "ssl": ssl.RAND_bytes(8).hex()}))""",
    "javascript": """
const crypto = require('crypto'), fs = require('fs'), {Worker} = require('worker_threads');
const worker = await new Promise((resolve, reject) => new Worker(
  "require('worker_threads').parentPort.postMessage([Math.random(), require('crypto').randomUUID()])",
  {eval: true}).on('message', resolve).on('error', reject));
console.log(JSON.stringify({
  random: Math.random(), randomBytes: crypto.randomBytes(8).toString('hex'), randomUUID: crypto.randomUUID(),
  randomInt: crypto.randomInt(2 ** 47), getRandomValues: Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString('hex'),
  key: crypto.createECDH('prime256v1').generateKeys('hex'), mkdtemp: fs.mkdtempSync('/tmp/of-'),
  'random of a thread': worker[0], 'randomUUID of a thread': worker[1]}))""",
}
# Of these libraries and kernels nothing is there before a create; it takes a minute of processor time to load them, emulated.
SLOW = {
    "python": """
import json, multiprocessing, numpy
print(json.dumps({
    "numpy.random": numpy.random.rand(), "default_rng": numpy.random.default_rng().random(),
    "authkey": bytes(multiprocessing.current_process().authkey).hex()}))""",
    "bash": """echo "{\\"RANDOM\\": \\"$RANDOM $RANDOM $RANDOM\\", \\"SRANDOM\\": $SRANDOM, \\"mktemp\\": \\"$(mktemp -u)\\"}" """,
    "r": """cat(sprintf('{"runif": %.15f, "tempfile": "%s"}', runif(1), tempfile()))""",
}

COUNTING = f"""
import time
n, done = 0, None
print("begun", flush=True)
while n < {STEPS}:
    time.sleep(0.25)
    n += 1
print("done")
done = n
"""


@pytest.fixture(scope="module")
def server():
    with interpreter_server(node={"pool_each_max": AT_ONCE}) as s:
        yield s


@pytest.fixture(scope="module")
def client(server):
    with InterpreterClient(server, artefact("sdks")) as py:
        yield py


def drawn(client, **of):
    """{language: {what: a value}} of a new sandbox in which nothing has run."""
    box = client.create(**of)
    values = {}
    for language, code in [*CHANCE.items(), *(SLOW.items() if ALL else ())]:
        ran = box.run(code, language=language)
        assert not ran.error, ran
        values.setdefault(language, {}).update(json.loads(ran.stdout))
    box.call("kill")
    return values


def must_differ(found):
    same = [f"{language}: {what}" for language, values in found[0].items() for what in values
            if len({json.dumps(f[language][what]) for f in found}) != len(found)]
    assert not same, (same, found[:2])
    return sum(len(values) for values in found[0].values())


def test_chance_is_every_sandboxs_own(client):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(lambda _: drawn(client), range(COPIES)))
    print(f"\n{COPIES} sandboxes, {must_differ(found)} sources of chance, no value twice")


@pytest.mark.skipif(not ALL, reason="long")
def test_chance_is_the_own_of_copies_of_one_that_ran_nothing(client):
    source = client.create()
    snapshot = source.call("create_snapshot")["snapshot_id"]
    must_differ([drawn(client, template=snapshot) for _ in range(2)] + [drawn(client)])
    source.call("kill")


SEEDED = "random.getstate()[1][:4]"


def test_code_goes_on_where_a_sandbox_is_copied_and_where_it_is_paused(client):
    """And what chance has begun goes on, too: it is the user's by then."""
    box = client.create()
    seeds = box.run(f"import random; random.seed(7); {SEEDED}").text
    going = box.begin(COUNTING)
    assert going.first() == "begun\n"
    copies = box.fork(count=1, timeout=3600)
    copies.append(client.create(template=box.call("create_snapshot")["snapshot_id"]))
    ended = going.wait()
    assert ended.stdout == "begun\ndone\n" and not ended.error, "its client is still connected"
    for copy in copies:
        assert copy.run("done").text == str(STEPS)
        assert copy.run(SEEDED).text == seeds
        copy.call("kill")

    going = box.begin(COUNTING)
    assert going.first() == "begun\n"
    box.call("pause")
    with pytest.raises(Failed) as seen:
        going.wait()
    print(f"\nwho was connected sees {seen.value}")
    box = client.connect(box)
    assert box.run("done").text == str(STEPS)
    assert box.run(SEEDED).text == seeds
    box.call("kill")
