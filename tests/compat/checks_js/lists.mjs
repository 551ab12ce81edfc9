// lists.mjs - the list of sandboxes.

import assert from 'node:assert/strict'

import { allOf, e2b, same } from './kit.mjs'

const { Sandbox } = e2b

const found = async (query, more = {}) => (await allOf(Sandbox.list({ query, ...more }))).map((b) => b.sandboxId)
const mine = (kit, more = {}) => ({ metadata: { check: kit.name }, ...more })

async function two(kit) {
  const first = await kit.create({ metadata: { check: kit.name, n: '1' } })
  const second = await kit.create({ metadata: { check: kit.name, n: '2' } })
  return [first.sandboxId, second.sandboxId]
}

export async function metadataFilter(kit) {
  const [first, second] = await two(kit)
  same(new Set(await found(mine(kit))), new Set([first, second]))
  same(await found({ metadata: { check: kit.name, n: '1' } }), [first])
  same(await found({ metadata: { check: kit.name, n: '3' } }), [])
  same(await found({ metadata: { check: kit.name.slice(0, -1) } }), [])
}

export async function newestFirst(kit) {
  const [first, second] = await two(kit)
  same(await found(mine(kit)), [second, first])
}

export async function ascending(kit) {
  const [first, second] = await two(kit)
  same(await found(mine(kit), { order: 'asc' }), [first, second])
  same(await found(mine(kit), { order: 'desc' }), [second, first])
}

export async function pages(kit) {
  const [first, second] = await two(kit)
  const pages = Sandbox.list({ query: mine(kit), limit: 1 })
  assert.ok(pages.hasNext)
  const one = await pages.nextItems()
  assert.ok(pages.hasNext && pages.nextToken)
  const other = await pages.nextItems()
  same([...one, ...other].map((b) => b.sandboxId), [second, first])
  same([pages.hasNext, pages.nextToken], [false, undefined])
}

export async function runningOnly(kit) {
  const [first, second] = await two(kit)
  same(new Set(await found(mine(kit, { state: ['running'] }))), new Set([first, second]))
  same(await found(mine(kit, { state: ['paused'] })), [])
}

export async function startedAfter(kit) {
  const box = await kit.create({ metadata: { check: kit.name } })
  const { startedAt } = await box.getInfo()
  same(await found(mine(kit, { startedAfter: startedAt })), [box.sandboxId])
  same(await found(mine(kit, { startedAfter: new Date(startedAt.getTime() + 1000) })), [])
}

export async function templateFilter(kit) {
  const box = await kit.create({ metadata: { check: kit.name } })
  const { templateId } = await box.getInfo()
  same(await found(mine(kit, { template: templateId })), [box.sandboxId])
  same(await found(mine(kit, { template: 'no-such-template' })), [])
}

export async function firstPageHasANewOne(kit) {
  const box = await kit.create()
  assert.ok((await Sandbox.list().nextItems()).some((b) => b.sandboxId === box.sandboxId))
}
