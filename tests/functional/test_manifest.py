"""test_manifest.py - a template that does not fit this host is refused, with a typed reason."""

import json
import os

import pytest

from engine import Driver, Engine

# What is changed in the manifest, and the reason it must be refused with.
CHANGES = {
    "format": (lambda m: m.update(format=m["format"] + 1), "format"),
    "VMM version": (lambda m: m["vmm"].update(version="QEMU emulator version 1.0"), "vmm_version"),
    "CPU model": (lambda m: m["vmm"].update(cpu="486"), "cpu_model"),
    "accelerator": (lambda m: m["vmm"].update(accel="other"), "accel"),
    "arguments": (lambda m: m["vmm"].update(arguments="-machine microvm"), "arguments"),
    "kernel": (lambda m: m["files"]["kernel"].update(crc32c="00000000"), "kernel"),
    "memory checksum": (lambda m: m["files"]["memory"].update(crc32c="00000000"), "checksum"),
    "state length": (lambda m: m["files"]["state"].update(length=1), "checksum"),
}


@pytest.fixture(scope="module")
def engine():
    with Engine() as e:
        yield e


@pytest.fixture
def manifest(engine):
    """The template's manifest, put back afterwards."""
    path = engine.warden.state / "templates/base/manifest"
    text = path.read_text()
    yield path
    path.chmod(0o644)
    path.write_text(text)
    path.chmod(0o444)


def refusal(engine):
    """Why a driver that has verified nothing yet does not make a sandbox."""
    with Driver(engine.warden.socket_path, engine.warden.state) as fresh:
        return fresh.error("create", template="base")


@pytest.mark.parametrize("change", CHANGES)
def test_a_manifest_that_differs_is_refused(engine, manifest, change):
    edit, reason = CHANGES[change]
    content = json.loads(manifest.read_text())
    edit(content)
    manifest.chmod(0o644)
    manifest.write_text(json.dumps(content))
    e = refusal(engine)
    assert (e.code, e.reason) == ("mismatch", reason), e


@pytest.mark.parametrize("file", ["memory", "state", "disk", "overlay"])
def test_a_file_that_changed_is_refused(engine, file):
    path = engine.warden.state / "templates/base" / file
    path.chmod(0o644)
    with open(path, "r+b") as f:
        f.seek(4096 if file in ("memory", "disk") else 100)
        old = f.read(1)
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([old[0] ^ 1]))
    try:
        e = refusal(engine)
        assert (e.code, e.reason) == ("mismatch", "checksum"), e
        assert file in str(e)
    finally:
        with open(path, "r+b") as f:
            f.seek(4096 if file in ("memory", "disk") else 100)
            f.write(old)
        path.chmod(0o444)
    assert engine.fresh_driver_create()["status"] == "running"


def test_a_manifest_that_is_not_one_is_refused(engine, manifest):
    manifest.chmod(0o644)
    for text in ("", "{", "[]", '{"format": "x"}', "\0" * 100):
        manifest.write_text(text)
        assert refusal(engine).code in ("mismatch", "invalid"), text
