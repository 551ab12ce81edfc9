"""test_sdks.py - the published, unmodified `e2b` packages against a whole server.

What is tested stands in sdk_sync.py, sdk_async.py and sdk.mjs; they run in the environment of the SDKs
(tools/artefact sdks) and know of the server what a user would: two addresses and a key.
"""

import os
import pathlib
import shutil
import subprocess

import pytest

from engine import artefact
from server import Server

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 900


@pytest.fixture(scope="module")
def sdks():
    return artefact("sdks")


@pytest.fixture(scope="module")
def server():
    with Server(node={"pool": 1}) as s:
        yield s


@pytest.fixture
def environment(server):
    """As a user's: nothing of ours but what `tools/dev up` prints."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("E2B_", "PYTHON")) and "proxy" not in name.lower()}
    return {**kept, "E2B_API_URL": server.url, "E2B_SANDBOX_URL": server.url, "E2B_API_KEY": server.key,
            "PYTHONDONTWRITEBYTECODE": "1"}


def run(command, environment, **more):
    r = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, **more)
    print(r.stdout[-20000:], r.stderr[-5000:])
    assert r.returncode == 0, "the SDK's tests failed; see above"
    return r.stdout


def run_python(sdks, environment, name):
    return run([sdks / "python/bin/python", "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider",
                "--confcutdir", HERE, "-c", "/dev/null", "--rootdir", HERE, HERE / name], environment)


def test_python_sync(server, sdks, environment):
    run_python(sdks, environment, "sdk_sync.py")


def test_python_async(server, sdks, environment):
    run_python(sdks, environment, "sdk_async.py")


def test_javascript(server, sdks, environment, tmp_path):
    (tmp_path / "node_modules").symlink_to(sdks / "js/node_modules")
    shutil.copy(HERE / "sdk.mjs", tmp_path)
    own = sdks / "js/node_modules/.bin/node"
    node = own if own.exists() else "node"
    run([node, "--test", "--test-reporter=spec", "sdk.mjs"], environment, cwd=tmp_path)


def test_nothing_is_left_when_the_sdks_are_done(server):
    assert server.ids() == set()
