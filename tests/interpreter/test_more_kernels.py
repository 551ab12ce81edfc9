"""R and Java, where they are installed: as the SDKs' own tests ask of them."""
import concurrent.futures
import pathlib

import pytest

from conftest import need
from lone_interp import Interp, next_event

JJAVA = pathlib.Path("/usr/share/jupyter/kernels/java/jjava.jar")


@pytest.fixture(scope="module", params=["r", "java"])
def more(request, tmp_path_factory):
    need(request.param)
    if request.param == "java" and not JJAVA.exists():
        pytest.skip(f"no java kernel here: {JJAVA} is not installed")
    made = Interp(tmp_path_factory.mktemp("m"), eager=(request.param,)).start()
    yield made
    assert made.stop() == 0


WORDS = {
    "r": {"print": ('print("Hello, World!")', ['[1] "Hello, World!"\n']), "keep": "x <- 5", "kept": ("x", "[1] 5"),
          "env": ("Sys.getenv('MINE', unset = 'gone')", '[1] "%s"'), "fail": 'stop("bad")', "loop": "while (TRUE) {}"},
    "java": {"print": ('System.out.println("Hello, World!")', ["Hello, World!", "\n"]), "keep": "int x = 5;", "kept": ("x", "5"),
             "env": ('System.getProperty("MINE", "gone")', "%s"), "fail": "int y = 1 / 0;", "loop": "while (true) {}"},
}


def words(interp):
    language, = interp.eager
    return language, WORDS[language]


def test_it_prints_and_remembers(more):
    language, say = words(more)
    ran = more.run(say["print"][0], language=language)
    assert [e["text"] for e in ran.events if e["type"] == "stdout"] == say["print"][1]
    more.run(say["keep"], language=language)
    assert more.run(say["kept"][0], language=language).results[0]["text"] == say["kept"][1]


def test_variables_of_one_execution(more):
    language, say = words(more)
    code, form = say["env"]
    seen = more.run(code, language=language, env_vars={"MINE": "mine"})
    assert seen.results[0]["text"] == form % "mine"
    assert more.run(code, language=language).results[0]["text"] == form % "gone"


def test_an_error_is_one(more):
    language, say = words(more)
    ran = more.run(say["fail"], language=language)
    assert ran.error and ran.error["name"] and "\x1b" not in ran.error["traceback"]


def test_who_leaves_is_not_waited_for(more):
    language, say = words(more)
    more.run(say["keep"], language=language)
    connection, answer = more.open(say["loop"], language=language)
    assert next_event(answer)["type"] == "number_of_executions"
    waiting = concurrent.futures.ThreadPoolExecutor(1).submit(more.run, say["kept"][0], 30, language=language)
    answer.close()
    connection.close()
    assert waiting.result().results[0]["text"] == say["kept"][1]
