"""test_images_calls.py - the images daemon does all it does with the system calls it has.

None that it makes is refused, or the fixture says so; test_needed_calls.py runs this with one call less each time, and each
must be missed here. What happens too seldom to be waited for is made to happen. Its jobs are others' business: they have
filters of another kind (test_images_taken.py).
"""

import os
import pathlib
import platform
import signal

import pytest

from lone_images import CANCEL, LoneImages, Refused, new_folder
from made_images import Image
from taken import Taken, may_make
from warden import is_sanitized, wait_for

PATIENCE = 30
# As in test_egress_calls.py; and it cuts off a forkserver that does not answer.
SELDOM = ("brk", "shutdown", "epoll_wait", "epoll_pwait", "fstat", "newfstatat", "clock_gettime", "futex", "mmap", "mremap", "munmap", "write")

pytestmark = pytest.mark.skipif(is_sanitized(), reason="a build with sanitizers allows what they need")
known_registers = pytest.mark.skipif(platform.machine() != "x86_64", reason="its registers are not known here")


@pytest.fixture(name="base")
def make_base():
    with new_folder() as made:
        yield pathlib.Path(made)


@pytest.fixture(name="images")
def run_images(base):
    with LoneImages(base) as images:
        yield images


def test_an_image_is_made(base, images):
    archive = Image([{"a": b"1"}]).layout_archive(base / "x.tar")
    assert images.make(archive=archive, disk=base / "disk").digest
    with pytest.raises(Refused):
        images.make("not an image")


def test_credentials_are_opened(images):
    with pytest.raises(Refused) as why:
        images.make("127.0.0.1:1/x", credentials=("user", "password"))
    assert why.value.code == "unavailable"


def test_a_job_is_cancelled(base, images):
    archive = Image([{"a": b"TAKE LONG"}], compress=False).layout_archive(base / "x.tar")
    tag = images.begin(archive=archive, disk=base / "disk")
    images.send(CANCEL, of=tag)
    with pytest.raises(Refused):
        images.result(tag)


def test_clients_come_and_go(images):
    for _ in range(10):
        assert images.facts()["sealKey"]
        images.hang_up()


def test_without_its_forkserver_it_ends(base):
    """And says so; systemd starts another."""
    images = LoneImages(base).start()
    children = pathlib.Path(f"/proc/{images.daemon.pid}/task/{images.daemon.pid}/children").read_text().split()
    signal.pidfd_send_signal(os.pidfd_open(int(children[0])), signal.SIGKILL)
    assert images.daemon.process.wait(PATIENCE) == 1
    assert "the forkserver of jobs ended" in images.daemon.log()


@known_registers
def test_what_libraries_do_elsewhere_is_allowed(images):
    may_make(images.daemon.pid, *SELDOM)


@known_registers
def test_a_bug_ends_it_as_a_bug(images):
    """abort(), as a failed assertion calls it: nothing is refused on the way."""
    with Taken(images.daemon.pid) as taken:
        taken.go_on_at("abort")
    assert images.daemon.process.wait(PATIENCE) == -signal.SIGABRT
