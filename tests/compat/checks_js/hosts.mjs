// hosts.mjs - ports of a sandbox.

import assert from 'node:assert/strict'

import { askHost, same, until } from './kit.mjs'

export async function name(kit) {
  const box = await kit.box()
  assert.ok(box.getHost(3000).startsWith(`3000-${box.sandboxId}.`), box.getHost(3000))
}

export async function serverInTheSandbox(kit) {
  const box = await kit.create()
  await box.files.write('/home/user/site/index.html', 'it is served')
  const opts = { background: true, timeoutMs: 0 }
  const server = await box.commands.run('python3 -m http.server 8000 -d site', opts)
  const served = async () => {
    const answer = await askHost(box.getHost(8000), '/index.html')
    return answer.status === 200 && answer
  }
  same((await until(served, 'the server answers')).body, 'it is served')
  same((await askHost(box.getHost(8000), '/nothing')).status, 404)
  server.wait().catch(() => {})
  await server.kill()
}

export async function closedPort(kit) {
  const box = await kit.box()
  same((await askHost(box.getHost(4567))).status, 502)
}
