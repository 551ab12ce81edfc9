// metadata.mjs - what users attach to files.

import assert from 'node:assert/strict'

import { same } from './kit.mjs'

export async function shown(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  const metadata = { author: 'me', purpose: 'check' }
  same((await box.files.write(`${folder}/a`, 'x', { metadata })).metadata, metadata)
  same((await box.files.getInfo(`${folder}/a`)).metadata, metadata)
  same((await box.files.list(folder)).map((e) => e.metadata), [metadata])
  same((await box.files.rename(`${folder}/a`, `${folder}/b`)).metadata, metadata)
}

export async function cleared(kit) {
  const box = await kit.box()
  const path = `/tmp/${kit.name}`
  await box.files.write(path, 'x', { metadata: { a: '1' } })
  await box.files.write(path, 'y')
  assert.equal(Object.keys((await box.files.getInfo(path)).metadata ?? {}).length, 0)
  await box.files.write(path, 'z', { metadata: { b: '2' } })
  same((await box.files.getInfo(path)).metadata, { b: '2' })
}

export async function xattrs(kit) {
  const box = await kit.box()
  const path = `/home/user/${kit.name}`
  const python = (line) => box.commands.run(`python3 -c 'import os; ${line}'`)
  await box.files.write(path, 'x', { metadata: { inside: 'seen' } })
  same((await python(`print(os.getxattr("${path}", "user.e2b.inside").decode())`)).stdout, 'seen\n')
  await python(`os.setxattr("${path}", "user.e2b.more", b"there")`)
  same((await box.files.getInfo(path)).metadata, { inside: 'seen', more: 'there' })
}

export async function severalFiles(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  const metadata = { of: 'both' }
  const written = await box.files.write(['a', 'b'].map((n) => ({ path: `${folder}/${n}`, data: n })), { metadata })
  same(written.map((w) => w.metadata), [metadata, metadata])
  same((await box.files.list(folder)).map((e) => e.metadata), [metadata, metadata])
}
