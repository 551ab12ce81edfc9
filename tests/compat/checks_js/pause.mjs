// pause.mjs - pause, resume, auto-pause, auto-resume.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'

import { allOf, askAgent, askHost, e2b, rejected, same, until } from './kit.mjs'

const { NotFoundError, Sandbox, SandboxError } = e2b
const PATIENT = { requestTimeoutMs: 180_000 } // a pause writes memory to the disk, and machines may be emulated
const UNKNOWN = 'i0000000000000000000'
const RESUMES = { onTimeout: 'pause', autoResume: true }

const bootId = async (box) => (await box.files.read('/proc/sys/kernel/random/boot_id')).trim()
const state = async (box) => (await Sandbox.getInfo(box.sandboxId)).state
const paused = (box) => until(async () => (await state(box)) === 'paused', 'it is paused', 120_000)

// A web server in the guest, at port 8000, in a folder with one page.
async function serve(box, text) {
  await box.files.write('/tmp/www/page', text)
  await box.commands.run('cd /tmp/www && exec python3 -m http.server 8000', { background: true, timeoutMs: 0 })
  await until(async () => (await askHost(box.getHost(8000), '/page')).status === 200, 'the server listens')
}

export async function keepsMemory(kit) {
  const box = await kit.create()
  const sleeper = await box.commands.run('exec sleep 3600', { background: true, timeoutMs: 0 })
  await box.commands.run('echo $RANDOM$RANDOM > /dev/shm/kept')
  const kept = await box.files.read('/dev/shm/kept')
  const boot = await bootId(box)
  same(await box.pause(PATIENT), true)
  same(await state(box), 'paused')
  same(await box.isRunning(), false)
  const again = await Sandbox.connect(box.sandboxId, PATIENT)
  same(await state(box), 'running')
  same(again.sandboxId, box.sandboxId)
  same(await again.files.read('/dev/shm/kept'), kept)
  same(await bootId(again), boot)
  assert.ok((await again.commands.list()).some((p) => p.pid === sleeper.pid))
  same(await again.commands.kill(sleeper.pid), true)
}

export async function pausesOnce(kit) {
  const box = await kit.create()
  same(await box.pause(PATIENT), true)
  same(await box.pause(PATIENT), false)
  same(await Sandbox.pause(box.sandboxId, PATIENT), false)
}

export async function ofAnUnknownOne() {
  await rejected(Sandbox.pause(UNKNOWN), NotFoundError)
}

export async function commandGoesOn(kit) {
  const box = await kit.create()
  await box.commands.run('sleep 2; echo late > /tmp/soon; mv /tmp/soon /tmp/late', { background: true, timeoutMs: 0 })
  same(await box.pause(PATIENT), true)
  await box.connect(PATIENT)
  await until(() => box.files.exists('/tmp/late'), 'the command went on', 120_000)
  same(await box.files.read('/tmp/late'), 'late\n')
}

export async function serverAnswersAgain(kit) {
  const box = await kit.create()
  await serve(box, kit.name)
  same(await box.pause(PATIENT), true)
  same((await askHost(box.getHost(8000), '/page')).status, 502)
  await box.connect(PATIENT)
  same(await askHost(box.getHost(8000), '/page'), { status: 200, body: kit.name })
}

// Who was there before the pause needs nothing new: the token is the same.
export async function instanceGoesOn(kit) {
  const box = await kit.create({ envs: { GREETING: 'hello' } })
  same(await box.pause(PATIENT), true)
  await Sandbox.connect(box.sandboxId, PATIENT)
  same((await box.commands.run('echo $GREETING')).stdout, 'hello\n')
}

export async function connectGivesItTime(kit) {
  const box = await kit.create({ timeoutMs: 300_000 })
  same(await box.pause(PATIENT), true)
  await Sandbox.connect(box.sandboxId, { timeoutMs: 1_800_000, ...PATIENT })
  const info = await box.getInfo()
  assert.ok(info.endAt - info.startedAt > 1_500_000, JSON.stringify(info))
}

export async function killOfAPausedOne(kit) {
  const box = await kit.create({ metadata: { check: kit.name } })
  same(await box.pause(PATIENT), true)
  same(await Sandbox.kill(box.sandboxId), true)
  same(await Sandbox.kill(box.sandboxId), false)
  await rejected(Sandbox.connect(box.sandboxId), NotFoundError)
  same(await allOf(Sandbox.list({ query: { metadata: { check: kit.name } } })), [])
}

export async function aPausedOneIsNotReached(kit) {
  const box = await kit.create()
  same(await box.pause(PATIENT), true)
  const answer = await askAgent(box, '/health')
  same(answer.status, 502)
  same(JSON.parse(answer.body), { sandboxId: box.sandboxId, message: 'The sandbox was not found', code: 502 })
  await rejected(Sandbox.setTimeout(box.sandboxId, 60_000), SandboxError)
  same(await state(box), 'paused')
}

// Lists have running and paused ones in one order of their start.
export async function amongTheOthers(kit) {
  const first = (await kit.create({ metadata: { check: kit.name } })).sandboxId
  const second = (await kit.create({ metadata: { check: kit.name } })).sandboxId
  same(await Sandbox.pause(first, PATIENT), true)
  const listed = async (more = {}) =>
    (await allOf(Sandbox.list({ query: { metadata: { check: kit.name }, ...more } }))).map((b) => `${b.sandboxId} ${b.state}`)
  const both = [`${second} running`, `${first} paused`]
  same(await listed(), both)
  same(await listed({ state: ['running', 'paused'] }), both)
  same(await listed({ state: ['paused'] }), both.slice(1))
  same(await listed({ state: ['running'] }), both.slice(0, 1))
}

export async function diskAlone(kit) {
  const box = await kit.create({ envs: { GREETING: 'hello' } })
  await box.files.write('/home/user/kept', kit.name)
  const boot = await bootId(box)
  same(await box.pause({ keepMemory: false, ...PATIENT }), true)
  await box.connect(PATIENT)
  same(await box.files.read('/home/user/kept'), kit.name)
  assert.notEqual(await bootId(box), boot)
  same((await box.commands.run('echo $GREETING')).stdout, 'hello\n')
}

// The memory is there and not wanted.
export async function reboot(kit) {
  const box = await kit.create()
  await box.files.write('/home/user/kept', kit.name)
  await box.commands.run('sync')
  const boot = await bootId(box)
  same(await box.pause(PATIENT), true)
  const again = await Sandbox.connect(box.sandboxId, { onResume: 'reboot', ...PATIENT })
  same(await again.files.read('/home/user/kept'), kit.name)
  assert.notEqual(await bootId(again), boot)
}

export async function atTheEndOfItsTime(kit) {
  const box = await kit.create({ lifecycle: { onTimeout: 'pause' } })
  const boot = await bootId(box)
  await box.setTimeout(1000)
  await paused(box)
  const { lifecycle } = await Sandbox.getInfo(box.sandboxId)
  if (lifecycle) same([lifecycle.onTimeout, lifecycle.autoResume], ['pause', false]) // old ones do not tell
  await box.connect(PATIENT)
  same(await state(box), 'running')
  same(await bootId(box), boot)
}

export async function atTheEndTheDiskAlone(kit) {
  const box = await kit.create({ lifecycle: { onTimeout: { action: 'pause', keepMemory: false } } })
  await box.files.write('/home/user/kept', kit.name)
  const boot = await bootId(box)
  await box.setTimeout(1000)
  await paused(box)
  await box.connect(PATIENT)
  same(await box.files.read('/home/user/kept'), kit.name)
  assert.notEqual(await bootId(box), boot)
}

export async function trafficResumes(kit) {
  const box = await kit.create({ lifecycle: RESUMES })
  const boot = await bootId(box)
  same(await box.pause(PATIENT), true)
  same((await box.commands.run('echo awake', PATIENT)).stdout, 'awake\n')
  same(await state(box), 'running')
  same(await bootId(box), boot)
}

export async function trafficOfAPortResumes(kit) {
  const box = await kit.create({ lifecycle: RESUMES })
  await serve(box, kit.name)
  same(await box.pause(PATIENT), true)
  same(await askHost(box.getHost(8000), '/page'), { status: 200, body: kit.name })
  same(await state(box), 'running')
}

// At the agent's port only who has the token resumes it.
export async function trafficWithoutTheToken(kit) {
  const box = await kit.create({ lifecycle: RESUMES })
  same(await box.pause(PATIENT), true)
  for (const headers of [{}, { 'X-Access-Token': randomBytes(16).toString('hex') }]) {
    const { status, body } = await askAgent(box, '/health', { headers })
    const { code, sandboxId } = JSON.parse(body)
    same([status, code, sandboxId], [403, 403, box.sandboxId])
  }
  same(await state(box), 'paused')
}
