"""metrics.py - what a sandbox used, over time."""

import datetime

from kit import same


async def appear(kit):
    box = await kit.box()

    async def some():
        return await box.get_metrics()
    for point in await kit.until(some, "there are metrics", 60):
        assert point.cpu_count >= 1 and point.cpu_used_pct >= 0, point
        assert 0 < point.mem_used <= point.mem_total, point
        assert 0 < point.disk_used <= point.disk_total, point
        assert isinstance(point.timestamp, datetime.datetime), point


async def of_a_time(kit):
    box = await kit.create()

    async def some():
        return await box.get_metrics()
    first = (await kit.until(some, "there are metrics", 60))[0].timestamp
    hour, slack = datetime.timedelta(hours=1), datetime.timedelta(seconds=10)
    same(await box.get_metrics(start=first - 2 * hour, end=first - hour), [])
    some = await box.get_metrics(start=first - slack, end=first + slack)
    assert some and all(first - slack <= p.timestamp <= first + slack for p in some), some
