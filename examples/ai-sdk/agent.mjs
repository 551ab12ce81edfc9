// An agent of the AI SDK that runs Python in a sandbox and streams its answer.
//
//     node agent.mjs "How many primes are there below 100000?"

import { openai } from '@ai-sdk/openai'
import { Sandbox } from '@e2b/code-interpreter'
import { stepCountIs, streamText, tool } from 'ai'
import { z } from 'zod'

const sandbox = await Sandbox.create()

const runPython = tool({
  description: 'Run Python code in a sandbox. Variables are kept from call to call.',
  inputSchema: z.object({ code: z.string() }),
  execute: async ({ code }) => {
    const { error, logs, text } = await sandbox.runCode(code)
    return error ? error.traceback : logs.stdout.join('') + (text ?? '')
  },
})

try {
  const result = streamText({
    model: openai('gpt-5-mini'),
    system: 'You answer questions. Compute with runPython, never in your head.',
    prompt: process.argv[2],
    tools: { runPython },
    stopWhen: stepCountIs(10),
  })
  for await (const part of result.fullStream) {
    if (part.type === 'error') throw part.error
    if (part.type === 'text-delta') process.stdout.write(part.text)
  }
  process.stdout.write('\n')
} finally {
  await sandbox.kill()
}
