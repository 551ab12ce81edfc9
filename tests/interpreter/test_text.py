"""Text that is no text: what a kernel writes arrives, with U+FFFD for what clients cannot be told."""
import pytest

from conftest import need


@pytest.mark.parametrize("code, text", [
    (r"print('a\udcffb')", "a\ufffdb\n"),  # the name of a file that is no UTF-8
    (r"print('a\ud800b')", "a\ufffdb\n"),
    (r"print('\ud83d\ude00')", "\U0001f600\n"),  # two halves, next to each other
    (r"print('\U0001f600 \0')", "\U0001f600 \0\n"),
])
def test_printed_by_python(interp, code, text):
    ran = interp.run(code)
    assert (ran.stdout, ran.stderr, ran.error) == (text, "", None)


def test_an_error_is_an_error_whatever_it_says(interp):
    ran = interp.run(r"raise ValueError('a\udcffb\ud800c')")
    assert (ran.error["name"], ran.error["value"]) == ("ValueError", "a\ufffdb\ufffdc")


def test_results_of_python(interp):
    assert interp.run(r"{'a\0b': 1}").results[0]["json"] == {"a\ufffdb": 1}
    huge = interp.run("[10 ** 30]")  # too large for orjson, so E2B's kernel gives it as text alone
    assert huge.error is None and "json" not in huge.results[0] and huge.results[0]["text"] == str([10 ** 30])
    shown = interp.run("display({'application/json': [10 ** 30]}, raw=True)")
    assert shown.error is None and shown.results[0]["json"] == [1e30]


def test_printed_by_javascript(interp):
    need("javascript")
    ran = interp.run(r"console.log('a\ud800b \u{1f600}'); ({'a\0b': '\udc00'})", language="js")
    assert ran.stdout == "a\ufffdb \U0001f600\n"
    assert ran.results[0]["json"] == {"a\ufffdb": "\ufffd"}


def test_what_cannot_be_read_is_an_error(interp):
    """Nested deeper than any client could take it."""
    need("javascript")
    ran = interp.run("let deep = []; for (let i = 0; i < 3000; i++) deep = [deep]; deep", language="js")
    assert ran.error["name"] == "UnreadableMessage"


def test_names_that_no_variable_can_have(interp):
    """They are left out; the others are set, and gone afterwards."""
    env = {"": "x", "a=b": "y", "ODD.NAME": "z", "PLAIN": "1"}
    code = "import os; print(os.environ.get('ODD.NAME'), os.environ.get('PLAIN'))"
    assert interp.run(code, env_vars=env).stdout == "z 1\n"
    assert interp.run(code).stdout == "None None\n"
