"""A smolagents CodeAgent: the code that the model writes runs in a sandbox, where `humanize` is installed first.

    python agent.py "How large are the files below /usr/lib, in words?"
"""

import sys

from smolagents import CodeAgent, OpenAIModel

with CodeAgent(
    model=OpenAIModel(model_id="gpt-5-mini"),
    tools=[],
    additional_authorized_imports=["humanize"],
    executor_type="e2b",
) as agent:
    print(agent.run(sys.argv[1]))
