// `npm start`: runs the whole service on one machine, with embedded servers unless their URLs are
// set. This file connects the stack to the terminal: environment, signals, exit status.

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { keepCompiled } from '#shared/io/process/cache-folder.ts'
import { callOwnPartsDirectly } from '#shared/io/process/direct-calls.ts'

// Must run before the stack's own files are loaded.
keepCompiled(process.env)
callOwnPartsDirectly(process.env)
const { runInTerminal } = await import('./local/terminal.ts')

const projectDir = fileURLToPath(new URL('..', import.meta.url))
const { version } = JSON.parse(readFileSync(`${projectDir}/package.json`, 'utf8')) as {
  version: string
}

process.exitCode = await runInTerminal({
  env: process.env,
  args: process.argv.slice(2),
  projectDir,
  version,
})
// An idle keep-alive socket may still keep the process alive.
process.exit()
