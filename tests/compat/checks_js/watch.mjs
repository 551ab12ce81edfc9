// watch.mjs - events of directories.

import { e2b, rejected, same } from './kit.mjs'

const { NotFoundError, SandboxError } = e2b

export async function write(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  await box.files.write(`${folder}/a`, 'before')
  const watch = await kit.watch(box, folder)
  await box.files.write(`${folder}/a`, 'after')
  await watch.until('a write')
  await watch.handle.stop()
}

export async function everyKind(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  const watch = await kit.watch(box, folder)
  await box.commands.run(`cd ${folder} && echo x > a && chmod 600 a && mv a b && rm b`)
  await watch.until('a create', 'a write', 'a chmod', 'a rename', 'b remove')
  await watch.handle.stop()
}

export async function recursive(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  await box.files.write(`${folder}/sub/deep/a`, 'before')
  const watch = await kit.watch(box, folder, { recursive: true })
  await box.files.write(`${folder}/sub/deep/a`, 'after')
  await watch.until('sub/deep/a write')
  await watch.handle.stop()
}

export async function newDirectory(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  const watch = await kit.watch(box, folder, { recursive: true })
  await box.files.makeDir(`${folder}/new`)
  await watch.until('new create')
  await box.files.write(`${folder}/new/a`, 'x')
  await watch.until('new/a write')
  await watch.handle.stop()
}

export async function entry(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  const watch = await kit.watch(box, folder, { includeEntry: true })
  await box.files.write(`${folder}/a`, 'x')
  await watch.until('a write')
  const { name, path, type } = watch.events.filter((e) => e.name === 'a' && e.type === 'write').at(-1).entry
  same([name, path, type], ['a', `${folder}/a`, 'file'])
  await watch.handle.stop()
}

export async function missing(kit) {
  const box = await kit.box()
  await rejected(kit.watch(box, '/no/such/directory'), NotFoundError)
}

export async function aFile(kit) {
  const box = await kit.box()
  await box.files.write(`/tmp/${kit.name}`, 'x')
  await rejected(kit.watch(box, `/tmp/${kit.name}`), SandboxError)
}

export async function stop(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  const watch = await kit.watch(box, folder)
  await box.files.write(`${folder}/a`, 'x')
  await watch.until('a write')
  await watch.handle.stop()
  const seen = watch.events.length
  await box.files.write(`${folder}/b`, 'x')
  same((await box.commands.run('echo later')).stdout, 'later\n')
  same(watch.events.length, seen)
}
