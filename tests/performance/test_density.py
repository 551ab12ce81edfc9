"""test_density.py - many sandboxes alive at once: each answers, and none costs much memory.

HOTCELL_ALIVE is how many (100); the long suite asks for 500.
"""

import os
import time

from engine import Engine, available_kib

ALIVE = int(os.environ.get("HOTCELL_ALIVE", "100"))
IDLE_MB_MAX = 25
PRIMED = 3  # sandboxes made and stopped before counting, so that every cache is warm
SETTLE_SECONDS = 3


def test_sandboxes_alive_at_once(record_property):
    with Engine(vms_max=ALIVE + 16) as engine:
        for box in engine.create_many(PRIMED):
            engine.stop(box)
        before = available_kib()
        begun = time.monotonic()
        boxes = engine.create_many(ALIVE)
        took = time.monotonic() - begun
        time.sleep(SETTLE_SECONDS)  # what the guests do after they were given their identity
        used_mb = (before - available_kib()) * 1024 / 1e6 / ALIVE
        answers = [engine.driver.submit("health", sandbox=box["sandbox"]) for box in boxes]
        for answer in answers:
            answer.wait()
        assert len({box["machine_id"] for box in boxes}) == ALIVE
        assert len({box["uid"] for box in boxes}) == ALIVE
        print(f"\n{ALIVE} alive, {used_mb:.1f} MB each (limit {IDLE_MB_MAX}), "
              f"{ALIVE / took:.1f} created per second, 8 at once")
        assert used_mb <= IDLE_MB_MAX
