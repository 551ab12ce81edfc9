"""warden_fixtures.py - pytest fixtures around a warden of one's own; a conftest.py imports them.

Every fixture ends by asking leaks.py whether anything is left: a test that leaks fails, whatever
it was about.
"""

import atexit
import functools
import os
import shutil
import tempfile

import pytest

import leaks
from protocol import State
from warden import Warden, build_dir, wait_for


@functools.cache
def probe_path():
    """The program that stands in QEMU's place, where everybody may run it: a build folder may be
    closed to others."""
    place = tempfile.mkdtemp(prefix="hotcell-probe-", dir=os.environ.get("HOTCELL_TEST_DIR"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    os.chmod(place, 0o755)
    return shutil.copy(build_dir() / "tests/security/jail_probe", place)


def scope_of(warden):
    return leaks.Scope(warden.state, warden.run, warden.cgroup, warden.uid_base, warden.uids)


class Watched(Warden):
    """A warden that knows what was there before it, and can say what is left."""

    def __init__(self, **settings):
        self.before = leaks.baseline()
        super().__init__(**settings)

    def leaks(self, keep=(), grace=leaks.GRACE_SECONDS):
        return leaks.find(scope_of(self), self.before, keep, [os.getpid()], grace)

    def check_clean(self, keep=()):
        found = self.leaks(keep)
        assert not found, "left behind:\n" + "\n".join(map(str, found))

    def stop_all(self):
        """Every VM, also those that somebody else is stopping."""
        for vm, cell in self.list().items():
            if cell.state != State.STOPPING:
                self.stop(vm)
        wait_for(lambda: not self.list(), "every VM is gone")


def use(**settings):
    """Start one, hand it out, stop its VMs, and check that nothing is left with it and without."""
    with Watched(**settings) as warden:
        warden.start()
        yield warden
        if warden.process is None:
            warden.start()
        if warden.client is None:
            warden.wait_ready()
        warden.stop_all()
        for path in (warden.state / "templates").glob(".build-*"):
            warden.template_drop(path.name.removeprefix(".build-"))
        warden.check_clean()
        warden.kill()
        warden.check_clean()


@pytest.fixture
def warden():
    """A warden with the real QEMU."""
    yield from use()


@pytest.fixture
def stand_in():
    """A warden whose VMs are jail_probe: cheap, and as hostile as its scenario."""
    yield from use(qemu=probe_path())


@pytest.fixture(scope="module")
def shared_warden():
    """One warden with the real QEMU for all tests of a module."""
    yield from use()


@pytest.fixture(scope="module")
def shared_stand_in():
    yield from use(qemu=probe_path())
