/**
 * The pages are built in a folder of any name, since Vite itself cannot read a path with `#` or
 * `?`, and are built again when what they import has changed.
 */
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
const parts = ['package.json', 'package-lock.json', 'tsconfig.json', 'shared', 'services']

it('are built in a folder with #, ?, %, spaces and other letters in its name, and again after a change', () => {
  const above = mkdtempSync(join(tmpdir(), 'di-odd-'))
  try {
    const folder = join(above, 'x #1?%41 ☃')
    mkdirSync(folder)
    const isBuilt = (path: string) => /\/web\/dist/.test(path)
    for (const part of parts) {
      const options = { recursive: true, filter: (path: string) => !isBuilt(path) }
      cpSync(join(projectDir, part), join(folder, part), options)
    }
    symlinkSync(join(projectDir, 'node_modules'), join(folder, 'node_modules'))
    const program = join(folder, 'services/console/serve/build-main.ts')
    const env = { ...process.env, NODE_ENV: 'production' }
    execFileSync(process.execPath, [program], { cwd: folder, env, stdio: 'pipe' })
    const document = readFileSync(join(folder, 'services/console/web/dist/index.html'), 'utf8')
    const [, script = ''] = /src="\.\/(assets\/[^"]+\.js)"/.exec(document) ?? []
    const built = join(dirname(program), '../web/dist', script)
    expect(readFileSync(built, 'utf8').length).toBeGreaterThan(20_000)
    // Pages also import from `shared/core`: a change there makes them old.
    const ask = `const { arePagesFresh } = await import('./build-pages.ts')
      process.stdout.write(String(arePagesFresh()))`
    const areFresh = () =>
      execFileSync(process.execPath, ['--input-type=module', '-e', ask], {
        cwd: dirname(program),
        encoding: 'utf8',
      })
    expect(areFresh()).toBe('true')
    appendFileSync(join(folder, 'shared/core/signals/flags.ts'), '// Changed.\n')
    expect(areFresh()).toBe('false')
  } finally {
    rmSync(above, { recursive: true, force: true })
  }
})
