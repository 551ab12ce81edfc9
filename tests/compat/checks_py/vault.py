"""vault.py - secrets: given once, never shown, named in rules."""

import json

import e2b

from kit import Calm, raises, same


HOST = "good.test"  # of tests/internet: what it was sent it says, at /echo


def network_of(name):
    headers = {"Authorization": f"Bearer {e2b.Secret.fill(name)}", "X-Plain": "as it is"}
    return {"allow_out": [HOST], "deny_out": ["0.0.0.0/0"], "rules": {HOST: [{"transform": {"headers": headers}}]}}


async def sent(box):
    """What a request of the sandbox to the host has."""
    out = (await box.commands.run(f"curl -sS --max-time 240 -H 'X-Plain: mine' https://{HOST}/echo", timeout=300)).stdout
    fields = json.loads(out)
    return fields.get("authorization"), fields.get("x-plain")


def secret_of(kit):
    return e2b.AsyncSecret if kit.is_async else Calm(e2b.Secret)


def pages_of(kit, **more):
    """The list itself is not awaited, in either half."""
    bare = e2b.AsyncSecret if kit.is_async else e2b.Secret
    pages = bare.list(**more)
    return pages if kit.is_async else Calm(pages)


async def life(kit):
    secret = secret_of(kit)
    made = await secret.create(kit.name.upper(), "first", metadata={"owner": "check"})
    same((made.name, made.version, made.metadata), (kit.name, 1, {"owner": "check"}))
    assert made.secret_id.startswith("sec_"), made.secret_id
    again = await secret.update(kit.name, "second")
    same((again.secret_id, again.version, again.metadata), (made.secret_id, 2, {"owner": "check"}))
    assert again.updated_at >= made.updated_at and again.created_at == made.created_at
    found = await secret.get_info(made.secret_id)
    same((found.name, found.version), (kit.name, 2))
    assert "second" not in repr(vars(found))
    same(await secret.exists(kit.name), True)
    same(await secret.destroy(kit.name), True)
    same(await secret.destroy(kit.name), False)
    same(await secret.exists(made.secret_id), False)


async def unknown(kit):
    secret = secret_of(kit)
    with raises(e2b.SecretNotFoundException):
        await secret.get_info(kit.name)
    with raises(e2b.SecretNotFoundException):
        await secret.update(kit.name, "value")


async def refused(kit):
    secret = secret_of(kit)
    with raises(e2b.SecretException) as caught:
        await secret.create("not a name", "hidden")
    assert "hidden" not in str(caught.value)
    with raises(e2b.SecretException):
        await secret.create("sec_reserved", "value")
    await secret.create(kit.name, "value")
    with raises(e2b.SecretException):
        await secret.create(kit.name, "value")
    await secret.destroy(kit.name)


async def pages(kit):
    secret = secret_of(kit)
    names = [f"{kit.name}-{i}" for i in range(3)]
    for name in names:
        await secret.create(name, "value")
    listing, found = pages_of(kit, limit=2), []
    while listing.has_next:
        page = await listing.next_items()
        assert len(page) <= 2
        found += [one.name for one in page]
    same(sorted(name for name in found if name in names), names)
    for name in names:
        await secret.destroy(name)


async def fill(kit):
    same(e2b.Secret.fill("key"), "${e2b.secrets.key}")


async def used(kit):
    secret = secret_of(kit)
    await secret.create(kit.name, "first")
    box = await kit.create(network=network_of(kit.name))
    same(await sent(box), ("Bearer first", "as it is"))
    same((await box.get_info()).network, network_of(kit.name))
    await secret.update(kit.name, "second")
    same(await sent(box), ("Bearer second", "as it is"))
    await box.update_network({**network_of(kit.name), "rules": {HOST: [{"transform": {"headers": {"X-Plain": "else"}}}]}})
    same(await sent(box), (None, "else"))
    await secret.destroy(kit.name)
