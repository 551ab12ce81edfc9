"""Code in the JavaScript kernel: state, await, imports, TypeScript, errors, and loops that end."""
import concurrent.futures
import random
import select
import subprocess

import pytest

from conftest import need
from lone_interp import Interp, events_of, next_event


@pytest.fixture(scope="module")
def js(tmp_path_factory):
    need("javascript")
    probe = subprocess.run(["/usr/bin/node", "-e", "require('acorn'); require('typescript')"], capture_output=True,
                           env={"NODE_PATH": "/usr/local/lib/node_modules:/usr/share/nodejs"}, text=True)
    if probe.returncode:
        pytest.skip("no javascript kernel here: node-acorn and node-typescript are not installed")
    made = Interp(tmp_path_factory.mktemp("j"), eager=("javascript",)).start()
    yield made
    assert made.stop() == 0


VALUES = [
    # code, text of the result (None: there is none), what is printed
    ("1 + 1", "2", ""),
    ("'quoted'", "quoted", ""),
    ("console.log('Hello, World!')", None, "Hello, World!\n"),
    ("await Promise.resolve('later')", "later", ""),
    ("\n    import { readFileSync } from 'fs'\n    console.log(typeof readFileSync)\n", None, "function\n"),
    ("import os, * as all from 'node:os'; os.EOL === all.EOL", "true", ""),
    ("import path, { join as j } from 'path'; j('a', path.basename('/b/c'))", "a/c", ""),
    ("(await import('util')).inspect(1)", "1", ""),
    ("const { sep } = require('path'); sep", "/", ""),
    ("var x = 1; { let x = 2 } x", "1", ""),
    ("undefined", None, ""),
    ("let later_\nlater_ = 4\n;[later_].map(v => v + 1)[0]", "5", ""),
    ("for (const v of [1, 2]) { console.log(v) }", None, "1\n2\n"),
    ("if (true) { 5 }", None, ""),
    ("label: for (;;) { break label }\n// a comment\n'end' // another", "end", ""),
    ("const text: string = 'typed'; text", "typed", ""),
    ("interface I { a: number }\nenum E { A = 3 }\nconst q = <T>(v: T): T => v\nq(E.A)", "3", ""),
    ("import type { Stats } from 'fs'\nconst none: Stats | null = null; none", "null", ""),
    ("export const exported = 8; exported", "8", ""),
    ("with ({ sloppy: 3 }) { console.log(sloppy) }", None, "3\n"),
    ("new (class Shape { sides() { return 3 } })().sides()", "3", ""),
    ("", None, ""),
]


@pytest.mark.parametrize("code, text, printed", VALUES, ids=[v[0].strip()[:30] for v in VALUES])
def test_a_cell_has_a_value(js, code, text, printed):
    ran = js.run(code, language="js")
    assert (ran.error, ran.text, ran.stdout) == (None, text, printed)


def test_what_a_cell_declares_stays_and_may_be_declared_again(js):
    js.run("const a = 1, { b, c: [d] } = { b: 2, c: [3] }\nfunction f(x) { return g(x) + a }\nclass K { m() { return 5 } }\nlet z",
           language="js")
    ran = js.run("const a = 10; function g(x) { return x * 2 }\n[f(1), b, d, new K().m(), z]", language="javascript")
    assert (ran.text, ran.results[0]["json"]) == ("[ 12, 2, 3, 5, undefined ]", [12, 2, 3, 5, None])
    assert js.run("function g(x) { return x * 3 }; f(1)", language="js").text == "13"


ERRORS = [
    # code, name, part of the value, part of the traceback
    ("throw new TypeError('bad')", "TypeError", "bad", "TypeError: bad\n    at cell"),
    ("function deep() {\n  null.x\n}\ndeep()", "TypeError", "Cannot read properties of null", "deep (cell"),
    ("foo bar", "SyntaxError", "Unexpected token", ""),
    ("await Promise.reject(new RangeError('r'))", "RangeError", "r", ""),
    ("throw 'text'", "Error", "text", "Uncaught text"),
    ("import { nothing } from 'fs'", "SyntaxError", "fs has no export named nothing", ""),
    ("import x from 'no-such-package'", "Error", "Cannot find module 'no-such-package'", ""),
    ("const t: number = ;", "SyntaxError", "", ""),
]


@pytest.mark.parametrize("code, name, value, trace", ERRORS, ids=[e[0][:30] for e in ERRORS])
def test_an_error_has_name_value_and_traceback(js, code, name, value, trace):
    ran = js.run(code, language="js")
    assert ran.error and ran.error["name"] == name and value in ran.error["value"] and trace in ran.error["traceback"], ran
    assert "/kernels/javascript/" not in ran.error["traceback"]
    assert js.run("'well'", language="js").text == "well"


def test_an_error_nobody_waits_for_is_output(js):
    ran = js.run("setTimeout(() => { throw new Error('late') }, 1); Promise.reject(new Error('lost'));"
                 "await new Promise(r => setTimeout(r, 100)); 7", language="js")
    assert ran.text == "7" and "late" in ran.stderr and "lost" in ran.stderr


LOOPS = ["while (true) {}", "await new Promise(() => {})", "await 1; for (;;) {}", "for (;;) await 1",
         "require('child_process').execSync('sleep 300')", "for (;;) console.log('x')",
         "setImmediate(() => { for (;;); }); await new Promise(() => {})",
         "setTimeout(() => { for (;;); }); await new Promise(() => {})", "process.nextTick(() => { for (;;); })"]


@pytest.mark.parametrize("loop", LOOPS)
def test_who_leaves_is_not_waited_for(js, loop):
    js.run("globalThis.kept = 'kept'", language="js")
    connection, answer = js.open(loop, language="js")
    assert next_event(answer)["type"] == "number_of_executions"
    waiting = concurrent.futures.ThreadPoolExecutor(1).submit(js.run, "kept", 30, language="js")
    answer.close()
    connection.close()
    assert waiting.result().text == "kept"


def test_variables_of_one_execution(js):
    value = "it's \"a\" \\ \n€😀"
    assert js.run("process.env.MINE === " + repr(value).replace("😀", "\\u{1F600}"), language="js", env_vars={"MINE": value}).text == "true"
    assert js.run("process.env.MINE || 'gone'", language="js").text == "gone"


def test_types_of_results(js):
    ran = js.run("display({'text/html': '<b>x</b>'}); ({_toHtml: () => '<i>', _toMime: () => ({'x/y': 1})})", language="js")
    shown, main = ran.results
    assert (shown["html"], shown["is_main_result"]) == ("<b>x</b>", False)
    assert (main["html"], main["extra"], main["is_main_result"]) == ("<i>", {"x/y": 1}, True)


def test_typescript_has_a_kernel_of_its_own(js):
    js.run("globalThis.only_js = 1", language="js")
    assert js.run("typeof only_js", language="ts").text == "undefined"


def test_output_waits_for_who_reads_it(js):
    connection, answer = js.open("for (let i = 0; i < 200_000; i++) console.log('x'.repeat(63))", 120, language="js")
    assert sum(len(e["text"]) for e in events_of(answer.read()) if e["type"] == "stdout") == 200_000 * 64
    connection.close()
    js.must_have_taken(48)


def test_chance_is_its_own(js):
    code = "Math.random() + ',' + (Math.random() < 1)"
    seen = {js.run(code, context_id=js.context(language="js")["id"]).text for _ in range(3)}
    assert len(seen) == 3


ENDLESS = [
    "while (true) {}",
    "await new Promise(() => {})",
    "for (;;) console.log('x'.repeat(100))",
    "setInterval(() => { for (let i = 0; i < 1e6; i++); }, 1); await new Promise(() => {})",
    "import('fs').then(() => { for (;;); })",
    "process.nextTick(() => { for (;;); }); await new Promise(() => {})",
    "try { while (1); } finally { while (1); }",
    "setImmediate(() => { throw new Error('x') }); while (1);",
    "setTimeout(() => { for (;;) console.log('y'); }, 0); await new Promise(() => {})",
]


def test_whenever_it_is_interrupted_the_kernel_stays(js):
    """In the middle of Node's own code as well as of the user's. Of 200 interrupts six once cost a kernel."""
    kernels, chance = js.kernels_alive(), random.Random(7)
    for turn in range(80):
        connection, answer = js.open(chance.choice(ENDLESS), language="js")
        select.select([], [], [], chance.choice([0, 0.02, 0.1, 0.3]) * chance.random())
        answer.close()
        connection.close()
        assert js.run(f"1 + {turn}", 60, language="js").text == str(1 + turn)
    assert js.kernels_alive() == kernels
