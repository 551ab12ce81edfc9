"""Code in the Python kernel, and what a client is told of it."""
import base64
import datetime
import json
import re

import pytest

VALUES = [
    # code, what the main result has
    ("1 + 1", {"text": "2"}),
    ("'a string'", {"text": "a string"}),
    ('"it\'s"', {"text": "it's"}),
    ("   6 * 7", {"text": "42"}),
    ("[1, {'a': None}]", {"text": "[1, {'a': None}]", "json": [1, {"a": None}]}),
    ("{'k': 1.5}", {"json": {"k": 1.5}}),
    ("{'big': 2**70}", {"text": "{'big': 1180591620717411303424}", "json": None}),
    ("{1: (2, [3]), None: True, False: 1.5}", {"json": {"1": [2, [3]], "null": True, "false": 1.5}}),
    ("import collections; collections.OrderedDict(a=[1])", {"json": {"a": [1]}}),
    ("collections.namedtuple('Pair', 'a b')(1, 2)", {"json": None}),
    ("[collections.namedtuple('Pair', 'a b')(1, 2)]", {"json": None}),
    ("import datetime as dt; [dt.date(2020, 1, 2), dt.datetime(2020, 1, 2, 3, 4, 5, 6)]",
     {"json": ["2020-01-02", "2020-01-02T03:04:05.000006"]}),
    ("{dt.date(2020, 1, 2): 1}", {"json": {"2020-01-02": 1}}),
    ("import dataclasses, enum; [enum.Enum('E', {'A': 'x'}).A, dataclasses.make_dataclass('D', ['a', '_b'])(1, 2)]",
     {"json": ["x", {"a": 1}]}),
    ("import numpy; [numpy.int64(3), numpy.float32(.5), numpy.array([[1], [2]]), numpy.datetime64('2020-01-02')]",
     {"json": [3, 0.5, [[1], [2]], "2020-01-02T00:00:00"]}),
    ("[numpy.array([object()])]", {"json": None}),
    ("['\\ud800']", {"text": "['\\ud800']", "json": None}),
    ("itself = []; itself.append(itself); itself", {"text": "[[...]]", "json": None}),
    ("!!echo a", {"json": ["a"]}),
    ("[float('nan')]", {"json": [None]}),
    ("await __import__('asyncio').sleep(0, 'later')", {"text": "later"}),
    ("import pandas as pd; pd.DataFrame({'a': [1, 2], 't': pd.to_datetime(['2020-01-02', None])})",
     {"data": {"a": [1, 2], "t": ["2020-01-02T00:00:00", None]}}),
    ("pd.DataFrame({1: [float('inf')], ('x', 'y'): ['é']})", {"data": {"1": [None], "('x', 'y')": ["é"]}}),
]


@pytest.mark.parametrize("code, want", VALUES, ids=[code[:30] for code, _ in VALUES])
def test_a_value_is_the_main_result(interp, code, want):
    ran = interp.run(code)
    assert not ran.errors, ran
    main, = [r for r in ran.results if r["is_main_result"]]
    assert {key: main.get(key) for key in want} == want
    assert main["extra"] == {}


DISPLAYS = [
    # MIME type, what is shown, key of the result
    ("text/html", "<b>x</b>", "html"),
    ("text/markdown", "# x", "markdown"),
    ("image/svg+xml", "<svg/>", "svg"),
    ("image/png", "AAAA", "png"),
    ("image/jpeg", "AAAA", "jpeg"),
    ("application/pdf", "AAAA", "pdf"),
    ("text/latex", "$x$", "latex"),
    ("application/json", {"x": 1}, "json"),
    ("application/javascript", "x()", "javascript"),
    ("e2b/data", {"a": [1]}, "data"),
    ("e2b/chart", {"type": "unknown"}, "chart"),
    ("application/x-mine", "mine", None),
]


@pytest.mark.parametrize("mime, value, key", DISPLAYS, ids=[d[0] for d in DISPLAYS])
def test_each_type_has_its_key(interp, mime, value, key):
    ran = interp.run(f"from IPython.display import display; display({{{mime!r}: {value!r}}}, raw=True)")
    result, = ran.results
    want = {"type": "result", "is_main_result": False, "extra": {} if key else {mime: value}}
    assert result == {**want, key: value} if key else result == want


def test_streams_have_times_and_come_while_code_runs(interp):
    ran = interp.run("import sys; print('out \\0 é😀'); print('err', file=sys.stderr)")
    assert (ran.stdout, ran.stderr) == ("out \0 é😀\n", "err\n")
    for event in ran.events:
        if event["type"] in ("stdout", "stderr"):
            # Python's fromisoformat() of before 3.11 reads no "Z"; E2B's server has never written one
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", event["timestamp"])
            when = datetime.datetime.fromisoformat(event["timestamp"])
            assert abs(when - datetime.datetime.now(datetime.timezone.utc)) < datetime.timedelta(minutes=1)


def test_an_error_has_name_value_and_traceback(interp):
    ran = interp.run("def f():\n    raise ValueError('wrong')\nf()")
    assert (ran.error["name"], ran.error["value"]) == ("ValueError", "wrong")
    # its parts with nothing between them, as E2B's server has them
    assert re.fullmatch(r"-{75}ValueError {32}Traceback \(most recent call last\)(Cell|Input) In.*ValueError: wrong",
                        ran.error["traceback"], re.DOTALL), ran.error
    assert "f()" in ran.error["traceback"] and "\x1b" not in ran.error["traceback"]
    assert len(ran.errors) == 1 and interp.run("1").text == "1"
    assert interp.run("def broken(:").error["name"] == "SyntaxError"


def test_executions_are_counted_and_remember(interp):
    first = interp.run("remembered = 20")
    assert interp.run("remembered + 1").text == "21"
    assert interp.run("!echo from a shell").count == first.count + 2
    assert interp.run("input()").error["name"] == "StdinNotImplementedError"


def test_what_a_shell_prints_is_output(interp):
    assert interp.run("!echo hello; echo oops >&2").stdout.replace("\r", "").startswith("hello\n")


IMAGES = ["image.show()", "image", "image.save('x.png')"]


@pytest.mark.parametrize("last", IMAGES)
def test_images_are_shown(interp, last):
    ran = interp.run(f"from PIL import Image\nimage = Image.new('RGB', (4, 4))\n{last}")
    assert base64.b64decode(ran.results[0]["png"]).startswith(b"\x89PNG"), ran


def test_a_figure_and_a_value_are_two_results(interp):
    ran = interp.run("import matplotlib.pyplot as plt\nplt.plot([1, 2], [3, 4])\nplt.show()\n7")
    figure, value = ran.results
    assert base64.b64decode(figure["png"]).startswith(b"\x89PNG") and figure["text"].startswith("<Figure")
    assert figure["chart"]["elements"][0]["points"] == [[1, 3], [2, 4]] and not figure["is_main_result"]
    assert value["text"] == "7" and value["is_main_result"]


def test_variables_of_one_execution_are_gone_after_it(interp):
    value = "it's \"a\" \\ \n€😀"
    seen = interp.run("import os, json; print(json.dumps(os.environ['MINE']))", env_vars={"MINE": value})
    assert json.loads(seen.stdout) == value
    assert interp.run("os.environ.get('MINE', 'gone')").text == "gone"
    failed = interp.run("raise OSError", env_vars={"MINE": "x"})
    assert failed.error["name"] == "OSError" and interp.run("'MINE' in os.environ").text == "False"


def test_nulls_are_nothing(interp):
    assert interp.run("1", context_id=None, language=None, env_vars=None).text == "1"
