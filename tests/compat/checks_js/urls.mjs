// urls.mjs - signed URLs: whoever has one needs nothing else.

import assert from 'node:assert/strict'

import { ask, named, same } from './kit.mjs'

// A body of multipart/form-data with one file, and its headers.
const form = (name, content) => ({
  body:
    `--cut\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n` +
    `Content-Type: application/octet-stream\r\n\r\n${content}\r\n--cut--\r\n`,
  headers: { 'Content-Type': 'multipart/form-data; boundary=cut' },
})

// As one would by the sandbox's host name: there is no DNS here.
const get = async (box, url) => ask('GET', await url, { headers: named(box) })

async function post(box, url, name, content) {
  const { body, headers } = form(name, content)
  return ask('POST', await url, { body, headers: { ...named(box), ...headers } })
}

export async function download(kit) {
  const box = await kit.box()
  await box.files.write(`${kit.name}.txt`, 'signed')
  same(await get(box, box.downloadUrl(`${kit.name}.txt`)), { status: 200, body: 'signed' })
}

export async function downloadExpiring(kit) {
  const box = await kit.box()
  await box.files.write(`${kit.name}.txt`, 'signed')
  const url = box.downloadUrl(`${kit.name}.txt`, { useSignatureExpiration: 600 })
  same(await get(box, url), { status: 200, body: 'signed' })
}

export async function expired(kit) {
  const box = await kit.box()
  await box.files.write(`${kit.name}.txt`, 'signed')
  const answer = await get(box, box.downloadUrl(`${kit.name}.txt`, { useSignatureExpiration: -120 }))
  same([answer.status, JSON.parse(answer.body)], [401, { code: 401, message: 'signature is already expired' }])
}

export async function upload(kit) {
  const box = await kit.box()
  const path = `/tmp/${kit.name}.txt`
  const answer = await post(box, box.uploadUrl(path), `${kit.name}.txt`, 'came by URL')
  same([answer.status, JSON.parse(answer.body)], [200, [{ name: `${kit.name}.txt`, path, type: 'file' }]])
  same(await box.files.read(path), 'came by URL')
}

export async function asRoot(kit) {
  const box = await kit.box()
  const user = 'root'
  const answer = await post(box, box.uploadUrl(`${kit.name}.txt`, { user }), 'x', "root's")
  same([answer.status, JSON.parse(answer.body)[0].path], [200, `/root/${kit.name}.txt`])
  same(await get(box, box.downloadUrl(`${kit.name}.txt`, { user })), { status: 200, body: "root's" })
}

export async function wrongSignature(kit) {
  const box = await kit.box()
  await box.files.write(`/tmp/${kit.name}`, 'secret')
  await box.files.write(`/tmp/${kit.name}-other`, 'secret')
  const url = await box.downloadUrl(`/tmp/${kit.name}`)
  same((await get(box, url.replace(kit.name, `${kit.name}-other`))).status, 401)
  same((await post(box, url, 'x', 'forged')).status, 401)
}

// The same at an address: with E2B_DOMAIN the host of a URL is a name, and has the sandbox in it.
const plain = (url) => `${process.env.PLAIN_URL}/${url.split('/').slice(3).join('/')}`

// Neither the URL nor the request says which sandbox.
export async function nameless(kit) {
  const box = await kit.box()
  const path = `signed dir/ü-${kit.name}.txt`
  for (const useSignatureExpiration of [undefined, 600]) {
    const text = `came, ${useSignatureExpiration}`
    const up = plain(await box.uploadUrl(path, { useSignatureExpiration }))
    assert.ok(!up.includes(box.sandboxId), up)
    same((await ask('POST', up, form('x', text))).status, 200)
    same(await box.files.read(path), text)
    const down = plain(await box.downloadUrl(path, { useSignatureExpiration }))
    same(await ask('GET', down), { status: 200, body: text })
    assert.ok([400, 401].includes((await ask('GET', `${down}x`)).status))
  }
}
