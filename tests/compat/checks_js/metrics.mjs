// metrics.mjs - what a sandbox used, over time.

import assert from 'node:assert/strict'

import { same, until } from './kit.mjs'

const some = (box) =>
  until(async () => {
    const points = await box.getMetrics()
    return points.length > 0 && points
  }, 'there are metrics', 60_000)

export async function appear(kit) {
  for (const point of await some(await kit.box())) {
    const text = JSON.stringify(point)
    assert.ok(point.cpuCount >= 1 && point.cpuUsedPct >= 0, text)
    assert.ok(point.memUsed > 0 && point.memUsed <= point.memTotal, text)
    assert.ok(point.diskUsed > 0 && point.diskUsed <= point.diskTotal, text)
    assert.ok(point.timestamp instanceof Date, text)
  }
}

export async function ofATime(kit) {
  const box = await kit.create()
  const first = (await some(box))[0].timestamp.getTime()
  const at = (ms) => new Date(first + ms)
  same(await box.getMetrics({ start: at(-7_200_000), end: at(-3_600_000) }), [])
  const points = await box.getMetrics({ start: at(-10_000), end: at(10_000) })
  assert.ok(points.length > 0)
  assert.ok(points.every((p) => Math.abs(p.timestamp.getTime() - first) <= 10_000), JSON.stringify(points))
}
