// vault.mjs - secrets: given once, never shown, named in rules.

import assert from 'node:assert/strict'

import { e2b, rejected, same } from './kit.mjs'

const HOST = 'good.test' // of tests/internet: what it was sent it says, at /echo
const { Sandbox, Secret, SecretError, SecretNotFoundError } = e2b

function networkOf(name) {
  const headers = { Authorization: `Bearer ${Secret.fill(name)}`, 'X-Plain': 'as it is' }
  return { allowOut: [HOST], denyOut: ['0.0.0.0/0'], rules: { [HOST]: [{ transform: { headers } }] } }
}

// what a request of the sandbox to the host has
async function sent(box) {
  const curl = `curl -sS --max-time 240 -H 'X-Plain: mine' https://${HOST}/echo`
  const fields = JSON.parse((await box.commands.run(curl, { timeoutMs: 300_000 })).stdout)
  return [fields.authorization, fields['x-plain']]
}

export async function life(kit) {
  const made = await Secret.create(kit.name.toUpperCase(), 'first', { metadata: { owner: 'check' } })
  same([made.name, made.version, made.metadata], [kit.name, 1, { owner: 'check' }])
  assert.ok(made.secretId.startsWith('sec_'), made.secretId)
  const again = await Secret.update(kit.name, 'second')
  same([again.secretId, again.version, again.metadata], [made.secretId, 2, { owner: 'check' }])
  assert.ok(again.updatedAt >= made.updatedAt)
  same(again.createdAt, made.createdAt)
  const found = await Secret.getInfo(made.secretId)
  same([found.name, found.version], [kit.name, 2])
  assert.ok(!JSON.stringify(found).includes('second'))
  same(await Secret.exists(kit.name), true)
  same(await Secret.destroy(kit.name), true)
  same(await Secret.destroy(kit.name), false)
  same(await Secret.exists(made.secretId), false)
}

export async function unknown(kit) {
  await rejected(Secret.getInfo(kit.name), SecretNotFoundError)
  await rejected(Secret.update(kit.name, 'value'), SecretNotFoundError)
}

export async function refused(kit) {
  const error = await rejected(Secret.create('not a name', 'hidden'), SecretError)
  assert.ok(!String(error).includes('hidden'))
  await rejected(Secret.create('sec_reserved', 'value'), SecretError)
  await Secret.create(kit.name, 'value')
  await rejected(Secret.create(kit.name, 'value'), SecretError)
  await Secret.destroy(kit.name)
}

export async function pages(kit) {
  const names = [0, 1, 2].map((i) => `${kit.name}-${i}`)
  for (const name of names) await Secret.create(name, 'value')
  const listing = Secret.list({ limit: 2 })
  const found = []
  while (listing.hasNext) {
    const page = await listing.nextItems()
    assert.ok(page.length <= 2)
    found.push(...page.map((one) => one.name))
  }
  same(found.filter((name) => names.includes(name)).sort(), names)
  for (const name of names) await Secret.destroy(name)
}

export async function fill() {
  same(Secret.fill('key'), '${e2b.secrets.key}')
}

export async function used(kit) {
  await Secret.create(kit.name, 'first')
  const asked = networkOf(kit.name)
  const box = await kit.create({ network: asked })
  same(await sent(box), ['Bearer first', 'as it is'])
  const shown = (await Sandbox.getInfo(box.sandboxId)).network
  same(JSON.parse(JSON.stringify(shown)), asked)
  await Secret.update(kit.name, 'second')
  same(await sent(box), ['Bearer second', 'as it is'])
  await box.updateNetwork({ ...asked, rules: { [HOST]: [{ transform: { headers: { 'X-Plain': 'else' } } }] } })
  same(await sent(box), [undefined, 'else'])
  await Secret.destroy(kit.name)
}
