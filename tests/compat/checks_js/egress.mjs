// egress.mjs - whom a sandbox may reach: asked for, shown, changed, refused. Who reaches whom is tests/security's.

import assert from 'node:assert/strict'

import { e2b, rejected, same } from './kit.mjs'

const { NotFoundError, Sandbox, SandboxError } = e2b
const ALL = '0.0.0.0/0'
const PATIENT = { requestTimeoutMs: 180_000 } // a pause writes memory to the disk, and machines may be emulated
const UNKNOWN = 'i0000000000000000000'
// a name is asked for: the answer comes at once, whatever it is
const ASK = 'getent ahosts example.com; echo $?'
const NOT_FOUND = '2\n'
// what it has of a network, without what is undefined
const network = async (box) => JSON.parse(JSON.stringify((await Sandbox.getInfo(box.sandboxId)).network))

export async function refused(kit) {
  for (const [asked, said] of [
    [{ denyOut: ['example.com'] }, 'invalid denied CIDR example.com'],
    [{ allowOut: ['0.0.0.0'] }, 'invalid allowed address 0.0.0.0'],
    [{ allowOut: ['example.com'] }, "you must include 'ALL_TRAFFIC' in deny out"],
  ]) {
    const error = await rejected(kit.create({ network: asked }), SandboxError)
    assert.ok(error.message.includes(said), error.message)
  }
}

export async function shown(kit) {
  const asked = { allowOut: ['*.example.com', '192.0.2.1'], denyOut: [ALL] }
  same(await network(await kit.create({ network: asked })), asked)
  const closed = await kit.create({ allowInternetAccess: false })
  same((await closed.getInfo()).allowInternetAccess, false)
}

export async function denyAll(kit) {
  const box = await kit.create({ network: { denyOut: [ALL] } })
  same((await box.commands.run(ASK)).stdout, NOT_FOUND)
  const reached = await box.commands.run('curl -sf --max-time 20 http://192.0.2.1/ && echo reached || echo refused')
  same(reached.stdout, 'refused\n')
}

export async function changed(kit) {
  const box = await kit.create({ network: { denyOut: ['192.0.2.0/24'] } })
  await box.updateNetwork({ allowOut: ['example.com'], denyOut: [ALL] })
  same(await network(box), { allowOut: ['example.com'], denyOut: [ALL] })
  await Sandbox.updateNetwork(box.sandboxId, { denyOut: ({ allTraffic }) => [allTraffic] })
  same(await network(box), { denyOut: [ALL] })
  await box.updateNetwork({})
  same(await network(box), {})
  const error = await rejected(box.updateNetwork({ denyOut: ['x'] }), SandboxError)
  assert.ok(error.message.includes('invalid denied CIDR x'), error.message)
  same(await network(box), {})
}

export async function changedOfAnUnknownOne() {
  await rejected(Sandbox.updateNetwork(UNKNOWN, {}), NotFoundError)
}

export async function kept(kit) {
  const asked = { allowOut: ['example.com'], denyOut: [ALL] }
  const box = await kit.create({ network: { denyOut: ['192.0.2.1'] } })
  await box.updateNetwork(asked)
  same(await box.pause(PATIENT), true)
  same(await network(box), asked)
  await rejected(box.updateNetwork({}), SandboxError)
  const again = await Sandbox.connect(box.sandboxId, PATIENT)
  same(await network(again), asked)
}
