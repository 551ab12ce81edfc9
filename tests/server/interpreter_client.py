"""interpreter_client.py - the half of interpreter_support.py that runs in the Python of the published package.

A line of JSON for each question; for each of them lines with the same number: "out" as it comes, if that was asked for,
and at the end "value" or "error". Questions are answered side by side, as by threads of one program.
"""

import hashlib
import json
import sys
import threading

from e2b_code_interpreter import Context, Sandbox

LONG = 1 << 16  # a longer text is told by its size and its sum
NAMES = ("text", "html", "markdown", "svg", "png", "jpeg", "pdf", "latex", "json", "javascript", "data", "chart")
boxes = {}
writing = threading.Lock()


def say(**what):
    with writing:
        print(json.dumps(what, default=str), flush=True)


def told(texts):
    size = sum(len(t) for t in texts)
    if size <= LONG:
        return "".join(texts)
    total = hashlib.sha256()
    for text in texts:
        total.update(text.encode())
    return {"size": size, "sha256": total.hexdigest()}


def told_result(result):
    """Only what it has."""
    kept = {name: value for name in NAMES if (value := getattr(result, name))}
    if "chart" in kept:
        kept["chart"] = result.chart.to_dict()
    return {"main": result.is_main_result, "extra": result.extra,
            **{name: told([value]) if isinstance(value, str) else value for name, value in kept.items()}}


def told_execution(ran):
    return {"text": ran.text and told([ran.text]), "results": [told_result(r) for r in ran.results],
            "stdout": told(ran.logs.stdout), "stderr": told(ran.logs.stderr), "count": ran.execution_count,
            "error": ran.error and {"name": ran.error.name, "value": ran.error.value, "traceback": ran.error.traceback}}


def run(box, n, code, context=None, streamed=False, **more):
    if context:
        more["context"] = Context(context_id=context, language="", cwd="")
    if streamed:
        more["on_stdout"] = lambda m: say(n=n, out=str(m))
    return told_execution(box.run_code(code, **more))


def plain(value):
    return value if isinstance(value, (str, int, float, bool, type(None))) else vars(value)


def answer(n, do, box=None, **more):
    if do in ("create", "connect"):
        made = getattr(Sandbox, do)(**more)
        boxes[made.sandbox_id] = made
        return made.sandbox_id
    if do == "run":
        return run(boxes[box], n, **more)
    if do == "command":
        return boxes[box].commands.run(**more).stdout
    if do == "fork":
        made = boxes[box].fork(**more)
        boxes.update((m.sandbox_id, m) for m in made)
        return [m.sandbox_id for m in made]
    if do == "call":  # of the class Sandbox, whatever it is
        value = getattr(boxes[box], more["method"])(*more["args"], **more["options"])
        return [plain(v) for v in value] if isinstance(value, list) else plain(value)
    raise ValueError(do)


def serve(question):
    n = question["n"]
    try:
        say(n=n, value=answer(**question))
    except Exception as e:
        say(n=n, error=str(e) or repr(e), kind=type(e).__name__)


for line in sys.stdin:
    threading.Thread(target=serve, args=(json.loads(line),), daemon=True).start()
