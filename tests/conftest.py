"""conftest.py - lets every test find the modules the folders share."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
for folder in ("driver", "engine", "examples", "faults", "images", "internet", "interpreter", "node", "packages", "performance", "power", "security", "server", "warden"):
    sys.path.insert(0, str(HERE / folder))
