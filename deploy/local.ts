// `npm start`: the whole service on one machine with one command, on embedded servers unless told
// of others. This file only connects the stack to its terminal: environment, signals, exit status.

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { keepCompiled } from '#shared/io/process/cache-folder.ts'
import { callOwnPartsDirectly } from '#shared/io/process/direct-calls.ts'

// Before the stack's own files are loaded.
keepCompiled(process.env)
callOwnPartsDirectly(process.env)
const { runInTerminal } = await import('./local/terminal.ts')

const projectDir = fileURLToPath(new URL('..', import.meta.url))
const { version } = JSON.parse(readFileSync(`${projectDir}/package.json`, 'utf8')) as {
  version: string
}

process.exitCode = await runInTerminal({ env: process.env, projectDir, version })
// Whatever still holds the process (an idle keep-alive socket) has nothing left to do.
process.exit()
