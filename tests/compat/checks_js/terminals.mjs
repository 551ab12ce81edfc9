// terminals.mjs - pseudo-terminals.

import assert from 'node:assert/strict'

import { same } from './kit.mjs'

// says when it can be interrupted: a shell that is still about to start a command takes the signal for itself
const INTERRUPTED =
  'sh -c \'trap "echo $((5 * 5))-stopped; exit" INT; echo $((3 * 3))-ready; while :; do sleep 0.1; done\'\n'

export async function create(kit) {
  const terminal = await kit.terminal(await kit.box())
  await terminal.send('echo $((6 * 7))-there\n')
  await terminal.hearUntil('42-there')
  await terminal.send('exit\n')
  same(await terminal.ended(), 0)
}

export async function envsAndFolder(kit) {
  const terminal = await kit.terminal(await kit.box(), { envs: { COLOUR: 'green' }, cwd: '/tmp' })
  await terminal.send('echo [$COLOUR:$GREETING:$PWD:$TERM]\n')
  await terminal.hearUntil('[green:hello:/tmp:xterm-256color]')
  await terminal.send('exit\n')
  same(await terminal.ended(), 0)
}

export async function resize(kit) {
  const box = await kit.box()
  const terminal = await kit.terminal(box, { cols: 80, rows: 24 })
  await terminal.send('echo cols=$(tput cols) lines=$(tput lines).\n')
  await terminal.hearUntil('cols=80 lines=24.')
  await box.pty.resize(terminal.pid, { cols: 100, rows: 30 })
  await terminal.send('echo cols=$(tput cols) lines=$(tput lines).\n')
  await terminal.hearUntil('cols=100 lines=30.')
  await terminal.send('exit\n')
  same(await terminal.ended(), 0)
}

export async function connect(kit) {
  const box = await kit.box()
  const terminal = await kit.terminal(box)
  await terminal.send('echo $((1 + 1))-first\n')
  await terminal.hearUntil('2-first')
  await terminal.handle.disconnect()
  const again = await kit.terminalAgain(box, terminal.pid)
  same(again.pid, terminal.pid)
  await again.send('echo $((2 + 1))-second\n')
  await again.hearUntil('3-second')
  await again.send('exit 4\n')
  same(await again.ended(), 4)
}

export async function kill(kit) {
  const box = await kit.box()
  const terminal = await kit.terminal(box)
  same(await box.pty.kill(terminal.pid), true)
  assert.notEqual(await terminal.ended(), 0)
  same(await box.pty.kill(999999), false)
}

export async function isATerminal(kit) {
  const terminal = await kit.terminal(await kit.box())
  await terminal.send(INTERRUPTED)
  await terminal.hearUntil('9-ready')
  await terminal.send('\x03')
  await terminal.hearUntil('25-stopped')
  await terminal.send('tty; echo $((6 * 6))-after\n')
  await terminal.hearUntil('36-after')
  assert.match(terminal.text, /\/dev\/pts\//)
  await terminal.send('exit\n')
  await terminal.ended()
}

export async function user(kit) {
  const terminal = await kit.terminal(await kit.box(), { user: 'root' })
  await terminal.send('echo $(whoami)-$((8 + 8))\n')
  await terminal.hearUntil('root-16')
  await terminal.send('exit\n')
  same(await terminal.ended(), 0)
}
