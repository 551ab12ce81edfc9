// files.mjs - reading, writing, listing and moving files.

import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'

import { PATIENCE, e2b, rejected, same } from './kit.mjs'

const { FileType, InvalidArgumentError, NotFoundError } = e2b
const LARGE_MIB = Number(process.env.HOTCELL_LARGE_MIB ?? 50)
const ALL_BYTES = Uint8Array.from({ length: 4096 }, (_, i) => i % 256)
const sha256 = (data) => createHash('sha256').update(data).digest('hex')
const bufferOf = (bytes) => new Uint8Array(bytes).buffer

export async function readOfProc(kit) {
  const box = await kit.box()
  const text = await box.files.read('/proc/sys/kernel/random/boot_id')
  same(text.trim().length, 36)
  same(text, (await box.commands.run('cat /proc/sys/kernel/random/boot_id')).stdout)
}

export async function text(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  const { name, path, type } = await box.files.write(`${folder}/a.txt`, 'Grüße, 世界\n')
  same([name, path, type], ['a.txt', `${folder}/a.txt`, FileType.FILE])
  same(await box.files.read(`${folder}/a.txt`), 'Grüße, 世界\n')
}

export async function relativePath(kit) {
  const box = await kit.box()
  same((await box.files.write(`${kit.name}.txt`, 'at home')).path, `/home/user/${kit.name}.txt`)
  same(await box.files.read(`/home/user/${kit.name}.txt`), 'at home')
}

export async function parentsAreMade(kit) {
  const box = await kit.box()
  const path = `/tmp/${kit.name}/a/b/c.txt`
  await box.files.write(path, 'deep')
  same(await box.files.read(path), 'deep')
  same((await box.commands.run(`stat -c %U ${path} /tmp/${kit.name}/a`)).stdout, 'user\nuser\n')
}

export async function atTheRoot(kit) {
  const box = await kit.box()
  same((await box.files.write(`/${kit.name}/x.txt`, 'top', { user: 'root' })).path, `/${kit.name}/x.txt`)
  same(await box.files.read(`/${kit.name}/x.txt`), 'top')
}

export async function overwrite(kit) {
  const box = await kit.box()
  await box.files.write(`/tmp/${kit.name}`, 'a long text that was there before')
  await box.files.write(`/tmp/${kit.name}`, 'short')
  same(await box.files.read(`/tmp/${kit.name}`), 'short')
}

export async function bytes(kit) {
  const box = await kit.box()
  await box.files.write(`/tmp/${kit.name}`, bufferOf(ALL_BYTES))
  same(sha256(await box.files.read(`/tmp/${kit.name}`, { format: 'bytes' })), sha256(ALL_BYTES))
}

export async function stream(kit) {
  const box = await kit.box()
  let left = 64
  const source = new ReadableStream({
    pull(controller) {
      if (left-- > 0) controller.enqueue(ALL_BYTES)
      else controller.close()
    },
  })
  await box.files.write(`/tmp/${kit.name}`, source)
  const pieces = []
  for await (const piece of await box.files.read(`/tmp/${kit.name}`, { format: 'stream' })) pieces.push(piece)
  same(sha256(Buffer.concat(pieces)), sha256(Buffer.concat(Array(64).fill(ALL_BYTES))))
}

export async function blob(kit) {
  const box = await kit.box()
  await box.files.write(`/tmp/${kit.name}`, new Blob([ALL_BYTES]))
  const back = await box.files.read(`/tmp/${kit.name}`, { format: 'blob' })
  same(sha256(new Uint8Array(await back.arrayBuffer())), sha256(ALL_BYTES))
}

export async function several(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  const names = ['z', 'a', 'sub/m', '0']
  const written = await box.files.write(names.map((name) => ({ path: `${folder}/${name}`, data: `this is ${name}` })))
  same(written.map((w) => w.path), names.map((name) => `${folder}/${name}`))
  for (const name of names) same(await box.files.read(`${folder}/${name}`), `this is ${name}`)
}

export async function none(kit) {
  const box = await kit.box()
  same(await box.files.write([]), [])
}

export async function empty(kit) {
  const box = await kit.box()
  await box.files.write(`/tmp/${kit.name}`, '')
  same(await box.files.read(`/tmp/${kit.name}`), '')
  same((await box.files.read(`/tmp/${kit.name}`, { format: 'bytes' })).length, 0)
  same((await box.files.getInfo(`/tmp/${kit.name}`)).size, 0)
}

export async function gzip(kit) {
  const box = await kit.box()
  await box.files.write(`/tmp/${kit.name}`, 'squeezed '.repeat(5000), { gzip: true })
  same((await box.files.getInfo(`/tmp/${kit.name}`)).size, 45000)
  same(await box.files.read(`/tmp/${kit.name}`, { gzip: true }), 'squeezed '.repeat(5000))
}

export async function octetStream(kit) {
  const box = await kit.box()
  const written = await box.files.write(`/tmp/${kit.name}`, bufferOf(ALL_BYTES), { useOctetStream: true })
  same(written.path, `/tmp/${kit.name}`)
  same(sha256(await box.files.read(`/tmp/${kit.name}`, { format: 'bytes' })), sha256(ALL_BYTES))
}

export async function large(kit) {
  const box = await kit.create({ timeoutMs: 1_800_000 })
  const data = Buffer.concat(Array(LARGE_MIB).fill(randomBytes(1 << 20)))
  await box.files.write('/home/user/large', bufferOf(data), { requestTimeoutMs: PATIENCE })
  const back = await box.files.read('/home/user/large', { format: 'bytes', requestTimeoutMs: PATIENCE })
  same(back.length, data.length)
  same(sha256(back), sha256(data))
}

export async function readMissing(kit) {
  const box = await kit.box()
  await rejected(box.files.read('/no/such/file'), NotFoundError)
}

export async function strangeNames(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  const names = ['with blank', 'it\'s "quoted"', 'Grüße-世界', 'a+b&c=d%20', '#hash?', 'back\\slash']
  for (const name of names) same((await box.files.write(`${folder}/${name}`, name)).name, name)
  same((await box.files.list(folder)).map((e) => e.name).sort(), [...names].sort())
  for (const name of names) same(await box.files.read(`${folder}/${name}`), name)
}

export async function asAnotherUser(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  const user = 'root'
  await box.files.write(`${folder}/roots`, 'mine', { user })
  same((await box.files.getInfo(`${folder}/roots`)).owner, 'root')
  same((await box.files.write(`${kit.name}.txt`, 'home', { user })).path, `/root/${kit.name}.txt`)
  same((await box.files.getInfo(`/root/${kit.name}.txt`, { user })).owner, 'root')
}

export async function infoOfAFile(kit) {
  const box = await kit.box()
  const path = `/tmp/${kit.name}`
  await box.files.write(path, '12345')
  const info = await box.files.getInfo(path)
  same([info.name, info.path, info.type, info.size], [kit.name, path, FileType.FILE, 5])
  same([info.mode, info.permissions, info.owner, info.group], [0o644, '-rw-r--r--', 'user', 'user'])
  same(info.symlinkTarget, undefined)
  const now = Number((await box.commands.run('date +%s')).stdout) * 1000
  assert.ok(Math.abs(now - info.modifiedTime.getTime()) < 60_000, `${now} ${info.modifiedTime}`)
  await box.commands.run(`chmod 4750 ${path}`)
  same((await box.files.getInfo(path)).mode & 0o777, 0o750)
}

export async function infoOfADirectory(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  const info = await box.files.getInfo(folder)
  same([info.name, info.path, info.type], [kit.name, folder, FileType.DIR])
  same([info.mode, info.permissions, info.owner, info.group], [0o755, 'drwxr-xr-x', 'user', 'user'])
  assert.ok(info.size > 0)
}

export async function infoOfALink(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  await box.files.write(`${folder}/target`, 'x')
  await box.commands.run(`ln -s target ${folder}/link`)
  const info = await box.files.getInfo(`${folder}/link`)
  same([info.name, info.symlinkTarget], ['link', `${folder}/target`])
  same((await box.files.list(folder)).map((e) => e.name), ['link', 'target'])
}

export async function infoMissing(kit) {
  const box = await kit.box()
  await rejected(box.files.getInfo('/no/such/file'), NotFoundError)
}

export async function exists(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  await box.files.write(`${folder}/a`, 'x')
  same(await Promise.all([`${folder}/a`, folder, `${folder}/b`].map((p) => box.files.exists(p))), [true, true, false])
}

export async function listDepth(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  await box.commands.run(`cd ${folder} && mkdir -p a/b/c d && touch a/b/c/x a/f d/g z`)
  const whole = ['a', 'a/b', 'a/b/c', 'a/b/c/x', 'a/f', 'd', 'd/g', 'z']
  const trees = { 1: ['a', 'd', 'z'], 2: ['a', 'a/b', 'a/f', 'd', 'd/g', 'z'], 4: whole, 10: whole }
  trees[3] = whole.filter((path) => path !== 'a/b/c/x')
  for (const [depth, want] of Object.entries(trees)) {
    const got = await box.files.list(folder, { depth: Number(depth) })
    same(got.map((e) => e.path.slice(folder.length + 1)), want)
  }
  const kinds = (await box.files.list(folder)).map((e) => [e.name, e.type])
  same(kinds, [['a', FileType.DIR], ['d', FileType.DIR], ['z', FileType.FILE]])
}

export async function listDefault(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  await box.commands.run(`cd ${folder} && mkdir -p a/b && touch .hidden`)
  same((await box.files.list(folder)).map((e) => e.name), ['.hidden', 'a'])
}

export async function listDepthWrong(kit) {
  const box = await kit.box()
  await rejected(box.files.list('/tmp', { depth: -1 }), InvalidArgumentError)
}

export async function listMissing(kit) {
  const box = await kit.box()
  await rejected(box.files.list('/no/such/directory'), NotFoundError)
}

export async function makeDir(kit) {
  const box = await kit.box()
  const path = `/tmp/${kit.name}/deep/er`
  same(await box.files.makeDir(path), true)
  same(await box.files.makeDir(path), false)
  same((await box.files.getInfo(path)).owner, 'user')
}

export async function rename(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  await box.files.write(`${folder}/a`, 'moved')
  const info = await box.files.rename(`${folder}/a`, `${folder}/b`)
  same([info.name, info.path], ['b', `${folder}/b`])
  same(await box.files.exists(`${folder}/a`), false)
  same(await box.files.read(`${folder}/b`), 'moved')
  await box.files.write(`${folder}/dir/x`, 'inside')
  await box.files.rename(`${folder}/dir`, `${folder}/other`)
  same(await box.files.read(`${folder}/other/x`), 'inside')
}

export async function renameMissing(kit) {
  const box = await kit.box()
  await rejected(box.files.rename('/no/such/file', '/tmp/other'), NotFoundError)
}

export async function remove(kit) {
  const box = await kit.box()
  const folder = await kit.folder(box)
  await box.files.write(`${folder}/a/b`, 'x')
  await box.files.write(`${folder}/c`, 'x')
  await box.files.remove(`${folder}/c`)
  same(await box.files.exists(`${folder}/c`), false)
  await box.files.remove(folder)
  same(await box.files.exists(folder), false)
  await box.files.remove(folder)
}
