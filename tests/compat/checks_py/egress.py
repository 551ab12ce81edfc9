"""egress.py - whom a sandbox may reach: asked for, shown, changed, refused. Who reaches whom is tests/security's."""

from e2b import NotFoundException, SandboxException

from kit import raises, same

ALL = "0.0.0.0/0"
PATIENT = {"request_timeout": 180}  # a pause writes memory to the disk, and machines may be emulated
UNKNOWN = "i0000000000000000000"
# a name is asked for: the answer comes at once, whatever it is
ASK = "getent ahosts example.com; echo $?"
NOT_FOUND = "2\n"


async def refused(kit):
    for network, said in [({"deny_out": ["example.com"]}, "invalid denied CIDR example.com"),
                          ({"allow_out": ["0.0.0.0"]}, "invalid allowed address 0.0.0.0"),
                          ({"allow_out": ["example.com"]}, "you must include 'ALL_TRAFFIC' in deny out")]:
        with raises(SandboxException) as caught:
            await kit.create(network=network)
        assert said in str(caught.value), caught.value


async def shown(kit):
    network = {"allow_out": ["*.example.com", "192.0.2.1"], "deny_out": [ALL]}
    box = await kit.create(network=network)
    same((await box.get_info()).network, network)
    box = await kit.create(allow_internet_access=False)
    same((await box.get_info()).allow_internet_access, False)


async def deny_all(kit):
    box = await kit.create(network={"deny_out": [ALL]})
    same((await box.commands.run(ASK)).stdout, NOT_FOUND)
    same((await box.commands.run("curl -sf --max-time 20 http://192.0.2.1/ && echo reached || echo refused")).stdout, "refused\n")


async def changed(kit):
    box = await kit.create(network={"deny_out": ["192.0.2.0/24"]})
    await box.update_network({"allow_out": ["example.com"], "deny_out": [ALL]})
    same((await box.get_info()).network, {"allow_out": ["example.com"], "deny_out": [ALL]})
    await kit.Sandbox.update_network(box.sandbox_id, {"deny_out": [ALL]})
    same((await box.get_info()).network, {"deny_out": [ALL]})
    await box.update_network({})
    same((await box.get_info()).network, {})
    with raises(SandboxException) as caught:
        await box.update_network({"deny_out": ["x"]})
    assert "invalid denied CIDR x" in str(caught.value), caught.value
    same((await box.get_info()).network, {})


async def changed_of_an_unknown_one(kit):
    with raises(NotFoundException):
        await kit.Sandbox.update_network(UNKNOWN, {})


async def kept(kit):
    network = {"allow_out": ["example.com"], "deny_out": [ALL]}
    box = await kit.create(network={"deny_out": ["192.0.2.1"]})
    await box.update_network(network)
    same(await box.pause(**PATIENT), True)
    same((await kit.Sandbox.get_info(box.sandbox_id)).network, network)
    with raises(SandboxException):
        await box.update_network({})
    again = await kit.Sandbox.connect(box.sandbox_id, **PATIENT)
    same((await again.get_info()).network, network)
