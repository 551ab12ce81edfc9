// sandbox.mjs - create, connect, timeouts, kill.

import assert from 'node:assert/strict'

import { allOf, askAgent, e2b, rejected, same, until } from './kit.mjs'

const { NotFoundError, Sandbox, SandboxError } = e2b
const AT_ONCE = Number(process.env.HOTCELL_AT_ONCE ?? 10)
const UNKNOWN = 'i0000000000000000000'

const mine = (kit) => ({ query: { metadata: { check: kit.name } } })
const endOf = async (box) => (await box.getInfo()).endAt.getTime()

export async function killOfAnUnknownId() {
  same(await Sandbox.kill(UNKNOWN), false)
}

export async function killedLeavesTheList(kit) {
  const box = await kit.create({ metadata: { check: kit.name } })
  same((await allOf(Sandbox.list(mine(kit)))).map((b) => b.sandboxId), [box.sandboxId])
  same(await Sandbox.kill(box.sandboxId), true)
  same(await allOf(Sandbox.list(mine(kit))), [])
  same(await box.isRunning(), false)
  same(await Sandbox.kill(box.sandboxId), false)
}

export async function connectReachesTheSame(kit) {
  const box = await kit.box()
  await box.files.write(`/tmp/${kit.name}`, 'the same')
  const again = await Sandbox.connect(box.sandboxId)
  same(again.sandboxId, box.sandboxId)
  same(await again.files.read(`/tmp/${kit.name}`), 'the same')
  same((await again.commands.run('echo $GREETING')).stdout, 'hello\n')
}

export async function connectShorterKeepsTheEnd(kit) {
  const box = await kit.create({ timeoutMs: 900_000 })
  const before = await endOf(box)
  await Sandbox.connect(box.sandboxId, { timeoutMs: 60_000 })
  same(await endOf(box), before)
}

export async function connectLongerMovesTheEnd(kit) {
  const box = await kit.create({ timeoutMs: 300_000 })
  const before = await endOf(box)
  await Sandbox.connect(box.sandboxId, { timeoutMs: 900_000 })
  assert.ok((await endOf(box)) - before > 300_000)
}

export async function connectToAKilledOne(kit) {
  const box = await kit.create()
  await box.kill()
  await rejected(Sandbox.connect(box.sandboxId), NotFoundError)
}

export async function connectOfAnInstance(kit) {
  const box = await kit.box()
  const again = await box.connect({ timeoutMs: 60_000 })
  same(again.sandboxId, box.sandboxId)
  same((await again.commands.run('echo $GREETING')).stdout, 'hello\n')
}

export async function timeoutEndsIt(kit) {
  const box = await kit.create()
  await box.setTimeout(1000)
  await until(async () => !(await box.isRunning()), 'it ended', 30_000)
}

export async function timeoutLengthens(kit) {
  const box = await kit.create({ timeoutMs: 300_000 })
  const first = await endOf(box)
  await box.setTimeout(3_000_000)
  const second = await endOf(box)
  assert.ok(second - first > 2_000_000, `${first} ${second}`)
  await box.setTimeout(600_000)
  const third = await endOf(box)
  assert.ok(second - third > 2_000_000, `${second} ${third}`)
  same(await box.isRunning(), true)
}

export async function timeoutById(kit) {
  const box = await kit.create({ timeoutMs: 300_000 })
  const first = await endOf(box)
  await Sandbox.setTimeout(box.sandboxId, 3_000_000)
  assert.ok((await endOf(box)) - first > 2_000_000)
}

export async function timeoutOfAnUnknownOne() {
  await rejected(Sandbox.setTimeout(UNKNOWN, 60_000), NotFoundError)
}

export async function timeoutIsCapped(kit) {
  const box = await kit.create({ timeoutMs: 300_000 })
  await box.setTimeout(864_000_000)
  const { startedAt, endAt } = await box.getInfo()
  // of a wall clock, which may be moved a little meanwhile
  assert.ok(endAt - startedAt > 23 * 3_600_000 && endAt - startedAt <= 24 * 3_600_000 + 1000, `${startedAt} ${endAt}`)
}

export async function timeoutTooLong(kit) {
  const error = await rejected(kit.create({ timeoutMs: 864_000_000 }), SandboxError)
  assert.match(error.message, /Timeout cannot be greater than 24 hours/)
}

export async function mcpWithoutAGateway(kit) {
  const opts = { metadata: { check: kit.name }, mcp: { exa: { apiKey: 'none' } } }
  await rejected(kit.create('base', opts), Error)
  same(await allOf(Sandbox.list(mine(kit))), [])
}

export async function create(kit) {
  const box = await kit.create()
  assert.ok(box.sandboxId)
  same(await box.isRunning(), true)
  same((await box.commands.run('echo I am')).stdout, 'I am\n')
}

export async function info(kit) {
  const before = Date.now()
  const box = await kit.create({ timeoutMs: 600_000, metadata: { check: kit.name } })
  const info = await box.getInfo()
  same([info.sandboxId, info.metadata, info.state], [box.sandboxId, { check: kit.name }, 'running'])
  assert.ok(info.templateId && info.envdVersion && info.cpuCount >= 1 && info.memoryMB >= 128, JSON.stringify(info))
  assert.ok(Math.abs(info.startedAt.getTime() - before) < 60_000, JSON.stringify(info))
  assert.ok(Math.abs(info.endAt - info.startedAt - 600_000) < 30_000, JSON.stringify(info))
  same((await Sandbox.getInfo(box.sandboxId)).startedAt, info.startedAt)
}

export async function createFromANamedTemplate(kit) {
  const box = await kit.create('base')
  same((await box.getInfo()).name, 'base')
}

export async function createFromAnUnknownTemplate(kit) {
  await rejected(kit.create('no-such-template'), SandboxError)
}

export async function withoutAccessToken(kit) {
  const box = await kit.create({ secure: false })
  await box.files.write('/tmp/open', 'open')
  same(await box.files.read('/tmp/open'), 'open')
  same(await askAgent(box, '/files?path=/tmp/open&username=user'), { status: 200, body: 'open' })
}

export async function atOnce() {
  const life = async (n) => {
    const box = await Sandbox.create({ timeoutMs: 900_000, requestTimeoutMs: 300_000 })
    try {
      return [box.sandboxId, (await box.commands.run(`echo ${n}`, { timeoutMs: 300_000 })).stdout]
    } finally {
      await box.kill()
    }
  }
  const lives = await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => life(n)))
  same(lives.map(([, out]) => out), Array.from({ length: AT_ONCE }, (_, n) => `${n}\n`))
  same(new Set(lives.map(([id]) => id)).size, AT_ONCE)
}

export async function internetOff(kit) {
  const box = await kit.create({ allowInternetAccess: false })
  same((await box.getInfo()).sandboxId, box.sandboxId)
  same((await box.commands.run('echo alive')).stdout, 'alive\n')
}
