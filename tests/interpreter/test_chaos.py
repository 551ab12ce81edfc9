"""Clients that leave, kernels that die, contexts that are restarted or removed, at any moment and at once."""
import contextlib
import http.client
import json
import os
import random
import select
import threading

from lone_interp import wait_for

CODES = ["1 + 1", "print('x' * 1_000_000)", "while True: print('y' * 1000)", "import time; time.sleep(1000)",
         "import os; os._exit(3)", "1 / 0", "while True: pass", "'z' * 3_000_000"]
ROUNDS, CLIENTS = 15, 4


class Chaos(threading.Thread):
    def __init__(self, interp, contexts, seed):
        super().__init__()
        self.interp, self.contexts, self.chance, self.wrong = interp, contexts, random.Random(seed), []

    def run(self):
        for _ in range(ROUNDS):
            # a connection that is reset, or an answer that is cut off, is what some of this is for
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.chance.choice([self.execute, self.execute, self.execute, self.restart, self.replace, self.kill])()

    def execute(self):
        code = self.chance.choice(CODES)
        env = {"A": "b"} if self.chance.random() < 0.5 else None
        connection, answer = self.interp.ask("POST", "/execute", {"code": code, "context_id": self.chance.choice(self.contexts), "env_vars": env}, 5)
        with contextlib.closing(connection):
            if answer.status not in (200, 404):
                text = answer.read().decode()
                if answer.status != 500 or "the kernel ended: signal 9" not in text:  # three times before it was ready
                    self.wrong.append((answer.status, text))
            for _ in range(self.chance.randrange(4)):
                line = answer.readline()
                if answer.status == 200 and line:
                    json.loads(line)
            select.select([], [], [], self.chance.random() * 0.2)

    def restart(self):
        self.interp.get(f"/contexts/{self.chance.choice(self.contexts)}/restart", "POST", timeout=self.chance.choice([0.05, 30]))

    def replace(self):
        at = self.chance.randrange(len(self.contexts))
        self.interp.get(f"/contexts/{self.contexts[at]}", "DELETE", timeout=30)
        self.contexts[at] = self.interp.context()["id"]

    def kill(self):
        with contextlib.suppress(OSError, IndexError):
            os.kill(self.chance.choice(self.interp.kernels_alive()), 9)


def test_whatever_happens_at_once(own_interp):
    interp = own_interp().start()
    contexts = [interp.context()["id"] for _ in range(2)]
    threads = [Chaos(interp, contexts, seed) for seed in range(CLIENTS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not [wrong for each in threads for wrong in each.wrong]
    for each in json.loads(interp.get("/contexts")[1]):
        assert interp.run("1 + 1", 60, context_id=each["id"]).text == "2"
        if each["id"] in contexts:
            interp.get(f"/contexts/{each['id']}", "DELETE")
    wait_for(lambda: len(interp.kernels_alive()) == len(json.loads(interp.get("/contexts")[1])), 20, "end of all other kernels")
    assert len(os.listdir(interp.folder / "run")) == len(interp.kernels_alive())
    assert interp.stop() == 0
