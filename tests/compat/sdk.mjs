// sdk.mjs - the published JavaScript package. Run by test_sdks.py, beside the SDK's node_modules.
//
// The address and the key come from E2B_API_URL, E2B_SANDBOX_URL and E2B_API_KEY, as they would for a user.

import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'

import { CommandExitError, NotFoundError, Sandbox } from 'e2b'

const PATIENCE = 600_000 // ms
const LARGE = Number(process.env.HOTCELL_LARGE_MIB ?? 50) << 20
const AT_ONCE = Number(process.env.HOTCELL_AT_ONCE ?? 10)
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex')

let box

before(async () => {
  box = await Sandbox.create({ timeoutMs: 1_800_000, metadata: { who: 'js' }, envs: { GREETING: 'hello' } })
})

after(async () => {
  await box?.kill()
})

test('create gives a running sandbox', async () => {
  assert.ok(box.sandboxId)
  assert.equal(await box.isRunning(), true)
})

test('run gives stdout, stderr and exit code', async () => {
  const result = await box.commands.run('echo out; echo err >&2')
  assert.deepEqual([result.stdout, result.stderr, result.exitCode], ['out\n', 'err\n', 0])
})

test('a failed command is an error with its output', async () => {
  await assert.rejects(box.commands.run('echo partly; exit 7'), (e) => {
    assert.ok(e instanceof CommandExitError)
    assert.deepEqual([e.exitCode, e.stdout], [7, 'partly\n'])
    return true
  })
})

test('output is streamed while the command runs', async () => {
  // the command goes on only after what it said has been heard
  const out = []
  const err = []
  const result = await box.commands.run(
    'echo go; until [ -e /tmp/js-heard ]; do sleep 0.1; done; echo end; echo last >&2',
    {
      timeoutMs: PATIENCE,
      onStdout: async (text) => {
        out.push(text)
        if (text.includes('go')) await box.files.write('/tmp/js-heard', 'yes')
      },
      onStderr: (text) => {
        err.push(text)
      },
    },
  )
  assert.equal(out.join(''), 'go\nend\n')
  assert.equal(err.join(''), 'last\n')
  assert.equal(result.stdout, 'go\nend\n')
})

test('a background command is listed and killed', async () => {
  const handle = await box.commands.run('sleep 600', { background: true })
  assert.ok((await box.commands.list()).some((p) => p.pid === handle.pid))
  assert.equal(await handle.kill(), true)
  await assert.rejects(handle.wait(), CommandExitError)
})

test('environment, user and folder', async () => {
  const a = await box.commands.run('echo $GREETING $MORE; whoami; pwd', { envs: { MORE: 'there' } })
  assert.equal(a.stdout, 'hello there\nuser\n/home/user\n')
  const b = await box.commands.run('whoami; pwd', { user: 'root', cwd: '/tmp' })
  assert.equal(b.stdout, 'root\n/tmp\n')
})

test('text file', async () => {
  const text = 'Grüße, 世界\nline two\n'
  await box.files.write('notes/hello-js.txt', text)
  assert.equal(await box.files.read('notes/hello-js.txt'), text)
})

test('binary file', async () => {
  const data = new Uint8Array(4096).map((_, i) => i % 256)
  await box.files.write('/tmp/bytes.bin', data.buffer)
  const back = await box.files.read('/tmp/bytes.bin', { format: 'bytes' })
  assert.deepEqual(Buffer.from(back), Buffer.from(data))
})

test('large file', async () => {
  const one = randomBytes(1 << 20)
  const data = new Uint8Array(Buffer.concat(Array(LARGE >> 20).fill(one)))
  await box.files.write('/home/user/large-js.bin', data.buffer, { requestTimeoutMs: PATIENCE })
  const back = await box.files.read('/home/user/large-js.bin', { format: 'bytes', requestTimeoutMs: PATIENCE })
  assert.equal(back.length, data.length)
  assert.equal(sha256(back), sha256(data))
})

for (const useSignatureExpiration of [undefined, 600]) {
  test(`signed URLs, expiration ${useSignatureExpiration}`, async () => {
    // plain HTTP, by whoever has the URL: it says nothing of the sandbox, nor does the request
    const up = await box.uploadUrl('signed dir/js.txt', { useSignatureExpiration })
    assert.ok(up.includes('signature=v1_') && !up.includes(box.sandboxId))
    const form = new FormData()
    form.append('file', 'signed')
    assert.equal((await fetch(up, { method: 'POST', body: form })).status, 200)
    assert.equal(await box.files.read('signed dir/js.txt'), 'signed')
    const down = await box.downloadUrl('signed dir/js.txt', { useSignatureExpiration })
    assert.equal(await (await fetch(down)).text(), 'signed')
    assert.ok([400, 401].includes((await fetch(down + 'x')).status))
  })
}

test('a missing file is not found', async () => {
  await assert.rejects(box.files.read('/no/such/file'), NotFoundError)
})

async function everything(paginator) {
  const found = []
  while (paginator.hasNext) found.push(...(await paginator.nextItems()))
  return found
}

test('list has it and filters by metadata', async () => {
  assert.ok((await everything(Sandbox.list())).some((s) => s.sandboxId === box.sandboxId))
  const mine = await everything(Sandbox.list({ query: { metadata: { who: 'js' } } }))
  assert.deepEqual(mine.map((s) => s.sandboxId), [box.sandboxId])
})

test('info and timeout', async () => {
  const info = await box.getInfo()
  assert.equal(info.sandboxId, box.sandboxId)
  assert.deepEqual(info.metadata, { who: 'js' })
  await box.setTimeout(7_200_000)
  const left = (await box.getInfo()).endAt.getTime() - Date.now()
  assert.ok(left > 7_000_000 && left <= 7_260_000, `left: ${left}`)
  await box.setTimeout(1_800_000)
  assert.ok((await box.getInfo()).endAt.getTime() - Date.now() < 1_900_000)
})

test('connect reaches the same sandbox', async () => {
  await box.files.write('/tmp/mark', 'the same')
  const again = await Sandbox.connect(box.sandboxId)
  assert.equal(await again.files.read('/tmp/mark'), 'the same')
  assert.equal((await again.commands.run('echo $GREETING')).stdout, 'hello\n')
})

test('kill ends it', async () => {
  const sandbox = await Sandbox.create({ timeoutMs: 600_000 })
  assert.equal(await sandbox.kill(), true)
  assert.equal(await sandbox.isRunning(), false)
  assert.equal(await Sandbox.kill(sandbox.sandboxId), false)
  await assert.rejects(Sandbox.connect(sandbox.sandboxId), NotFoundError)
})

test('many at once', async () => {
  const lives = await Promise.all(
    Array.from({ length: AT_ONCE }, async (_, n) => {
      const sandbox = await Sandbox.create({ timeoutMs: 1_200_000, requestTimeoutMs: PATIENCE })
      try {
        return [sandbox.sandboxId, (await sandbox.commands.run(`echo ${n}`, { timeoutMs: PATIENCE })).stdout]
      } finally {
        await sandbox.kill({ requestTimeoutMs: PATIENCE })
      }
    }),
  )
  assert.deepEqual(lives.map(([, out]) => out), Array.from({ length: AT_ONCE }, (_, n) => `${n}\n`))
  assert.equal(new Set(lives.map(([id]) => id)).size, AT_ONCE)
})
