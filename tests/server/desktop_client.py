"""desktop_client.py - the published e2b-desktop, in a Python that has it: a sandbox is made, then its methods are called.

A line in: {"call": "stream.start", "args": [], "named": {}}; a line out: {"value": ...} or {"error": ...}. Bytes are base64,
of a command its output. The first line's "named" are those of Sandbox.create(); or it has "code", which makes `desktop`, and whose other
variables are asked for by {"variable": NAME}.
"""

import base64
import json
import sys

from e2b_desktop import Sandbox


def plain(value):
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    return getattr(value, "stdout", value)


def call(box, question, variables):
    if "variable" in question:
        return plain(variables[question["variable"]])
    method = box
    for name in question["call"].split("."):
        method = getattr(method, name)
    return plain(method(*question.get("args", ()), **question.get("named", {})))


def main():
    box, variables = None, {}
    for line in sys.stdin:
        question = json.loads(line)
        try:
            if "code" in question:
                exec(question["code"], variables)
                box = variables["desktop"]
                said = {"value": box.sandbox_id}
            elif box is None:
                box = Sandbox.create(**question["named"])
                said = {"value": box.sandbox_id}
            else:
                said = {"value": call(box, question, variables)}
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said, default=str), flush=True)


main()
