"""Interpreters for tests: one that a file shares, and one that a test may break."""
import json
import pathlib
import shutil
import subprocess

import pytest

from lone_interp import Interp, KERNELS

PYTHON_PARTS = ("ipykernel", "matplotlib", "pandas", "PIL")


def missing(language):
    """Why there is no kernel of this language here; None: there is one."""
    if language == "python":
        probe = "; ".join(f"import {part}" for part in PYTHON_PARTS)
        found = subprocess.run(["/usr/bin/python3", "-c", probe], capture_output=True, text=True)
        return None if found.returncode == 0 else found.stderr.strip().splitlines()[-1]
    spec = pathlib.Path(KERNELS, language, "kernel.json")
    if not spec.exists():
        return f"{spec} is not there"
    program = json.loads(spec.read_text())["argv"][0]
    return None if shutil.which(program) else f"{program} is not installed"


def need(language):
    why = missing(language)
    if why:
        pytest.skip(f"no {language} kernel here: {why}")


@pytest.fixture(scope="module")
def interp(tmp_path_factory):
    """With a Python kernel. Tests leave it as they found it, but for what their code defines."""
    need("python")
    made = Interp(tmp_path_factory.mktemp("i")).start()
    yield made
    assert made.stop() == 0


@pytest.fixture
def own_interp(tmp_path_factory):
    """Makes interpreters that end with the test."""
    made = []

    def make(**how):
        made.append(Interp(tmp_path_factory.mktemp("o"), **how))
        return made[-1]

    need("python")
    yield make
    for each in made:
        if each.process:
            each.process.kill()
            each.process.wait()
