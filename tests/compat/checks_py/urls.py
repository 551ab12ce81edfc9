"""urls.py - signed URLs: whoever has one needs nothing else."""

import json
import os

from kit import ask, same


def named(box):
    """Says which sandbox is meant where its host name would: there is no DNS here."""
    return {"E2b-Sandbox-Id": box.sandbox_id, "E2b-Sandbox-Port": "49983"}


def form(name, content):
    """A body of multipart/form-data with one file, and its headers."""
    body = (f'--cut\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            f"Content-Type: application/octet-stream\r\n\r\n{content}\r\n--cut--\r\n").encode()
    return body, {"Content-Type": "multipart/form-data; boundary=cut"}


async def download(kit):
    box = await kit.box()
    await box.files.write(f"{kit.name}.txt", "signed")
    answer = ask("GET", box.download_url(f"{kit.name}.txt"), headers=named(box))
    same((answer.status, answer.body), (200, b"signed"))


async def download_expiring(kit):
    box = await kit.box()
    await box.files.write(f"{kit.name}.txt", "signed")
    answer = ask("GET", box.download_url(f"{kit.name}.txt", use_signature_expiration=600), headers=named(box))
    same((answer.status, answer.body), (200, b"signed"))


async def expired(kit):
    box = await kit.box()
    await box.files.write(f"{kit.name}.txt", "signed")
    answer = ask("GET", box.download_url(f"{kit.name}.txt", use_signature_expiration=-120), headers=named(box))
    same((answer.status, answer.json), (401, {"code": 401, "message": "signature is already expired"}))


async def upload(kit):
    box = await kit.box()
    path = f"/tmp/{kit.name}.txt"
    body, headers = form(f"{kit.name}.txt", "came by URL")
    answer = ask("POST", box.upload_url(path), body, {**named(box), **headers})
    same((answer.status, json.loads(answer.body)),
         (200, [{"name": f"{kit.name}.txt", "path": path, "type": "file"}]))
    same(await box.files.read(path), "came by URL")


async def as_root(kit):
    box = await kit.box()
    body, headers = form("x", "root's")
    answer = ask("POST", box.upload_url(f"{kit.name}.txt", user="root"), body, {**named(box), **headers})
    same((answer.status, answer.json[0]["path"]), (200, f"/root/{kit.name}.txt"))
    answer = ask("GET", box.download_url(f"{kit.name}.txt", user="root"), headers=named(box))
    same((answer.status, answer.body), (200, b"root's"))


async def wrong_signature(kit):
    box = await kit.box()
    await box.files.write(f"/tmp/{kit.name}", "secret")
    await box.files.write(f"/tmp/{kit.name}-other", "secret")
    url = box.download_url(f"/tmp/{kit.name}").replace(kit.name, f"{kit.name}-other")
    same(ask("GET", url, headers=named(box)).status, 401)
    same(ask("PUT", box.download_url(f"/tmp/{kit.name}"), b"x", headers=named(box)).status // 100, 4)


def plain(url):
    """The same at an address: with E2B_DOMAIN the host of a URL is a name, and has the sandbox in it."""
    return os.environ["PLAIN_URL"] + "/" + url.split("/", 3)[3]


async def nameless(kit):
    """Neither the URL nor the request says which sandbox."""
    box = await kit.box()
    for expires in (None, 600):
        path = f"signed dir/ü-{kit.name}.txt"
        body, headers = form("x", f"came, {expires}")
        url = plain(box.upload_url(path, use_signature_expiration=expires))
        assert box.sandbox_id not in url, url
        same(ask("POST", url, body, headers).status, 200)
        same(await box.files.read(path), f"came, {expires}")
        url = plain(box.download_url(path, use_signature_expiration=expires))
        answer = ask("GET", url)
        same((answer.status, answer.body), (200, f"came, {expires}".encode()))
        assert ask("GET", url + "x").status in (400, 401)
