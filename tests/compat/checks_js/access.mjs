// access.mjs - keys and tokens.

import assert from 'node:assert/strict'

import { askAgent, e2b, rejected, same } from './kit.mjs'

const { AuthenticationError, Sandbox } = e2b
const apiKey = `e2b_${'0'.repeat(40)}`
const PASSWD = '/files?path=/etc/passwd&username=user'

export async function wrongKey() {
  await rejected(Sandbox.create({ apiKey }), AuthenticationError)
  await rejected(Sandbox.list({ apiKey }).nextItems(), AuthenticationError)
}

export async function tokenIsNeeded(kit) {
  const box = await kit.box()
  same((await askAgent(box, PASSWD)).status, 401)
  same((await askAgent(box, PASSWD, { headers: { 'X-Access-Token': 'wrong' } })).status, 401)
  const call = { method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json' } }
  same((await askAgent(box, '/process.Process/List', call)).status, 401)
}

export async function health(kit) {
  same((await askAgent(await kit.box(), '/health')).status, 204)
}

export async function ofAnotherSandbox(kit) {
  const [box, other] = [await kit.box(), await kit.create()]
  const headers = { 'X-Access-Token': other.envdAccessToken }
  assert.ok(other.envdAccessToken)
  same((await askAgent(other, PASSWD, { headers })).status, 200)
  same((await askAgent(box, PASSWD, { headers })).status, 401)
}
