// stdin.mjs - what commands are told.

import { createHash } from 'node:crypto'

import { e2b, rejected, same } from './kit.mjs'

const { NotFoundError } = e2b
const asked = { background: true, stdin: true }

export async function echo(kit) {
  const box = await kit.box()
  const handle = await box.commands.run('cat', asked)
  await box.commands.sendStdin(handle.pid, 'Hello, ')
  await box.commands.sendStdin(handle.pid, '世界')
  await box.commands.closeStdin(handle.pid)
  same((await handle.wait()).stdout, 'Hello, 世界')
}

export async function empty(kit) {
  const box = await kit.box()
  const handle = await box.commands.run('cat', asked)
  await box.commands.sendStdin(handle.pid, '')
  await box.commands.sendStdin(handle.pid, 'x')
  await box.commands.closeStdin(handle.pid)
  same((await handle.wait()).stdout, 'x')
}

export async function close(kit) {
  const box = await kit.box()
  const handle = await box.commands.run('cat; echo end', asked)
  await box.commands.closeStdin(handle.pid)
  const { stdout, exitCode } = await handle.wait()
  same([stdout, exitCode], ['end\n', 0])
}

export async function bytes(kit) {
  const box = await kit.box()
  const handle = await box.commands.run('sha256sum | cut -c1-16; echo end', asked)
  const data = Uint8Array.from({ length: 256 * 300 }, (_, i) => i % 256)
  await box.commands.sendStdin(handle.pid, data)
  await box.commands.closeStdin(handle.pid)
  const want = createHash('sha256').update(data).digest('hex').slice(0, 16)
  same((await handle.wait()).stdout, `${want}\nend\n`)
}

export async function off(kit) {
  const box = await kit.box()
  same((await box.commands.run('cat; echo end')).stdout, 'end\n')
}

export async function unknownPid(kit) {
  const box = await kit.box()
  await rejected(box.commands.sendStdin(999999, 'x'), NotFoundError)
}
