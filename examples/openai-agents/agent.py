"""An agent of the OpenAI Agents SDK that runs Python in a sandbox.

    python agent.py "How many primes are there below 100000?"
"""

import asyncio
import sys

from agents import Agent, Runner, function_tool
from e2b_code_interpreter import AsyncSandbox


async def main(question: str) -> None:
    async with await AsyncSandbox.create() as sandbox:

        @function_tool
        async def run_python(code: str) -> str:
            """Run Python code in a sandbox. Variables are kept from call to call."""
            execution = await sandbox.run_code(code)
            if execution.error:
                return execution.error.traceback
            return "".join(execution.logs.stdout) + (execution.text or "")

        agent = Agent(
            name="Analyst",
            instructions="You answer questions. Compute with run_python, never in your head.",
            model="gpt-5-mini",
            tools=[run_python],
        )
        result = await Runner.run(agent, question)
        print(result.final_output)


asyncio.run(main(sys.argv[1]))
