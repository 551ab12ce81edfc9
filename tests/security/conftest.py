"""conftest.py - puts the warden client and the leak checker within reach of these tests."""

import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "warden"), str(TESTS / "faults")]

from warden_fixtures import *  # noqa: E402, F401, F403
