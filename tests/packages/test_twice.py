"""test_twice.py - packages that are made twice, in folders with other names, are the same to the byte. Long: no compiler's cache."""

import os
import subprocess

import pytest

from engine import TOP

MAKE_SECONDS = 1800


@pytest.mark.skipif("HOTCELL_PACKAGES_TWICE" not in os.environ, reason="HOTCELL_PACKAGES_TWICE is not set: minutes")
def test_two_builds_are_the_same(tmp_path):
    made = []
    for folder in (tmp_path / "a", tmp_path / "another-folder/deeper"):
        folder.mkdir(parents=True)
        subprocess.run([TOP / "tools/packages", folder, "hotcell", "guest"], check=True, timeout=MAKE_SECONDS,
                       env={**os.environ, "HOTCELL_PACKAGES_LEVEL": "3", "CCACHE_DISABLE": "1"})
        made.append({file.name: file.read_bytes() for file in folder.iterdir()})
    first, second = made
    assert sorted(first) == sorted(second) and len([name for name in first if name.endswith(".deb")]) == 3
    assert [name for name in first if first[name] != second[name]] == []
