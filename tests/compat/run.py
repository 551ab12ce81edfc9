"""run.py - runs checks with one half of the Python package; one line of JSON per result.

  python run.py sync|async VERSION AT_ONCE CHECK...
"""

import asyncio
import importlib
import json
import pathlib
import queue
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "checks_py"))

from kit import Kit, drive, why  # noqa: E402

CHECK_SECONDS = 420


def function_of(check):
    module, name = check.split(".")
    return getattr(importlib.import_module(module), name)


async def one(kit, check):
    await kit.begin(check)
    started, error = time.monotonic(), None
    try:
        run = function_of(check)(kit)
        await (asyncio.wait_for(run, CHECK_SECONDS) if kit.is_async else run)
    except Exception as e:
        error = why(e)
    await kit.end(error is None)
    return {"check": check, "result": "fail" if error else "pass", "error": error,
            "seconds": round(time.monotonic() - started, 2)}


async def work(half, checks, say):
    kit = Kit(half)
    while True:
        try:
            check = checks.get_nowait()
        except queue.Empty:
            break
        say(await one(kit, check))
    await kit.close()


def main(half, version, at_once, *names):
    lock = threading.Lock()

    def say(result):
        with lock:
            print(json.dumps({"client": half, "version": version, **result}), flush=True)

    checks = queue.Queue()
    for name in names:
        checks.put(name)
    run = asyncio.run if half == "async" else drive
    threads = [threading.Thread(target=lambda: run(work(half, checks, say))) for _ in range(int(at_once))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
