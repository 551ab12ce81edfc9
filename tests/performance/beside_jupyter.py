"""beside_jupyter.py - in a guest: `1 + 1` by hotcell-interp, and by a bare jupyter_client that drives the same kernel.

    beside_jupyter.py PAIRS

In turns, from one process, over kept connections. Both take all that the kernel says of an execution. It prints
{"ours": [milliseconds], "bare": [milliseconds]}.
"""

import contextlib
import http.client
import json
import os
import queue
import subprocess
import sys
import tempfile
import time

from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.connect import write_connection_file

KERNEL = "/usr/lib/hotcell/interpreter/kernels/python/kernel.json"
WARM = 10
SECONDS = 300


class Ours:
    def __init__(self):
        self.connection = http.client.HTTPConnection("127.0.0.1", 49999, timeout=SECONDS)
        self.body = json.dumps({"code": "1 + 1"})

    def once(self):
        self.connection.request("POST", "/execute", self.body, {"Content-Type": "application/json"})
        lines = [json.loads(line) for line in self.connection.getresponse().read().splitlines()]
        assert any(line.get("text") == "2" for line in lines), lines


class Bare:
    def __init__(self, folder):
        path = os.path.join(folder, "connection.json")
        write_connection_file(path, transport="ipc", ip=os.path.join(folder, "k"))
        spec = json.load(open(KERNEL))
        words = [w.replace("{connection_file}", path).replace("{resource_dir}", os.path.dirname(KERNEL)) for w in spec["argv"]]
        self.process = subprocess.Popen(words, env={**os.environ, **spec.get("env", {})}, cwd="/home/user",
                                        stdout=subprocess.DEVNULL)
        self.client = BlockingKernelClient(connection_file=path)
        self.client.load_connection_file()
        self.client.start_channels(hb=False, stdin=False)
        self.wait_ready()

    def wait_ready(self):
        """It answers, and what it publishes is heard."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            self.client.kernel_info()
            self.client.get_shell_msg(timeout=SECONDS)
            with contextlib.suppress(queue.Empty):
                while True:
                    self.client.get_iopub_msg(timeout=1)
                    end = 0

    def once(self):
        asked = self.client.execute("1 + 1", allow_stdin=False)
        said = []
        while True:
            message = self.client.get_iopub_msg(timeout=SECONDS)
            if message["parent_header"].get("msg_id") != asked:
                continue
            said.append(message)
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
        while self.client.get_shell_msg(timeout=SECONDS)["parent_header"].get("msg_id") != asked:
            pass
        assert any(m["msg_type"] == "execute_result" and m["content"]["data"]["text/plain"] == "2" for m in said), said

    def close(self):
        self.client.stop_channels()
        self.process.kill()
        self.process.wait()


def main():
    pairs = int(sys.argv[1])
    taken = {"ours": [], "bare": []}
    with tempfile.TemporaryDirectory() as folder:
        both = {"ours": Ours(), "bare": Bare(folder)}
        try:
            for n in range(WARM + pairs):
                for name in sorted(both, reverse=n % 2 == 0):
                    begun = time.monotonic()
                    both[name].once()
                    if n >= WARM:
                        taken[name].append((time.monotonic() - begun) * 1000)
        finally:
            both["bare"].close()
    print(json.dumps(taken))


if __name__ == "__main__":
    main()
