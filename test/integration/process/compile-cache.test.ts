// A process keeps the compiled form of its files when it is ready, so that the start after a
// kill -9 has less to do.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { killChild } from '../../support/process/service-process.ts'

const lifecycle = new URL('../../../shared/io/process/lifecycle.ts', import.meta.url)
/** Does nothing until it is killed. */
const program = `
  const { run } = await import(${JSON.stringify(lifecycle.href)})
  run(async () => void setInterval(() => undefined, 1_000))
  setImmediate(() => process.stdout.write('ready'))
`
const folder = mkdtempSync(join(tmpdir(), 'compiled-'))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

it('leaves its compiled files when it is killed after its start', async () => {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    await once(child.stdout, 'data')
  } finally {
    await killChild(child)
  }
  const [version] = readdirSync(folder)
  expect(readdirSync(join(folder, version!)).length).toBeGreaterThan(0)
})
