"""test_images_nft.py - the rules of the kernel for the images daemon's user: registries and resolvers, and no other private address.

In the namespaces of test_egress_nft.py; what they refuse is refused at once, so that a build says so.
"""

import pathlib
import subprocess

import pytest
from test_egress_nft import INSIDE, PATIENCE_SECONDS, PUBLIC, RESOLVER, SERVICE, USER, Host, namespaces, run, server
from warden import build_dir

PROGRAM = "src/images/hotcell-images"


@pytest.fixture(name="host")
def make_host():
    with namespaces(Host()) as h, server(h.far), server(h.near):
        yield h


def test_its_user_reaches_the_internet_and_what_is_named(host, tmp_path):
    config = tmp_path / "images.conf"
    config.write_text(f"user = {USER}\nresolvers = {RESOLVER}\nnetworks = {SERVICE} 10.66.0.2/32\n")
    rules = run(build_dir() / PROGRAM, "--nft", config)
    for ip in INSIDE:  # the test can see a pass
        host.must_pass(ip, 80)
    for _ in range(2):  # loaded twice is loaded once
        host.near_run("nft", "-f", "-", input=rules)
    host.must_pass(PUBLIC, 80)
    host.must_pass(RESOLVER, 53)
    host.must_pass(SERVICE, 5432)
    host.must_pass("10.66.0.2", 80)
    for ip in INSIDE:
        host.must_fail(ip, 80)
    host.must_fail(RESOLVER, 80)
    host.must_fail("127.0.0.1", 80)
    host.must_fail("94.0.0.1", 80)  # the host's own, though public
    host.must_fail("fd66::2", 80)
    host.must_pass(INSIDE[0], 80, uid=0)  # nobody else is meant
    host.near_run("nft", "delete", "table", "inet", "hotcell_images")
    host.must_pass(INSIDE[0], 80)


@pytest.mark.parametrize("setting", ["networks = x", "networks = 10.1.2.3/8", "resolvers = 1.2.3.4:53", "proxy = here",
                                     "user = "])
def test_settings_that_make_no_sense_are_refused(tmp_path, setting):
    config = tmp_path / "images.conf"
    config.write_text(setting + "\n" + ("" if setting.startswith("user") else f"user = {USER}\n"))
    done = subprocess.run([build_dir() / PROGRAM, "--nft", config], capture_output=True, text=True, check=False,
                          timeout=PATIENCE_SECONDS)
    assert done.returncode == 1 and done.stdout == "" and done.stderr


def test_the_unit_loads_them_before_and_removes_them_after():
    unit = (pathlib.Path(__file__).parents[2] / "deploy/systemd/hotcell-images.service").read_text()
    lines = [line for line in unit.splitlines() if line.startswith("Exec")]
    assert [line.split("=")[0] for line in lines] == ["ExecStartPre", "ExecStartPre", "ExecStopPost", "ExecStart"]
    assert "--nft" in lines[0] and "nft -f" in lines[1] and "delete table inet hotcell_images" in lines[2]
