/**
 * One stack for all tests of the console in a run: five services and three servers are heavy, and a
 * tenant of its own is all that most tests need. Vitest's main process owns it, starts it once the
 * first file asks for it, and ends it after the last one.
 */
import { mkdtempSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { chooseFilesFolder } from '../process/files-in-memory.ts'
import { type StackFacts, startStack, type TestStack } from '../process/stack.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Answers with the facts of the stack, which it starts first. */
    sharedStack: string
  }
}

/** Called by Vitest before the first file; returns what ends the stack. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  let starting: Promise<TestStack> | undefined
  const server = createServer((_, response) => {
    starting ??= startShared()
    starting.then(
      ({ stack }) => response.end(JSON.stringify(stack)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  project.provide('sharedStack', `http://127.0.0.1:${port}/`)
  return async () => {
    server.closeAllConnections()
    server.close()
    await (await starting?.catch(() => undefined))?.discard()
  }
}

/** `npm start` gives each service a minute, which on a busy machine can be too short: it tries anew. */
async function startShared(): Promise<TestStack> {
  const folder = process.env.TMPDIR ?? chooseFilesFolder()
  const start = () =>
    startStack({ dataDir: mkdtempSync(join(folder, 'di-stack-')), env: { TMPDIR: folder } })
  return start().catch((error: unknown) => {
    if (!/was not ready within/.test(String(error))) throw error
    return start()
  })
}

/** @param address the one that Vitest provides */
export async function findSharedStack(address: string): Promise<StackFacts> {
  const response = await fetch(address)
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  return JSON.parse(text) as StackFacts
}
