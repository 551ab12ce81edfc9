"""git.py - the clients' git."""

from e2b import GitUpstreamException

from kit import raises, same


async def repository(kit, box):
    """One with a commit; its path."""
    await box.commands.run(
        f"git init -q -b main {kit.name} && cd {kit.name} && echo hello > README.md && git add . && "
        "git config --global user.name 'A User' && git config --global user.email user@example.com && "
        "git commit -qm first")
    return f"/home/user/{kit.name}"


async def commit(kit):
    box = await kit.box()
    path = f"/home/user/{kit.name}"
    await box.git.init(path, initial_branch="main")
    await box.git.configure_user("A User", "user@example.com")
    await box.files.write(f"{path}/README.md", "hello\n")
    await box.git.add(path)
    await box.git.commit(path, "first")
    status = await box.git.status(path)
    same((status.current_branch, status.is_clean, status.file_status), ("main", True, []))
    await box.files.write(f"{path}/README.md", "changed\n")
    await box.files.write(f"{path}/new.txt", "new\n")
    status = await box.git.status(path)
    same({(f.name, f.status) for f in status.file_status}, {("README.md", "modified"), ("new.txt", "untracked")})
    await box.git.add(path, files=["new.txt"])
    same((await box.git.status(path)).staged_count, 1)
    await box.git.commit(path, "second", author_name="Another", author_email="another@example.com")
    same((await box.commands.run("git log -1 --format='%an %s'", cwd=path)).stdout, "Another second\n")


async def branches(kit):
    box = await kit.box()
    path = await repository(kit, box)
    await box.git.create_branch(path, "side")
    found = await box.git.branches(path)
    same((sorted(found.branches), found.current_branch), (["main", "side"], "side"))
    await box.git.checkout_branch(path, "main")
    await box.git.delete_branch(path, "side")
    same((await box.git.branches(path)).branches, ["main"])


async def remote(kit):
    box = await kit.create()
    path = await repository(kit, box)
    await box.commands.run("mkdir -p srv && git init -q --bare -b main srv/r.git && touch srv/r.git/git-daemon-export-ok")
    daemon = await box.commands.run(
        "git daemon --base-path=/home/user/srv --enable=receive-pack --listen=127.0.0.1 --reuseaddr /home/user/srv",
        background=True, timeout=0)
    url = "git://127.0.0.1/r.git"
    await box.git.remote_add(path, "origin", url)
    same(await box.git.remote_get(path, "origin"), url)
    await box.commands.run(f"for i in $(seq 100); do git ls-remote {url} >/dev/null 2>&1 && exit 0; sleep 0.2; done; exit 1")
    await box.git.push(path, remote="origin", branch="main", set_upstream=True)
    await box.git.clone(url, path="/home/user/copy")
    same(await box.files.read("copy/README.md"), "hello\n")
    await box.commands.run("echo again > README.md; git commit -qam second", cwd=path)
    await box.git.push(path)
    await box.git.pull("/home/user/copy")
    same(await box.files.read("copy/README.md"), "again\n")
    await daemon.kill()


async def config(kit):
    box = await kit.box()
    path = await repository(kit, box)
    await box.git.set_config("pull.rebase", "false", scope="local", path=path)
    same(await box.git.get_config("pull.rebase", scope="local", path=path), "false")
    same(await box.git.get_config("user.name"), "A User")
    same(await box.git.get_config("no.such", scope="local", path=path), None)


async def reset_and_restore(kit):
    box = await kit.box()
    path = await repository(kit, box)
    await box.files.write(f"{path}/README.md", "changed\n")
    await box.git.add(path)
    await box.git.reset(path)
    same((await box.git.status(path)).staged_count, 0)
    await box.git.restore(path, paths=["README.md"])
    same(await box.files.read(f"{path}/README.md"), "hello\n")
    await box.files.write(f"{path}/README.md", "changed\n")
    await box.git.reset(path, mode="hard", target="HEAD")
    same((await box.git.status(path)).is_clean, True)


async def credentials(kit):
    box = await kit.create()
    await box.git.dangerously_authenticate("me", "secret", host="git.example.com", protocol="https")
    asked = await box.commands.run("printf 'protocol=https\\nhost=git.example.com\\n\\n' | git credential fill")
    assert "username=me\npassword=secret" in asked.stdout, asked.stdout


async def missing_upstream(kit):
    box = await kit.box()
    path = await repository(kit, box)
    with raises(GitUpstreamException):
        await box.git.pull(path)
