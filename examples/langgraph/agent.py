"""A LangChain agent (a LangGraph graph) that runs Python in a sandbox.

    python agent.py "How many primes are there below 100000?"
"""

import sys

from e2b_code_interpreter import Sandbox
from langchain.agents import create_agent
from langchain.tools import tool

with Sandbox.create() as sandbox:

    @tool
    def run_python(code: str) -> str:
        """Run Python code in a sandbox. Variables are kept from call to call."""
        execution = sandbox.run_code(code)
        if execution.error:
            return execution.error.traceback
        return "".join(execution.logs.stdout) + (execution.text or "")

    agent = create_agent(
        model="openai:gpt-5-mini",
        tools=[run_python],
        system_prompt="You answer questions. Compute with run_python, never in your head.",
    )
    result = agent.invoke({"messages": [{"role": "user", "content": sys.argv[1]}]})
    print(result["messages"][-1].text)
