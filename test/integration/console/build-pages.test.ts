/** The pages are built in a folder of any name: Vite itself cannot read a path with `#` or `?`. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
const parts = ['package.json', 'package-lock.json', 'tsconfig.json', 'shared', 'services']

it('in a folder with #, ?, %, spaces and other letters in its name', () => {
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
    expect(readFileSync(built, 'utf8').length).toBeGreaterThan(100_000)
  } finally {
    rmSync(above, { recursive: true, force: true })
  }
})
