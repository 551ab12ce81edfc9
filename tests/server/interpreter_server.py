"""interpreter_server.py - a Server (server.py) that has the template code-interpreter-v1, within seconds: template_server.py.

    @pytest.fixture(scope="module")
    def server():
        with interpreter_server(node={"pool_each_max": 1}) as s:
            yield s

    box = server.create(templateID="code-interpreter-v1")
"""

from template_server import TemplateServer

TEMPLATE = "code-interpreter-v1"


def interpreter_server(**settings):
    return TemplateServer(TEMPLATE, **settings)
