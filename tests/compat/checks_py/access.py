"""access.py - keys and tokens."""

from e2b import AuthenticationException

from kit import ask_agent, raises, same

WRONG_KEY = "e2b_" + "0" * 40


async def wrong_key(kit):
    with raises(AuthenticationException):
        await kit.Sandbox.create(api_key=WRONG_KEY)
    with raises(AuthenticationException):
        await kit.Sandbox.list(api_key=WRONG_KEY).next_items()


async def token_is_needed(kit):
    box = await kit.box()
    same(ask_agent(box, "/files?path=/etc/passwd&username=user").status, 401)
    same(ask_agent(box, "/files?path=/etc/passwd&username=user", headers={"X-Access-Token": "wrong"}).status, 401)
    same(ask_agent(box, "/process.Process/List", "POST", b"{}", {"Content-Type": "application/json"}).status, 401)


async def health(kit):
    box = await kit.box()
    same(ask_agent(box, "/health").status, 204)


async def of_another_sandbox(kit):
    box, other = await kit.box(), await kit.create()
    token = other._envd_access_token if kit.is_async else other.bare._envd_access_token
    assert token
    same(ask_agent(other, "/files?path=/etc/passwd&username=user", headers={"X-Access-Token": token}).status, 200)
    same(ask_agent(box, "/files?path=/etc/passwd&username=user", headers={"X-Access-Token": token}).status, 401)
