"""lists.py - the list of sandboxes."""

import datetime

from e2b import SandboxQuery, SandboxState

from kit import same


def mine(kit, **more):
    return SandboxQuery(metadata={"check": kit.name}, **more)


async def found(kit, query, **more):
    return [b.sandbox_id for b in await kit.all_of(kit.Sandbox.list(query=query, **more))]


async def two(kit):
    first = await kit.create(metadata={"check": kit.name, "n": "1"})
    second = await kit.create(metadata={"check": kit.name, "n": "2"})
    return first.sandbox_id, second.sandbox_id


async def metadata_filter(kit):
    first, second = await two(kit)
    same(set(await found(kit, mine(kit))), {first, second})
    same(await found(kit, SandboxQuery(metadata={"check": kit.name, "n": "1"})), [first])
    same(await found(kit, SandboxQuery(metadata={"check": kit.name, "n": "3"})), [])
    same(await found(kit, SandboxQuery(metadata={"check": kit.name[:-1]})), [])


async def newest_first(kit):
    first, second = await two(kit)
    same(await found(kit, mine(kit)), [second, first])


async def ascending(kit):
    first, second = await two(kit)
    same(await found(kit, mine(kit), order="asc"), [first, second])
    same(await found(kit, mine(kit), order="desc"), [second, first])


async def pages(kit):
    first, second = await two(kit)
    pages = kit.Sandbox.list(query=mine(kit), limit=1)
    assert pages.has_next
    one = await pages.next_items()
    assert pages.has_next and pages.next_token
    other = await pages.next_items()
    same([b.sandbox_id for b in one + other], [second, first])
    same((pages.has_next, pages.next_token), (False, None))


async def running_only(kit):
    first, second = await two(kit)
    same(set(await found(kit, mine(kit, state=[SandboxState.RUNNING]))), {first, second})
    same(await found(kit, mine(kit, state=[SandboxState.PAUSED])), [])


async def started_after(kit):
    box = await kit.create(metadata={"check": kit.name})
    started = (await box.get_info()).started_at
    same(await found(kit, mine(kit, started_after=started)), [box.sandbox_id])
    later = started + datetime.timedelta(seconds=1)
    same(await found(kit, mine(kit, started_after=later)), [])


async def template_filter(kit):
    box = await kit.create(metadata={"check": kit.name})
    template = (await box.get_info()).template_id
    same(await found(kit, mine(kit, template=template)), [box.sandbox_id])
    same(await found(kit, mine(kit, template="no-such-template")), [])


async def first_page_has_a_new_one(kit):
    box = await kit.create()
    assert box.sandbox_id in [b.sandbox_id for b in await kit.Sandbox.list().next_items()]
