// commands.mjs - commands and what becomes of them.

import assert from 'node:assert/strict'

import { PATIENCE, e2b, rejected, same, until } from './kit.mjs'

const { CommandExitError, SandboxError, TimeoutError } = e2b

export async function run(kit) {
  const box = await kit.box()
  const { stdout, stderr, exitCode } = await box.commands.run('echo out; echo err >&2')
  same([stdout, stderr, exitCode], ['out\n', 'err\n', 0])
}

export async function failure(kit) {
  const box = await kit.box()
  const error = await rejected(box.commands.run('echo partly; echo why >&2; exit 7'), CommandExitError)
  same([error.stdout, error.stderr, error.exitCode], ['partly\n', 'why\n', 7])
}

// The command goes on only after what it said has been heard.
export async function streamed(kit) {
  const box = await kit.box()
  const out = []
  const err = []
  const command = `echo go; until [ -e /tmp/${kit.name} ]; do sleep 0.1; done; echo end; echo last >&2`
  const result = await box.commands.run(command, {
    timeoutMs: PATIENCE,
    onStdout: async (text) => {
      out.push(text)
      if (text.includes('go')) await box.files.write(`/tmp/${kit.name}`, 'yes')
    },
    onStderr: (text) => {
      err.push(text)
    },
  })
  same([out.join(''), result.stdout, err.join('')], ['go\nend\n', 'go\nend\n', 'last\n'])
}

export async function sandboxEnvs(kit) {
  const box = await kit.create({ envs: { FIRST: 'one two', SECOND: '$HOME' } })
  same((await box.commands.run('echo "$FIRST/$SECOND"')).stdout, 'one two/$HOME\n')
  same((await box.commands.run('echo $FIRST', { envs: { FIRST: 'mine' } })).stdout, 'mine\n')
}

export async function ownEnvs(kit) {
  const box = await kit.box()
  same((await box.commands.run('echo $GREETING $MORE', { envs: { MORE: 'there' } })).stdout, 'hello there\n')
  same((await box.commands.run('echo $GREETING $MORE')).stdout, 'hello\n')
}

export async function userAndFolder(kit) {
  const box = await kit.box()
  const user = 'root'
  same((await box.commands.run('whoami; pwd; echo $HOME')).stdout, 'user\n/home/user\n/home/user\n')
  same((await box.commands.run('whoami; pwd', { user, cwd: '/tmp' })).stdout, 'root\n/tmp\n')
  same((await box.commands.run('pwd; echo $HOME', { user })).stdout, '/root\n/root\n')
  same((await box.commands.run('sudo whoami')).stdout, 'root\n')
}

export async function folderMissing(kit) {
  const box = await kit.box()
  await rejected(box.commands.run('pwd', { cwd: '/no/such/directory' }), SandboxError)
}

export async function userMissing(kit) {
  const box = await kit.box()
  const error = await rejected(box.commands.run('whoami', { user: 'nobody-of-that-name' }), Error)
  assert.match(error.message, /nobody-of-that-name/)
}

export async function background(kit) {
  const box = await kit.box()
  const handle = await box.commands.run(`echo ${kit.name}; sleep 0.5; exit 3`, { background: true })
  assert.ok(handle.pid > 1)
  const listed = (await box.commands.list()).find((p) => p.pid === handle.pid)
  assert.ok(listed?.args.some((arg) => arg.includes(kit.name)), JSON.stringify(listed))
  const error = await rejected(handle.wait(), CommandExitError)
  same([error.exitCode, error.stdout], [3, `${kit.name}\n`])
  assert.ok(!(await box.commands.list()).some((p) => p.pid === handle.pid))
}

export async function kill(kit) {
  const box = await kit.box()
  const handle = await box.commands.run('sleep 600', { background: true })
  same(await handle.kill(), true)
  await rejected(handle.wait(), CommandExitError)
  await rejected(box.commands.run(`kill -0 ${handle.pid}`, { user: 'root' }), CommandExitError)
  same(await box.commands.kill(handle.pid), false)
}

export async function killOfAnUnknownPid(kit) {
  const box = await kit.box()
  same(await box.commands.kill(999999), false)
}

export async function connect(kit) {
  const box = await kit.box()
  const command = `echo early; until [ -e /tmp/${kit.name} ]; do sleep 0.1; done; echo late; exit 5`
  const first = await box.commands.run(command, { background: true, timeoutMs: PATIENCE })
  const second = await box.commands.connect(first.pid, { timeoutMs: PATIENCE })
  same(second.pid, first.pid)
  const ends = Promise.all([first, second].map((handle) => rejected(handle.wait(), CommandExitError)))
  await box.files.write(`/tmp/${kit.name}`, 'go')
  const [one, other] = await ends
  same([one.exitCode, one.stdout, other.exitCode], [5, 'early\nlate\n', 5])
  assert.ok(other.stdout.endsWith('late\n'), other.stdout)
}

export async function connectToAnUnknownPid(kit) {
  const box = await kit.box()
  await rejected(box.commands.connect(999999), SandboxError)
}

export async function timeout(kit) {
  const box = await kit.box()
  await rejected(box.commands.run('sleep 60', { timeoutMs: 1000 }), TimeoutError)
}

export async function withoutTimeout(kit) {
  const box = await kit.box()
  same((await box.commands.run('sleep 1; echo done', { timeoutMs: 0 })).stdout, 'done\n')
}

export async function disconnect(kit) {
  const box = await kit.box()
  const handle = await box.commands.run(`sleep 0.5; echo on > /tmp/${kit.name}; sleep 600`, { background: true })
  await handle.disconnect()
  await until(() => box.files.exists(`/tmp/${kit.name}`), 'the command went on', 60_000)
  assert.ok((await box.commands.list()).some((p) => p.pid === handle.pid))
  same(await box.commands.kill(handle.pid), true)
}

export async function muchOutput(kit) {
  const box = await kit.box()
  const { stdout } = await box.commands.run('seq 1 400000', { timeoutMs: PATIENCE })
  const want = Array.from({ length: 400_000 }, (_, n) => `${n + 1}\n`).join('')
  assert.ok(stdout === want, `${stdout.length} of ${want.length}`)
}

export async function unicode(kit) {
  const box = await kit.box()
  same((await box.commands.run("echo 'Grüße, 世界 🚀'")).stdout, 'Grüße, 世界 🚀\n')
  same((await box.commands.run('echo $X', { envs: { X: 'ключ 🔑' } })).stdout, 'ключ 🔑\n')
}

export async function invalidUtf8(kit) {
  const box = await kit.box()
  const { stdout } = await box.commands.run("printf 'a\\xff\\xfeb'")
  same([stdout[0], stdout.at(-1)], ['a', 'b'])
}

export async function specialCharacters(kit) {
  const box = await kit.box()
  const text = 'a \'b\' "c" $d `e` \\f !g\n# h\n'
  same((await box.commands.run(`cat <<'END'\n${text}END\n`)).stdout, text)
}

export async function signal(kit) {
  const box = await kit.box()
  await rejected(box.commands.run('kill -9 $$'), CommandExitError)
}

export async function atOnce(kit) {
  const box = await kit.box()
  const all = [0, 1, 2, 3, 4]
  const outs = await Promise.all(all.map(async (n) => (await box.commands.run(`sleep 0.2; echo ${n}`)).stdout))
  same(outs, all.map((n) => `${n}\n`))
}
