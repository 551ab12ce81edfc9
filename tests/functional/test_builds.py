"""test_builds.py - templates are built, by the published packages, against a whole server with real VMs.

Builds are few, and each shows many things: one takes as long as a boot. Images come from a registry on loopback that
has the base image's own root under a name that people use.
"""

import json
import pathlib
import re
import subprocess
import time

import pytest

from engine import TOP, artefact
from process_stream import sandbox_fields
from registry import Registry
from sdk_builds import SdkClient
from server import Server, wait_for
from warden import build_dir

SECONDS = 300  # a build, emulated, on a busy machine
FOO = 'bar $(id) `id` "x"'  # no part of it is run
GUARDED = "9222/devtools,8001"
FIRST = ["run_cmd", "echo hello > /tmp/a; date +%s.%N > /tmp/when; echo said; echo oops >&2"]
JS_BUILD = """
import { Template } from MODULE
const template = Template().fromTemplate('base').runCmd('echo both > both').setEnvs({ A: 'of js' })
const log = []
const onBuildLogs = (line) => log.push(line.message)
const built = await Template.build(template, 'of-js', { cpuCount: 1, memoryMB: 256, onBuildLogs })
console.log(JSON.stringify({ name: built.name, log }))
"""


@pytest.fixture(scope="module")
def sdks():
    return artefact("sdks")


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    with Registry(tmp_path_factory.mktemp("registry") / "of") as r:
        yield r


@pytest.fixture(scope="module")
def server(registry):
    with Server(images={"default_registry": registry.host, "insecure": registry.host}, injector={}) as s:
        s.other_team, s.other_key = s.new_team("other")
        yield s


@pytest.fixture(scope="module")
def sdk(server, sdks):
    with SdkClient(server, sdks) as client:
        yield client


@pytest.fixture(scope="module")
def other(server, sdks):
    with SdkClient(server, sdks, server.other_key) as client:
        yield client


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """What is copied into templates."""
    top = tmp_path_factory.mktemp("context")
    (top / "folder/sub").mkdir(parents=True)
    (top / "folder/text").write_text("a text\n")
    (top / "folder/link").symlink_to("text")
    (top / "folder/nowhere").symlink_to("1234")
    (top / "folder/sub/deep").write_text("deep\n")
    (top / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (top / "run.sh").chmod(0o755)
    for name in ("one.txt", "two.txt", "three.md"):
        (top / name).write_text(name)
    return top


def hotcell(server, *words):
    return subprocess.run([build_dir() / "src/cli/hotcell", "--socket", server.admin_socket, *words],
                          capture_output=True, text=True, timeout=60)


def template_id(server, name):
    return next(t["templateID"] for t in server.must("GET", "/templates") if name in t["aliases"])


def slug_of(server):
    return next(t["slug"] for t in server.admin("GET", "/admin/teams").json if t["teamID"] == server.team)


def snapshots(server):
    return {s["snapshotID"]: s["kind"] for s in server.admin("GET", "/admin/snapshots").json}


def recipe(last):
    return [["from_template", "base"], FIRST, ["set_envs", {"FOO": FOO, "BAR": "${FOO}!", "HOTCELL_GUARDED_PORTS": GUARDED,
                                                                     "HOTCELL_REFUSAL_PAGES": "yes"}],
            ["set_workdir", "/app/in"], ["copy", "folder", "folder"],
            ["copy", "run.sh", "/opt/own/", {"user": "root", "mode": 0o700}],
            ["copy", "*.txt", "texts", {"user": "nobody:nogroup"}], ["set_user", "builder"], ["run_cmd", last],
            ["set_start_cmd", 'echo begun; echo "$BAR" > /tmp/started; exec sleep 4321', "test -s /tmp/started"]]


@pytest.fixture(scope="module")
def built(sdk, context):
    made = sdk.build(recipe("whoami > /tmp/who; pwd; id -un"), "mine", context=context)
    assert made.error is None, (made.error, made.log)
    return made


def test_steps_run_in_order_and_say_so(built):
    assert (built.ran(), built.found()) == ([1, 2, 3, 4, 5, 6, 7, 8], [])
    assert built.texts("[1] [stdout]: said") and built.texts("[1] [stderr]: oops")
    assert built.texts("[8] [stdout]: /app/in") and built.texts("[8] [stdout]: builder")
    assert built.texts("[finalize] [stdout]: begun"), built.log


def test_a_sandbox_is_what_was_built(server, sdk, built):
    said = sdk.run("mine", "pwd; id -un; echo \"$FOO\"; echo \"$BAR\"; cat /tmp/who /tmp/started /tmp/a; nproc; "
                   "pgrep -u builder -x sleep -a; awk '/MemTotal/ {print int($2 / 1024)}' /proc/meminfo")
    at, user, foo, bar, who, started, a, cpus, start, memory = said.splitlines()
    assert (at, user, who, a, cpus) == ("/app/in", "builder", "builder", "hello", "1")
    assert foo == FOO and bar == started == foo + "!"
    assert start.endswith("sleep 4321") and 150 < int(memory) < 256
    listed = next(t for t in server.must("GET", "/templates") if "mine" in t["aliases"])
    assert (listed["cpuCount"], listed["memoryMB"], listed["buildStatus"]) == (1, 256, "ready"), listed


def visit(server, box, port, target="/", **headers):
    host = {"Host": f"{port}-{box['sandboxID']}.localhost:{server.port}"}
    return server.api("GET", target, key=None, headers={**host, **{name.replace("_", "-"): text for name, text in headers.items()}})


def test_ports_that_it_guards_want_a_token(server, built):
    """A header for programs, a cookie for people; a copy has another; a cookie resumes. Other ports are public. Without a token
    for the agent there is no such sandbox: anybody could go to the port from inside."""
    said = server.api("POST", "/sandboxes", {"templateID": "mine", "timeout": 60})
    assert said.status == 400 and "8001" in said.json["message"] and "secure: true" in said.json["message"], said
    box = server.create(templateID="mine", secure=True, autoPause=True, autoResume={"enabled": True},
                        envVars={"HOTCELL_GUARDED_PORTS": "8000"})  # a client's own word is not read
    token, at = box["trafficAccessToken"], f"/sandboxes/{box['sandboxID']}"
    server.run(box, "cd /opt; for port in 8000 8001; do setsid nohup python3 -m http.server --bind 127.0.0.1 $port >/dev/null 2>&1 </dev/null & done")
    wait_for(lambda: visit(server, box, 8000).status == 200, "a public port", SECONDS, 0.2)
    assert visit(server, box, 8001).status == 403 and visit(server, box, 9222).status == 403
    wait_for(lambda: visit(server, box, 8001, E2B_Traffic_Access_Token=token).status == 200, "the guarded one", SECONDS, 0.2)
    assert server.must("POST", f"{at}/connect", {"timeout": 3600})["trafficAccessToken"] == token
    addresses = server.must("POST", f"{at}/addresses")["addresses"]
    assert [(a["port"], a["kind"]) for a in addresses] == [(9222, "devtools"), (8001, "")]
    address = addresses[1]["url"].removeprefix(f"http://8001-{box['sandboxID']}.localhost:{server.port}")
    changed = visit(server, box, 8001, address)
    assert changed.status == 303 and changed.headers["location"] == "/" and token not in str(changed.headers)
    cookie = changed.headers["set-cookie"].partition(";")[0]
    assert visit(server, box, 8001, Cookie=cookie).status == 200
    copy = server.must("POST", f"{at}/fork", {"timeout": 3600})[0]["sandbox"]
    assert copy["trafficAccessToken"] not in (None, token)
    assert visit(server, copy, 8001, Cookie=cookie).status == 403 and visit(server, copy, 8001, E2B_Traffic_Access_Token=token).status == 403
    assert visit(server, copy, 8001, E2B_Traffic_Access_Token=copy["trafficAccessToken"]).status == 200
    assert server.delete(copy) == 204 and server.api("POST", f"{at}/pause").status == 204
    assert visit(server, box, 8001, Cookie=cookie).status == 200  # it was resumed
    assert server.delete(box) == 204


def test_what_its_network_refuses_is_a_page(server, built):
    """In a copy, too; in other sandboxes the name does not exist."""
    ask = "curl -sS -H 'Accept: text/html' https://refused.example/ 2>&1; true"
    box, other = server.create(templateID="mine", secure=True), server.create(envVars={"HOTCELL_REFUSAL_PAGES": "yes"})
    copy = server.must("POST", f"/sandboxes/{box['sandboxID']}/fork", {"timeout": 3600})[0]["sandbox"]
    for one in (box, copy):
        page = server.run(one, ask)
        assert "<title>Refused: refused.example</title>" in page and "<dd>operator: " in page, page
    assert "Could not resolve host" in server.run(other, ask)
    for one in (box, copy, other):
        assert server.delete(one) == 204


def test_a_build_without_steps_does_not_boot(server, sdk):
    """`base` has booted, with these sizes: a copy of it is started."""
    known = len(server.daemons["node"].log())
    made = sdk.build([["from_template", "base"], ["set_start_cmd", "echo begun > /tmp/began; exec sleep 4322",
                                                 "test -s /tmp/began"]], "plain", memory_mb=512)
    assert made.error is None, (made.error, made.log)
    runs = [line for line in server.daemons["node"].log()[known:].splitlines() if " runs; in ms: " in line]
    assert len(runs) == 1 and " loaded " in runs[0], runs
    assert re.fullmatch(r"begun\n\d+ sleep 4322\n", sdk.run("plain", "cat /tmp/began; pgrep -x sleep -a"))


def test_files_arrive_as_they_were_packed(sdk, built):
    said = sdk.run("mine", "cat folder/link folder/sub/deep; readlink folder/link folder/nowhere; ls texts; "
                   "stat -c '%U:%G %a' texts/one.txt folder/text; stat -c '%U:%G %a' /opt/own/run.sh; ls /opt")
    assert said.splitlines() == ["a text", "deep", "text", "1234", "one.txt", "two.txt", "nobody:nogroup 644",
                                 "user:user 644", "root:root 700", "own"], said


def test_only_what_follows_a_change_runs(sdk, built, context):
    begun = time.monotonic()
    second = sdk.build(recipe("echo changed > /tmp/who"), "mine", context=context, tags=["v2"])
    print(f"one changed step of eight: {time.monotonic() - begun:.1f} s")
    assert second.error is None, second.error
    assert (second.found(), second.ran()) == ([1, 2, 3, 4, 5, 6, 7], [8])
    assert second.texts("Skipping upload"), "files that are there are not sent again"
    when, *rest = sdk.run("mine:v2", 'cat /tmp/when /tmp/who; pwd; echo "$FOO"').splitlines()
    assert rest == ["changed", "/app/in", FOO]
    assert sdk.run("mine:default", "cat /tmp/when /tmp/who").split() == [when, "builder"], "the first step ran once"


def test_tags_and_aliases(sdk, other, built):
    assert {t["tag"] for t in sdk.ask("get_tags", "mine").value} == {"default", "v2"}
    assert sdk.ask("assign_tags", "mine:v2", ["stable", "live"]).value["tags"] == ["stable", "live"]
    assert sdk.ask("remove_tags", "mine", "live").error is None
    tags = {t["tag"]: t["build_id"] for t in sdk.ask("get_tags", "mine").value}
    assert set(tags) == {"default", "v2", "stable"} and tags["stable"] == tags["v2"]
    assert sdk.ask("alias_exists", "mine").value is True and sdk.ask("alias_exists", "none-such").value is False
    for refused in (sdk.ask("assign_tags", "mine:never", "x"), other.ask("assign_tags", "mine:v2", "x"),
                    other.ask("get_tags", "mine")):
        print(refused.kind, refused.error)
        assert "404" in refused.error or "not found" in refused.error.lower(), refused.error


@pytest.mark.parametrize("steps,number,words", [
    ([["run_cmd", "echo so far; exit 3"]], 1, "failed to run command 'echo so far; exit 3': exit status 3"),
    ([["run_cmd", "whoami", {"user": "root123"}]], 1,
     "failed to run command 'whoami': command failed: unauthenticated: invalid username: 'root123'"),
    ([FIRST, ["run_cmd", "kill -9 $$"]], 2, "failed to run command 'kill -9 $$': signal: killed"),
    ([["set_workdir", "/etc/passwd/x"]], 1, "WORKDIR /etc/passwd/x failed: exit status 1"),
    ([["set_envs", {"HOTCELL_GUARDED_PORTS": "9222/tcp"}]], 1, "HOTCELL_GUARDED_PORTS: a port may be /devtools or /novnc"),
], ids=["status", "user", "signal", "workdir", "ports"])
def test_a_step_that_fails_says_which_and_why(server, sdk, built, steps, number, words):
    for _ in range(2 if number == 1 and "exit 3" in words else 1):  # and is not found the second time
        failed = sdk.build([["from_template", "base"], *steps], "failing")
        assert failed.kind == "BuildException" and words in failed.error, (failed.kind, failed.error)
        assert failed.ran()[-1:] == [number] and number not in failed.found()
    status = server.must("GET", "/templates/" + template_id(server, "failing"))["builds"]
    assert {b["status"] for b in status} == {"error"}


def test_a_start_command_that_fails(sdk, built):
    failed = sdk.build([["from_template", "base"], FIRST, ["set_start_cmd", "echo begins; exit 4", "false"]], "failing")
    assert (failed.kind, failed.error) == ("BuildException", "error running start command: exit status 4")
    assert failed.found() == [1] and failed.texts("[finalize] [stdout]: begins")


def test_from_a_step_that_is_forced_on_all_run(sdk, built):
    """The first is found, the second was run before and is not looked for, nor what follows."""
    steps = [["from_template", "base"], FIRST, ["run_cmd", "true"], ["run_cmd", "exit 5"]]
    assert sdk.build(steps, "failing").ran() == [2, 3]
    assert sdk.build(steps, "failing").found() == [1, 2]
    forced = sdk.build([*steps[:2], ["skip_cache"], *steps[2:]], "failing")
    assert (forced.found(), forced.ran()) == ([1], [2, 3])


def test_a_build_without_cache_runs_all_and_ends_when_cancelled(server, sdk, built):
    before = snapshots(server)
    sdk.begin([["from_template", "base"], FIRST, ["run_cmd", "echo waits; sleep 1000"]], "cancelled", skip_cache=True)
    wait_for(lambda: any("waits" in text for _, text in list(sdk.lines) if "stdout" in text), "the step runs", SECONDS)
    of = server.must("GET", "/templates/" + template_id(server, "cancelled"))["builds"][0]["buildID"]
    done = hotcell(server, "templates", "cancel", of)
    assert done.returncode == 0, done.stderr
    ended = sdk.wait()
    assert ended.kind == "BuildException" and "cancel" in ended.error, ended.error
    assert (ended.found(), ended.ran()) == ([], [1, 2])
    assert server.leaks() == []  # its VM is no sandbox of any list
    assert "cancel" in hotcell(server, "templates", "logs", of).stdout
    assert [kind for id, kind in snapshots(server).items() if id not in before] in ([], ["step"]), "what was done alone"


def test_two_builds_of_the_same_steps_at_once(server, sdk, sdks, built):
    steps = [["from_template", "base"], ["run_cmd", "echo both > both"], ["set_envs", {"A": "b"}]]
    with SdkClient(server, sdks) as second:
        sdk.begin(steps, "left")
        second.begin(steps, "right")
        ended = [sdk.wait(), second.wait()]
    assert [e.error for e in ended] == [None, None], [e.log for e in ended]
    for name in ("left", "right"):
        assert sdk.run(name, "cat both; echo $A").split() == ["both", "b"]


def test_what_is_anothers_does_not_exist_unless_it_is_public(server, sdk, other, built):
    mine = template_id(server, "mine")
    slug = slug_of(server)
    peek = [["from_template", f"{slug}/mine"], ["run_cmd", "cat /tmp/a; exit 7"]]
    for name in (mine, f"{slug}/mine", "mine"):
        assert server.api("POST", "/sandboxes", {"templateID": name}, key=server.other_key).status == 404, name
    refused = other.build(peek, "theirs")
    assert "404" in refused.error or "not found" in refused.error, (refused.kind, refused.error)
    assert server.api("PATCH", f"/templates/{mine}", {"public": True}).status == 200
    assert other.run(f"{slug}/mine", "cat /tmp/a; id -un").split() == ["hello", "builder"]
    used = other.build(peek, "theirs")
    assert "exit status 7" in used.error and used.texts("[1] [stdout]: hello"), used.error
    for method, body in (("DELETE", None), ("PATCH", {"public": False})):
        assert server.api(method, f"/templates/{mine}", body, key=server.other_key).status in (403, 404)
    assert server.api("PATCH", f"/templates/{mine}", {"public": False}).status == 200
    assert server.api("POST", "/sandboxes", {"templateID": mine}, key=server.other_key).status == 404


DOCKERFILE = """FROM debian:stable
ENV COLOUR=green
WORKDIR /srv
COPY run.sh bin/
RUN bin/run.sh > ran && echo "$LANG" >> ran
"""


def test_a_dockerfile_and_an_image_of_a_registry(registry, sdk, context, built):
    registry.push_archive("library/debian", "stable", artefact("oci"))
    started = ["set_start_cmd", "exec sleep 5432", "pgrep -x sleep"]
    made = sdk.build([["from_dockerfile", DOCKERFILE], started], "of-image", context=context)
    assert made.error is None, (made.error, made.log)
    assert made.texts("[base] FROM debian:stable") and made.texts("Booting the image")
    said = sdk.run("of-image", "cat /srv/ran; echo $COLOUR $LANG; pgrep -x sleep -a | cut -d' ' -f2-; pwd")
    assert said.splitlines() == ["ran", "C.UTF-8", "green C.UTF-8", "sleep 5432", "/srv"], said
    again = sdk.build([["from_image", "debian:stable"], ["run_cmd", "echo $LANG; exit 9"]], "failing")
    assert "exit status 9" in again.error and again.texts("[1] [stdout]: C.UTF-8")
    assert not again.texts("Booting the image"), "what was booted once is found again"
    missing = sdk.build([["from_image", "debian:none-such"], ["run_cmd", "true"]], "failing")
    assert missing.kind == "BuildException" and "debian:none-such" in missing.error, missing.error


# What a user meets of a root: packages, the account and what it may do, files. All of them would take three times as long;
# that disks are equal is shown by test_images.py.
LOOK = r"""dpkg-query -W; id; getent passwd user; sudo -n id; echo ~; umask; type -a python3 pip git; python3 -c 'import sys; print(sys.path)'
sudo find / -xdev -maxdepth 3 ! -path '/srv/*' ! -path '/tmp/*' \( -type d -printf '%p %M %U:%G\n' -o -printf '%p %M %U:%G %n %s %l\n' \)"""


def test_of_its_image_comes_what_base_is(sdk, built):
    """After the image of the registry is there, which is that of `base`."""
    base, of_image = (set(sdk.run(name, LOOK).splitlines()) for name in ("base", "of-image"))
    assert len(base) > 1000 and "/code drwxrwxrwx 0:0" in base
    assert base == of_image, sorted(base ^ of_image)


def test_our_own_templates_are_built_as_all_others_are(server, sdk, sdks):
    def build():
        begun = time.monotonic()
        done = subprocess.run([sdks / "newest/python/bin/python", TOP / "guest/httpbin/template", artefact("httpbin"), "--public"],
                              capture_output=True, text=True, timeout=SECONDS, env=sdk.env)
        assert done.returncode == 0, done.stdout + done.stderr
        print(f"httpbin: {time.monotonic() - begun:.1f} s")
        return done.stdout

    assert "[builder 1/1]" in build()
    box = server.create(templateID=f"{slug_of(server)}/httpbin", key=server.other_key)
    said = server.api("GET", "/get?a=b", key=False, headers=sandbox_fields(box, 8080))
    assert said.status == 200 and said.json["args"] == {"a": ["b"]}, said
    server.delete(box, key=server.other_key)
    assert build() == "httpbin is there already\n"


def node_of(modules):
    """The Node.js that is new enough for these packages."""
    own = modules / ".bin/node"
    return own if own.exists() else "node"


def test_the_other_language(server, sdks, sdk, built, tmp_path):
    modules = sdks / "newest/js/node_modules"
    script = tmp_path / "build.mjs"
    script.write_text(JS_BUILD.replace("MODULE", json.dumps(str(modules / "e2b/dist/index.mjs"))))
    done = subprocess.run([node_of(modules), script], capture_output=True, text=True, timeout=SECONDS, env=sdk.env)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["name"] == "of-js" and sum("[builder " in line for line in said["log"]) == 2
    assert sdk.run("of-js", "cat both; echo $A").splitlines() == ["both", "of js"]


def test_the_published_cli(sdks, sdk, context, built, tmp_path):
    """After the image of the registry is there."""
    modules = sdks / "cli/node_modules"

    def e2b(*words):
        done = subprocess.run([node_of(modules), modules / ".bin/e2b", "template", *words], capture_output=True,
                              text=True, timeout=SECONDS, stdin=subprocess.DEVNULL,
                              env={**sdk.env, "HOME": str(tmp_path), "NO_UPDATE_NOTIFIER": "1"})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def listed():
        return [name for t in json.loads(e2b("list", "--format", "json")) for name in t["aliases"]]

    (context / "e2b.Dockerfile").write_text(DOCKERFILE)
    said = e2b("create", "of-cli", "--path", str(context), "--cpu-count", "1", "--memory-mb", "256",
               "--cmd", "exec sleep 7654", "--ready-cmd", "pgrep -x sleep")
    assert "CACHED [builder" in said, said
    assert sdk.run("of-cli", "cat /srv/ran; pgrep -x sleep -a | cut -d' ' -f2-").splitlines()[-1] == "sleep 7654"
    assert {"of-cli", "mine"} <= set(listed())
    e2b("delete", "of-cli", "--yes")
    assert "of-cli" not in listed()


def test_the_example_of_the_docs(sdks, sdk, built, tmp_path):
    """docs/templates.md, In code: both programs, as they are printed."""
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/templates.md").read_text()
    serves, builds = re.findall("^```python\n(.*?)^```$", page, re.M | re.S)
    (tmp_path / "server.py").write_text(serves)
    (tmp_path / "build.py").write_text(builds)
    done = subprocess.run([sdks / "newest/python/bin/python", "build.py"], cwd=tmp_path, capture_output=True, text=True,
                          timeout=SECONDS, env=sdk.env)
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr


def test_nothing_is_left(server, sdk, built):
    assert server.ids() == set()
    assert server.leaks() == []
    said = hotcell(server, "doctor", "--leaks", "--state", server.warden.state, "--data", server.data, "--cgroup",
                   server.warden.cgroup, "--uid-base", str(server.warden.uid_base), "--uids", str(server.warden.uids))
    assert said.returncode == 0, said.stdout + said.stderr
    for template in server.must("GET", "/templates"):
        if template["aliases"] != ["base"]:
            assert server.api("DELETE", f"/templates/{template['templateID']}").status == 204
    kinds = wait_for(lambda: (k := set(snapshots(server).values())) <= {"step"} and k,
                     "builds of templates that are gone are gone", 30)
    print("kept:", kinds)
    assert not list((server.base / "node/builds").glob("*/disk"))
    assert not any(re.fullmatch(r"\.new.*", p.name) for p in (server.base / "node/uploads").rglob("*"))
