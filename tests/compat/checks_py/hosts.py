"""hosts.py - ports of a sandbox."""

from kit import ask_host, same


async def name(kit):
    box = await kit.box()
    host = box.get_host(3000)
    assert host.startswith(f"3000-{box.sandbox_id}.") and len(host.split(".")) >= 2, host


async def server_in_the_sandbox(kit):
    box = await kit.create()
    await box.files.write("/home/user/site/index.html", "it is served")
    server = await box.commands.run("python3 -m http.server 8000 -d site", background=True, timeout=0)

    async def served():
        answer = ask_host(box.get_host(8000), "/index.html")
        return answer if answer.status == 200 else None
    same((await kit.until(served, "the server answers")).body, b"it is served")
    same(ask_host(box.get_host(8000), "/nothing").status, 404)
    await server.kill()


async def closed_port(kit):
    box = await kit.box()
    same(ask_host(box.get_host(4567)).status, 502)
