"""terminals.py - pseudo-terminals."""

from e2b import PtySize

from kit import same

# says when it can be interrupted: a shell that is still about to start a command takes the signal for itself
INTERRUPTED = """sh -c 'trap "echo $((5 * 5))-stopped; exit" INT; echo $((3 * 3))-ready; while :; do sleep 0.1; done'\n"""


async def create(kit):
    box = await kit.box()
    terminal = await kit.terminal(box)
    await terminal.send("echo $((6 * 7))-there\n")
    await terminal.hear_until("42-there")
    await terminal.send("exit\n")
    same(await terminal.ended(), 0)


async def envs_and_folder(kit):
    box = await kit.box()
    terminal = await kit.terminal(box, envs={"COLOUR": "green"}, cwd="/tmp")
    await terminal.send("echo [$COLOUR:$GREETING:$PWD:$TERM]\n")
    await terminal.hear_until("[green:hello:/tmp:xterm-256color]")
    await terminal.send("exit\n")
    same(await terminal.ended(), 0)


async def resize(kit):
    box = await kit.box()
    terminal = await kit.terminal(box, cols=80, rows=24)
    await terminal.send("echo cols=$(tput cols) lines=$(tput lines).\n")
    await terminal.hear_until("cols=80 lines=24.")
    await box.pty.resize(terminal.pid, PtySize(cols=100, rows=30))
    await terminal.send("echo cols=$(tput cols) lines=$(tput lines).\n")
    await terminal.hear_until("cols=100 lines=30.")
    await terminal.send("exit\n")
    same(await terminal.ended(), 0)


async def connect(kit):
    box = await kit.box()
    terminal = await kit.terminal(box)
    await terminal.send("echo $((1 + 1))-first\n")
    await terminal.hear_until("2-first")
    await terminal.handle.disconnect()
    again = await kit.terminal_again(box, terminal.pid)
    same(again.pid, terminal.pid)
    await again.send("echo $((2 + 1))-second\n")
    await again.hear_until("3-second")
    await again.send("exit 4\n")
    same(await again.ended(), 4)


async def kill(kit):
    box = await kit.box()
    terminal = await kit.terminal(box)
    same(await box.pty.kill(terminal.pid), True)
    assert await terminal.ended() != 0
    same(await box.pty.kill(999999), False)


async def is_a_terminal(kit):
    box = await kit.box()
    terminal = await kit.terminal(box)
    await terminal.send(INTERRUPTED)
    await terminal.hear_until("9-ready")
    await terminal.send("\x03")
    await terminal.hear_until("25-stopped")
    await terminal.send("tty; echo $((6 * 6))-after\n")
    await terminal.hear_until("36-after")
    assert "/dev/pts/" in terminal.text
    await terminal.send("exit\n")
    await terminal.ended()


async def user(kit):
    box = await kit.box()
    terminal = await kit.terminal(box, user="root")
    await terminal.send("echo $(whoami)-$((8 + 8))\n")
    await terminal.hear_until("root-16")
    await terminal.send("exit\n")
    same(await terminal.ended(), 0)
