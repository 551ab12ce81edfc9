// copies.mjs - snapshots and forks.

import assert from 'node:assert/strict'

import { allOf, e2b, rejected, same } from './kit.mjs'

const { NotFoundError, Sandbox, SandboxError } = e2b
const PATIENT = { requestTimeoutMs: 180_000 } // memory is written to the disk, and machines may be emulated
const UNKNOWN = 'i0000000000000000000'

const listed = async (query) => (await allOf(Sandbox.listSnapshots(query))).map((s) => s.snapshotId)

export async function snapshotIsATemplate(kit) {
  const box = await kit.create()
  await box.files.write('/home/user/kept', kit.name)
  const sleeper = await box.commands.run('exec sleep 3600', { background: true, timeoutMs: 0 })
  const taken = await box.createSnapshot(PATIENT)
  assert.ok(taken.snapshotId)
  await box.files.write('/home/user/kept', 'later')
  const first = await kit.create(taken.snapshotId, PATIENT)
  const second = await kit.create(taken.snapshotId, PATIENT)
  same(new Set([box, first, second].map((b) => b.sandboxId)).size, 3)
  await first.files.write('/home/user/own', 'of the first')
  same(await second.files.exists('/home/user/own'), false)
  for (const copy of [first, second]) {
    same(await copy.files.read('/home/user/kept'), kit.name)
    assert.ok((await copy.commands.list()).some((p) => p.pid === sleeper.pid))
  }
  same(await box.files.read('/home/user/kept'), 'later')
  for (const copy of [first, second]) same(await Sandbox.kill(copy.sandboxId), true)
  same(await Sandbox.deleteSnapshot(taken.snapshotId), true)
}

export async function snapshotGoesOnce(kit) {
  const box = await kit.create()
  const taken = await Sandbox.createSnapshot(box.sandboxId, PATIENT)
  const copy = await kit.create(taken.snapshotId, PATIENT)
  await rejected(Sandbox.deleteSnapshot(taken.snapshotId), SandboxError)
  same(await Sandbox.kill(copy.sandboxId), true)
  same(await Sandbox.kill(box.sandboxId), true)
  same(await Sandbox.deleteSnapshot(taken.snapshotId), true)
  same(await Sandbox.deleteSnapshot(taken.snapshotId), false)
  await rejected(Sandbox.createSnapshot(UNKNOWN), NotFoundError)
}

export async function snapshotsAreListed(kit) {
  const box = await kit.create()
  const first = (await box.createSnapshot(PATIENT)).snapshotId
  const second = (await box.createSnapshot(PATIENT)).snapshotId
  const all = await listed()
  assert.ok(all.includes(first) && all.includes(second))
  same(await listed({ sandboxId: box.sandboxId }), [second, first])
  same(await listed({ sandboxId: box.sandboxId, limit: 1 }), [second, first])
  same(await listed({ sandboxId: UNKNOWN }), [])
  for (const snapshot of [first, second]) same(await Sandbox.deleteSnapshot(snapshot), true)
  same(await listed({ sandboxId: box.sandboxId }), [])
}

export async function snapshotsHaveNames(kit) {
  const box = await kit.create()
  const taken = await box.createSnapshot({ name: kit.name, ...PATIENT })
  assert.ok(taken.names.some((name) => name.includes(kit.name)), String(taken.names))
  const tagged = await box.createSnapshot({ name: `${kit.name}:v1`, ...PATIENT })
  same(await listed({ name: `${kit.name}:v1` }), [tagged.snapshotId])
  assert.ok((await listed({ name: kit.name })).includes(taken.snapshotId))
  same(await listed({ name: 'nobody-has-this' }), [])
  for (const name of [kit.name, taken.snapshotId, tagged.snapshotId]) {
    const copy = await kit.create(name, PATIENT)
    same(await Sandbox.kill(copy.sandboxId), true)
  }
  for (const snapshot of [taken, tagged]) same(await Sandbox.deleteSnapshot(snapshot.snapshotId), true)
}

export async function forksAreIndependent(kit) {
  const box = await kit.create({ metadata: { check: kit.name }, envs: { GREETING: 'hello' } })
  await box.files.write('/home/user/kept', kit.name)
  const end = (await box.getInfo()).endAt
  const copies = await box.fork({ count: 2, timeoutMs: 600_000, ...PATIENT })
  kit.own.push(...copies)
  same(new Set([box, ...copies].map((b) => b.sandboxId)).size, 3)
  await box.files.write('/home/user/kept', 'later')
  for (const copy of copies) {
    same(await copy.files.read('/home/user/kept'), kit.name)
    same((await copy.commands.run('echo $GREETING')).stdout, 'hello\n')
    same((await copy.getInfo()).metadata, { check: kit.name })
  }
  await copies[0].files.write('/home/user/own', 'of the first')
  same(await copies[1].files.exists('/home/user/own'), false)
  same(await box.files.exists('/home/user/own'), false)
  same((await box.getInfo()).endAt, end)
  same(await box.isRunning(), true)
}

export async function forkById(kit) {
  const box = await kit.create()
  await box.files.write('/home/user/kept', kit.name)
  const [copy] = await Sandbox.fork(box.sandboxId, PATIENT)
  kit.own.push(copy)
  same(await copy.files.read('/home/user/kept'), kit.name)
}

export async function forkOfAKilledOne(kit) {
  const box = await kit.create()
  await box.kill()
  await rejected(box.fork(), NotFoundError)
}

export async function forkOfAPausedOne(kit) {
  const box = await kit.create()
  same(await box.pause(PATIENT), true)
  await rejected(box.fork(), SandboxError)
}
