// git.mjs - the clients' git.

import assert from 'node:assert/strict'

import { e2b, rejected, same } from './kit.mjs'

const { GitUpstreamError } = e2b

// One with a commit; its path.
async function repository(kit, box) {
  await box.commands.run(
    `git init -q -b main ${kit.name} && cd ${kit.name} && echo hello > README.md && git add . && ` +
      "git config --global user.name 'A User' && git config --global user.email user@example.com && " +
      'git commit -qm first',
  )
  return `/home/user/${kit.name}`
}

export async function commit(kit) {
  const box = await kit.box()
  const path = `/home/user/${kit.name}`
  await box.git.init(path, { initialBranch: 'main' })
  await box.git.configureUser('A User', 'user@example.com')
  await box.files.write(`${path}/README.md`, 'hello\n')
  await box.git.add(path)
  await box.git.commit(path, 'first')
  const clean = await box.git.status(path)
  same([clean.currentBranch, clean.isClean, clean.fileStatus], ['main', true, []])
  await box.files.write(`${path}/README.md`, 'changed\n')
  await box.files.write(`${path}/new.txt`, 'new\n')
  const found = (await box.git.status(path)).fileStatus.map((f) => `${f.name} ${f.status}`).sort()
  same(found, ['README.md modified', 'new.txt untracked'])
  await box.git.add(path, { files: ['new.txt'] })
  same((await box.git.status(path)).stagedCount, 1)
  await box.git.commit(path, 'second', { authorName: 'Another', authorEmail: 'another@example.com' })
  same((await box.commands.run("git log -1 --format='%an %s'", { cwd: path })).stdout, 'Another second\n')
}

export async function branches(kit) {
  const box = await kit.box()
  const path = await repository(kit, box)
  await box.git.createBranch(path, 'side')
  const found = await box.git.branches(path)
  same([[...found.branches].sort(), found.currentBranch], [['main', 'side'], 'side'])
  await box.git.checkoutBranch(path, 'main')
  await box.git.deleteBranch(path, 'side')
  same((await box.git.branches(path)).branches, ['main'])
}

export async function remote(kit) {
  const box = await kit.create()
  const path = await repository(kit, box)
  const bare = 'srv/r.git'
  await box.commands.run(`mkdir -p srv && git init -q --bare -b main ${bare} && touch ${bare}/git-daemon-export-ok`)
  const serve = 'git daemon --base-path=/home/user/srv --enable=receive-pack --listen=127.0.0.1 --reuseaddr'
  const daemon = await box.commands.run(`${serve} /home/user/srv`, { background: true, timeoutMs: 0 })
  const url = 'git://127.0.0.1/r.git'
  await box.git.remoteAdd(path, 'origin', url)
  same(await box.git.remoteGet(path, 'origin'), url)
  const asked = `git ls-remote ${url} >/dev/null 2>&1`
  await box.commands.run(`for i in $(seq 100); do ${asked} && exit 0; sleep 0.2; done; exit 1`)
  await box.git.push(path, { remote: 'origin', branch: 'main', setUpstream: true })
  await box.git.clone(url, { path: '/home/user/copy' })
  same(await box.files.read('copy/README.md'), 'hello\n')
  await box.commands.run('echo again > README.md; git commit -qam second', { cwd: path })
  await box.git.push(path)
  await box.git.pull('/home/user/copy')
  same(await box.files.read('copy/README.md'), 'again\n')
  daemon.wait().catch(() => {})
  await daemon.kill()
}

export async function config(kit) {
  const box = await kit.box()
  const path = await repository(kit, box)
  const local = { scope: 'local', path }
  await box.git.setConfig('pull.rebase', 'false', local)
  same(await box.git.getConfig('pull.rebase', local), 'false')
  same(await box.git.getConfig('user.name'), 'A User')
  same(await box.git.getConfig('no.such', local), undefined)
}

export async function resetAndRestore(kit) {
  const box = await kit.box()
  const path = await repository(kit, box)
  await box.files.write(`${path}/README.md`, 'changed\n')
  await box.git.add(path)
  await box.git.reset(path)
  same((await box.git.status(path)).stagedCount, 0)
  await box.git.restore(path, { paths: ['README.md'] })
  same(await box.files.read(`${path}/README.md`), 'hello\n')
  await box.files.write(`${path}/README.md`, 'changed\n')
  await box.git.reset(path, { mode: 'hard', target: 'HEAD' })
  same((await box.git.status(path)).isClean, true)
}

export async function credentials(kit) {
  const box = await kit.create()
  await box.git.dangerouslyAuthenticate({ username: 'me', password: 'secret', host: 'git.example.com' })
  const filled = await box.commands.run("printf 'protocol=https\\nhost=git.example.com\\n\\n' | git credential fill")
  assert.match(filled.stdout, /username=me\npassword=secret/)
}

export async function missingUpstream(kit) {
  const box = await kit.box()
  const path = await repository(kit, box)
  await rejected(box.git.pull(path), GitUpstreamError)
}
