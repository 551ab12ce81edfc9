"""commands.py - commands and what becomes of them."""

from e2b import (CommandExitException, InvalidArgumentException, NotFoundException, SandboxException,
                 TimeoutException)

from kit import PATIENCE, raises, same


async def run(kit):
    box = await kit.box()
    result = await box.commands.run("echo out; echo err >&2")
    same((result.stdout, result.stderr, result.exit_code), ("out\n", "err\n", 0))


async def failure(kit):
    box = await kit.box()
    with raises(CommandExitException) as caught:
        await box.commands.run("echo partly; echo why >&2; exit 7")
    error = caught.value
    same((error.stdout, error.stderr, error.exit_code), ("partly\n", "why\n", 7))


async def streamed(kit):
    """The command goes on only after what it said has been heard."""
    box = await kit.box()
    heard, errors = [], []

    async def hear(text):
        heard.append(text)
        if "go" in text:
            await box.files.write(f"/tmp/{kit.name}", "yes")
    command = f"echo go; until [ -e /tmp/{kit.name} ]; do sleep 0.1; done; echo end; echo last >&2"
    result = await box.commands.run(command, on_stdout=kit.callback(hear), on_stderr=errors.append, timeout=PATIENCE)
    same(("".join(heard), result.stdout, "".join(errors)), ("go\nend\n", "go\nend\n", "last\n"))


async def sandbox_envs(kit):
    box = await kit.create(envs={"FIRST": "one two", "SECOND": "$HOME"})
    same((await box.commands.run('echo "$FIRST/$SECOND"')).stdout, "one two/$HOME\n")
    same((await box.commands.run("echo $FIRST", envs={"FIRST": "mine"})).stdout, "mine\n")


async def own_envs(kit):
    box = await kit.box()
    same((await box.commands.run("echo $GREETING $MORE", envs={"MORE": "there"})).stdout, "hello there\n")
    same((await box.commands.run("echo $GREETING $MORE")).stdout, "hello\n")


async def user_and_folder(kit):
    box = await kit.box()
    same((await box.commands.run("whoami; pwd; echo $HOME")).stdout, "user\n/home/user\n/home/user\n")
    same((await box.commands.run("whoami; pwd", user="root", cwd="/tmp")).stdout, "root\n/tmp\n")
    same((await box.commands.run("pwd; echo $HOME", user="root")).stdout, "/root\n/root\n")
    same((await box.commands.run("sudo whoami")).stdout, "root\n")


async def folder_missing(kit):
    box = await kit.box()
    with raises(InvalidArgumentException, SandboxException):
        await box.commands.run("pwd", cwd="/no/such/directory")


async def user_missing(kit):
    box = await kit.box()
    with raises(Exception) as caught:
        await box.commands.run("whoami", user="nobody-of-that-name")
    assert "nobody-of-that-name" in str(caught.value), caught.value


async def background(kit):
    box = await kit.box()
    handle = await box.commands.run(f"echo {kit.name}; sleep 0.5; exit 3", background=True)
    assert handle.pid > 1
    listed = [p for p in await box.commands.list() if p.pid == handle.pid]
    assert listed and any(kit.name in arg for arg in listed[0].args), listed
    with raises(CommandExitException) as caught:
        await handle.wait()
    same((caught.value.exit_code, caught.value.stdout), (3, f"{kit.name}\n"))
    assert handle.pid not in [p.pid for p in await box.commands.list()]


async def kill(kit):
    box = await kit.box()
    handle = await box.commands.run("sleep 600", background=True)
    same(await handle.kill(), True)
    with raises(CommandExitException):
        await handle.wait()
    with raises(CommandExitException):
        await box.commands.run(f"kill -0 {handle.pid}", user="root")
    same(await box.commands.kill(handle.pid), False)


async def kill_of_an_unknown_pid(kit):
    box = await kit.box()
    same(await box.commands.kill(999999), False)


async def connect(kit):
    box = await kit.box()
    command = f"echo early; until [ -e /tmp/{kit.name} ]; do sleep 0.1; done; echo late; exit 5"
    first = await box.commands.run(command, background=True, timeout=PATIENCE)
    second = await box.commands.connect(first.pid, timeout=PATIENCE)
    same(second.pid, first.pid)
    await box.files.write(f"/tmp/{kit.name}", "go")
    with raises(CommandExitException) as caught:
        await second.wait()
    same(caught.value.exit_code, 5)
    assert caught.value.stdout.endswith("late\n"), caught.value.stdout
    with raises(CommandExitException) as caught:
        await first.wait()
    same((caught.value.exit_code, caught.value.stdout), (5, "early\nlate\n"))


async def connect_to_an_unknown_pid(kit):
    box = await kit.box()
    with raises(NotFoundException, SandboxException):
        await box.commands.connect(999999)


async def timeout(kit):
    box = await kit.box()
    with raises(TimeoutException):
        await box.commands.run("sleep 60", timeout=1)


async def without_timeout(kit):
    box = await kit.box()
    same((await box.commands.run("sleep 1; echo done", timeout=0)).stdout, "done\n")


async def disconnect(kit):
    box = await kit.box()
    handle = await box.commands.run(f"sleep 0.5; echo on > /tmp/{kit.name}; sleep 600", background=True)
    await handle.disconnect()

    async def went_on():
        return await box.files.exists(f"/tmp/{kit.name}")
    await kit.until(went_on, "the command went on", 60)
    assert handle.pid in [p.pid for p in await box.commands.list()]
    same(await box.commands.kill(handle.pid), True)


async def much_output(kit):
    box = await kit.box()
    result = await box.commands.run("seq 1 400000", timeout=PATIENCE)
    assert result.stdout == "".join(f"{n}\n" for n in range(1, 400001)), len(result.stdout)


async def unicode(kit):
    box = await kit.box()
    same((await box.commands.run("echo 'Grüße, 世界 🚀'")).stdout, "Grüße, 世界 🚀\n")
    same((await box.commands.run("echo $X", envs={"X": "ключ 🔑"})).stdout, "ключ 🔑\n")


async def invalid_utf8(kit):
    box = await kit.box()
    out = (await box.commands.run(r"printf 'a\xff\xfeb'")).stdout
    assert out[0] == "a" and out[-1] == "b", repr(out)


async def special_characters(kit):
    box = await kit.box()
    text = "a 'b' \"c\" $d `e` \\f !g\n# h\n"
    out = await box.commands.run(f"cat <<'END'\n{text}END\n")
    same(out.stdout, text)


async def signal(kit):
    box = await kit.box()
    with raises(CommandExitException):
        await box.commands.run("kill -9 $$")


async def at_once(kit):
    box = await kit.box()

    async def one(n):
        return (await box.commands.run(f"sleep 0.2; echo {n}")).stdout
    same(await kit.together([lambda n=n: one(n) for n in range(5)]), [f"{n}\n" for n in range(5)])
