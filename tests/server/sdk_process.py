"""sdk_process.py - a process in which a published package lives: lines of JSON to it and from it.

A class that uses it has read(), which is run in a thread, and ends what __enter__ began.
"""

import json
import os
import pathlib
import subprocess
import threading


def sdk_words(sdks, language, client):
    """The command of a client program, a path without its ending. `sdks`: artefact("sdks")."""
    if language == "python":
        return [sdks / "newest/python/bin/python", client.with_suffix(".py")]
    modules = sdks / "newest/js/node_modules"
    own = modules / ".bin/node"
    return [own if own.exists() else "node", client.with_suffix(".mjs"), modules]


class SdkProcess:
    def __init__(self, server, command, key=None):
        """`server` has `url`, `key` and `base`."""
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("E2B_", "PYTHON")) and "proxy" not in name.lower()}
        self.env = {**kept, "E2B_API_URL": server.url, "E2B_SANDBOX_URL": server.url, "E2B_API_KEY": key or server.key,
                    "PYTHONDONTWRITEBYTECODE": "1"}
        self.command, self.process = command, None
        self.log_path = pathlib.Path(server.base) / f"sdk-{id(self)}.log"

    def __enter__(self):
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(self.command, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=log, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        return self

    def say(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
