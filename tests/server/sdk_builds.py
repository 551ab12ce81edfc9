"""sdk_builds.py - builds by the published Python package, from a test that has another Python.

    with SdkClient(server) as sdk:
        built = sdk.build([["from_template", "base"], ["run_cmd", "id"]], "mine", cpu_count=1, memory_mb=256)
        built.error, built.log          # None or what was raised; [(level, message)] as they came
        sdk.run("mine", "id")           # a sandbox of it, one command, what it printed
        sdk.ask("get_tags", "mine")     # anything else of the class Template

Run as a program it is the other half, in the package's own Python: a line of JSON for each question and each answer.
"""

import json
import queue
import subprocess
import sys
import time

from sdk_process import SdkProcess

ANSWER_SECONDS = 300


class Built:
    def __init__(self, answer):
        self.error, self.kind, self.value = answer.get("error"), answer.get("kind"), answer.get("value")
        self.log = [(level, text) for level, text in answer.get("log", ())]
        self.times = answer.get("times", ())  # of its lines, as node has them

    def texts(self, part):
        return [text for _, text in self.log if part in text]

    def found(self):
        """The numbers of the steps that were not run again."""
        return [int(text.split("[builder ")[1].split("/")[0]) for text in self.texts("CACHED [builder ")]

    def ran(self):
        return [int(text.split("/")[0].removeprefix("[builder ")) for _, text in self.log
                if text.startswith("[builder ")]


class SdkClient(SdkProcess):
    def __init__(self, server, sdks, key=None):
        super().__init__(server, [sdks / "newest/python/bin/python", __file__], key)
        self.answers, self.lines, self.times = queue.Queue(), [], []

    def __exit__(self, *exc):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join()
        self.process.stdout.close()

    def read(self):
        for line in self.process.stdout:
            said = json.loads(line)
            if "line" in said:
                self.lines.append(said["line"])
                self.times.append(said["at"])
            else:
                self.answers.put(said)

    def send(self, **question):
        self.lines, self.times = [], []
        self.say(question)

    def wait(self):
        try:
            return Built({**self.answers.get(timeout=ANSWER_SECONDS), "log": list(self.lines), "times": list(self.times)})
        except queue.Empty:
            raise AssertionError(f"no answer: {self.lines} {self.log_path.read_text()[-2000:]}") from None

    def begin(self, recipe, name, context=None, **options):
        self.send(do="build", recipe=recipe, name=name, context=context and str(context),
                  options={"cpu_count": 1, "memory_mb": 256, **options})

    def build(self, recipe, name, **options):
        begun = time.monotonic()
        self.begin(recipe, name, **options)
        built = self.wait()
        print(f"build {name}: {built.error or 'ready'} in {time.monotonic() - begun:.1f} s")
        return built

    def run(self, template, command):
        self.send(do="run", template=template, command=command)
        done = self.wait()
        assert done.error is None, (done.kind, done.error)
        return done.value

    def ask(self, method, *args, **options):
        self.send(do="ask", method=method, args=args, options=options)
        return self.wait()


# --- the other half -------------------------------------------------------------------------------------------------


def say(**what):
    print(json.dumps(what, default=str), flush=True)


def build(question):
    from e2b import Template

    made = Template(file_context_path=question["context"]) if question["context"] else Template()
    for method, *args in question["recipe"]:
        options = args.pop() if args and isinstance(args[-1], dict) and method != "set_envs" else {}
        made = getattr(made, method)(*args, **options)
    ready = Template.build(made, question["name"], on_build_logs=lambda l: say(line=[l.level, l.message], at=l.timestamp.timestamp()),
                           **question["options"])
    return vars(ready)


def run(question):
    from e2b import Sandbox

    box = Sandbox.create(question["template"], timeout=300)
    try:
        return box.commands.run(question["command"], timeout=60).stdout
    finally:
        box.kill()


def ask(question):
    from e2b import Template

    value = getattr(Template, question["method"])(*question["args"], **question["options"])
    return [vars(v) for v in value] if isinstance(value, list) else vars(value) if hasattr(value, "__dict__") else value


def main():
    for line in sys.stdin:
        question = json.loads(line)
        try:
            say(value={"build": build, "run": run, "ask": ask}[question["do"]](question))
        except Exception as e:
            say(error=str(e) or repr(e), kind=type(e).__name__)


if __name__ == "__main__":
    main()
