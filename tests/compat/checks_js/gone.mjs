// gone.mjs - what clients see of a sandbox that is no more.

import assert from 'node:assert/strict'

import { askHost, e2b, rejected, same } from './kit.mjs'

const { NotFoundError, SandboxError } = e2b

export async function killedDuringACommand(kit) {
  const box = await kit.create()
  const handle = await box.commands.run('sleep 600', { background: true, timeoutMs: 0 })
  const waiting = rejected(handle.wait(), Error)
  await box.kill()
  await waiting
}

export async function killedIsTold(kit) {
  const box = await kit.create()
  const handle = await box.commands.run('sleep 600', { background: true, timeoutMs: 0 })
  const waiting = rejected(handle.wait(), SandboxError)
  await box.kill()
  assert.match((await waiting).message.toLowerCase(), /sandbox.*(killed|timeout|running)|(killed|timeout).*sandbox/s)
}

export async function requestToItsHost(kit) {
  const box = await kit.create()
  const host = box.getHost(3000)
  await box.kill()
  const { status, body } = await askHost(host)
  const want = { sandboxId: box.sandboxId, message: 'The sandbox was not found', code: 502 }
  same([status, JSON.parse(body)], [502, want])
}

export async function command(kit) {
  const box = await kit.create()
  await box.kill()
  await rejected(box.commands.run('echo hello'), SandboxError)
}

export async function files(kit) {
  const box = await kit.create()
  await box.kill()
  await rejected(box.files.read('/etc/hostname'), SandboxError)
}

export async function info(kit) {
  const box = await kit.create()
  await box.kill()
  await rejected(box.getInfo(), NotFoundError)
}
