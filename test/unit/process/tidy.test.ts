/**
 * The rules of the project's layout: import walls, purity of the core, access to the environment,
 * sizes, names and migration numbers.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = resolve(import.meta.dirname, '../../..')
const folders = ['services', 'shared', 'deploy', 'test']

function filesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : filesBelow(path)
    return [path]
  })
}

type Source = { path: string; text: string; lines: string[]; imports: string[] }

const sources: Source[] = folders
  .flatMap(filesBelow)
  .filter((path) => /\.tsx?$/.test(path) && !path.includes('/web/dist'))
  .map((path) => {
    const text = readFileSync(join(root, path), 'utf8')
    const imports = [...text.matchAll(/^(?:import|export)\s[^'"]*?from '([^']+)'/gms)].map(
      (match) => match[1]!,
    )
    const dynamic = [...text.matchAll(/import\('([^']+)'\)/g)].map((match) => match[1]!)
    return { path, text, lines: text.split('\n'), imports: [...imports, ...dynamic] }
  })

/** The console's pages run in a browser and are built before production starts. */
const isPage = ({ path }: Source) =>
  path.startsWith('services/console/web/') || path === 'services/console/serve/build-pages.ts'

/** Vite puts the text of an example into a page. */
const isPageText = (path: string, target: string) =>
  path.startsWith('services/console/web/') && /^services\/ingest\/examples\/.+\?raw$/.test(target)

const under = (folder: string) => sources.filter(({ path }) => path.startsWith(`${folder}/`))

const production = [...under('services'), ...under('shared')].filter((file) => !isPage(file))

/** Imports as paths from the project's root; package names unchanged. */
function targets({ path, imports }: Source): string[] {
  return imports.map((name) => {
    if (name.startsWith('#shared/')) return name.replace('#shared/', 'shared/')
    if (name.startsWith('.')) return relative(root, resolve(root, dirname(path), name))
    return name
  })
}

function violations(files: Source[], faulty: (target: string, file: Source) => boolean): string[] {
  return files.flatMap((file) =>
    targets(file)
      .filter((target) => faulty(target, file))
      .map((target) => `${file.path} -> ${target}`),
  )
}

describe('the check of imports', () => {
  it('finds sources to check', () => {
    expect(under('shared/core').length).toBeGreaterThan(15)
    expect(under('services').length).toBeGreaterThan(15)
  })

  it('lets shared/core import only itself, zod, node:crypto and node:buffer', () => {
    const allowed = ['zod', 'node:crypto', 'node:buffer']
    // The formats of attestation are read by kept libraries, which are as pure as the core.
    const readers = ['asn1js', 'cbor2', 'jose']
    // So are IPv6 addresses.
    const addresses = ['ipaddr.js']
    const found = violations(under('shared/core'), (target, { path }) => {
      if (target.startsWith('shared/core/') || allowed.includes(target)) return false
      if (path.startsWith('shared/core/network/') && addresses.includes(target)) return false
      return !(path.startsWith('shared/core/attestation/') && readers.includes(target))
    })
    expect(found).toEqual([])
  })

  it('lets no other folder read the formats of attestation', () => {
    const found = violations(production, (target, { path }) => {
      return ['asn1js', 'cbor2'].includes(target) && !path.startsWith('shared/core/attestation/')
    })
    expect(found).toEqual([])
  })

  it('lets shared/io import no service and nothing from deploy', () => {
    expect(
      violations(under('shared/io'), (target) => /^(services|deploy|test)\//.test(target)),
    ).toEqual([])
  })

  it('lets shared/client import only the core and Node, and zod as types', () => {
    const allowed = /^(shared\/(client|core)\/|node:|zod$)/
    expect(violations(under('shared/client'), (target) => !allowed.test(target))).toEqual([])
  })

  it('lets no service import another one, deploy or a test', () => {
    const found = violations(under('services'), (target, { path }) => {
      // The command loads the simulated fleet when it runs; the image leaves it out.
      const isFleet = path === 'services/console/cli/fleet.ts' && target.startsWith('deploy/fleet/')
      if (isFleet) return false
      if (/^(deploy|test)\//.test(target)) return true
      const own = path.split('/').slice(0, 2).join('/')
      // The pages show the programs that are tested beside ingest.
      if (isPageText(path, target)) return false
      return target.startsWith('services/') && !target.startsWith(`${own}/`)
    })
    expect(found).toEqual([])
  })

  it('lets the thread of the jobs alone start them, so that none runs beside the pages', () => {
    const starters = under('services/console')
      .filter((file) => targets(file).includes('services/console/jobs/jobs.ts'))
      .map(({ path }) => path)
    expect(starters).toEqual(['services/console/jobs/jobs-worker.ts'])
  })

  it('lets the pages do in one place what is easily done wrong in a browser', () => {
    const place: [what: RegExp, path: string][] = [
      // A browser's clock can be hours wrong.
      [/\bDate\.now\(|new Date\(\)/, 'components/time/server-clock.ts'],
      // A year is typed digit by digit.
      [
        /\btype="(?:date|datetime-local|month|week|time)"|'datetime-local'/,
        'components/time/moment-input.tsx',
      ],
      // Each holds one of six connections.
      [/\b(?:EventSource|WebSocket)\(/, 'pages/alerts/live/alert-stream.ts'],
      // Something else may answer.
      [/(?<![.\w])fetch\(|XMLHttpRequest/, 'api/client.ts'],
    ]
    for (const [what, path] of place) {
      const found = under('services/console/web').filter(({ text }) => what.test(text))
      expect(found.map((file) => file.path)).toEqual([`services/console/web/${path}`])
    }
  })

  it('keeps NATS, ClickHouse and Postgres drivers in shared/io', () => {
    const drivers = ['nats', 'pg', '@clickhouse/client', 'undici']
    const found = violations(under('services'), (target) => drivers.includes(target))
    expect(found).toEqual([])
  })

  it('makes every connection to Postgres and ClickHouse in one place, with our settings', () => {
    const places: { driver: RegExp; made: RegExp; allowed: string[] }[] = [
      {
        driver: /from 'pg'/,
        made: /\b(new|extends) (pg\.)?(Pool|Client)\b/,
        // The local stack's own server is asked before there is a database of ours.
        allowed: ['deploy/local/postgres/postgres-server.ts', 'shared/io/postgres/postgres.ts'],
      },
      {
        driver: /from '@clickhouse\/client'/,
        made: /\bcreateClient\(/,
        allowed: ['shared/io/clickhouse/clickhouse.ts'],
      },
    ]
    for (const { driver, made, allowed } of places) {
      const found = sources
        .filter(
          ({ path, text }) => !path.startsWith('test/') && driver.test(text) && made.test(text),
        )
        .map(({ path }) => path)
      expect(found.sort()).toEqual(allowed)
    }
  })

  it('lets production import no development dependency', () => {
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      devDependencies: Record<string, string>
    }
    const { devDependencies } = manifest
    const found = violations(production, (target) =>
      [target.split('/', 1)[0]!, target.split('/', 2).join('/')].some((name) =>
        Object.hasOwn(devDependencies, name),
      ),
    )
    expect(found).toEqual([])
  })
})

/** What each file imports, types included. */
const importsOfFiles = () => new Map(sources.map((file) => [file.path, targets(file)]))

/** What each folder of `shared/io` imports of the others, types included. */
function importsOfFolders(): Map<string, string[]> {
  const toFolder = (path: string) => path.split('/').slice(0, 3).join('/')
  const graph = new Map<string, string[]>()
  for (const file of under('shared/io')) {
    const folder = toFolder(file.path)
    const others = targets(file).filter((target) => target.startsWith('shared/io/'))
    const found = others.map(toFolder).filter((target) => target !== folder)
    graph.set(folder, [...new Set([...(graph.get(folder) ?? []), ...found])])
  }
  return graph
}

/** Everything that imports itself through others; each circle once. */
function findCircles(graph: Map<string, string[]>): string[] {
  const done = new Set<string>()
  const circles: string[] = []
  const visit = (path: string, trail: string[]): void => {
    const at = trail.indexOf(path)
    if (at >= 0) circles.push([...trail.slice(at), path].join(' -> '))
    if (at >= 0 || done.has(path)) return
    for (const target of graph.get(path) ?? []) visit(target, [...trail, path])
    done.add(path)
  }
  for (const path of graph.keys()) visit(path, [])
  return circles
}

describe('layout', () => {
  it('has no circular imports, including types', () => {
    expect(findCircles(importsOfFiles())).toEqual([])
  })

  it('lets the folders of shared/io depend one way', () => {
    expect(findCircles(importsOfFolders())).toEqual([])
  })

  it('keeps folders to 18 files', () => {
    const sizes = new Map<string, number>()
    for (const { path } of sources) {
      sizes.set(dirname(path), (sizes.get(dirname(path)) ?? 0) + 1)
    }
    expect([...sizes].filter(([, files]) => files > 18)).toEqual([])
  })
})

describe('purity', () => {
  it('gives the core no clock, randomness, environment or timers', () => {
    const impure =
      /\b(Date\.now|new Date\(\)|Math\.random|performance\.now|process\.|setTimeout|setInterval|randomBytes|randomUUID)\b/
    const found = under('shared/core').flatMap(({ path, lines }) =>
      lines
        .filter((line) => !/^\s*(\*|\/\/|\/\*)/.test(line) && impure.test(line))
        .map((line) => `${path}: ${line.trim()}`),
    )
    expect(found).toEqual([])
  })

  it('reads process.env only in main files', () => {
    const mains =
      /(^|\/)(main|cli)\.ts$|^deploy\/local\.ts$|^deploy\/local\/clickhouse\/clickhouse-server\.ts$/
    const found = [...under('services'), ...under('shared'), ...under('deploy')]
      .filter(({ path, text }) => !mains.test(path) && /(?<!')\bprocess\.env\b/.test(text))
      .map(({ path }) => path)
    expect(found).toEqual([])
  })

  it('keeps SQL in the stores and the SQL folders', () => {
    const sql =
      /\b(select\s+[\w*].*\bfrom\b|insert\s+into\s+\w+\s*\(|update\s+\w+\s+set|delete\s+from)\b/i
    const found = [...under('services'), ...under('shared/core')]
      .filter(({ lines }) =>
        lines.some((line) => !/^\s*(\*|\/\/|\/\*)/.test(line) && sql.test(line)),
      )
      .map(({ path }) => path)
    expect(found).toEqual([])
  })
})

describe('style', () => {
  it('writes the properties of an object where they belong, not as a spread literal', () => {
    const found = sources.flatMap(({ path, lines }) =>
      lines.filter((line) => /\.{3}\{/.test(line)).map((line) => `${path}: ${line.trim()}`),
    )
    expect(found).toEqual([])
  })

  it('keeps files to about 400 lines', () => {
    const found = sources
      .filter(({ path }) => !path.startsWith('test/'))
      // The client's types are generated: a few lines for every endpoint.
      .filter(({ path }) => path !== 'services/console/web/api/schema.ts')
      .filter(({ lines }) => lines.length > 450)
      .map(({ path, lines }) => `${path}: ${lines.length}`)
    expect(found).toEqual([])
  })

  it('keeps lines to 100 columns, except long texts and generated files', () => {
    const written = sources.filter(({ path }) => path !== 'services/console/web/api/schema.ts')
    const found = written.flatMap(({ path, lines }) =>
      lines
        .filter(
          (line) =>
            line.length > 100 && !/['"`].{60,}/.test(line) && !/https?:|^\s*[/<]/.test(line),
        )
        .map((line) => `${path}: ${line.trim().slice(0, 60)}`),
    )
    expect(found).toEqual([])
  })

  it('begins every file with the reason for it', () => {
    const found = sources
      .filter(({ path }) => !path.startsWith('test/'))
      .filter(({ text }) => !/^(#!.*\n)?(\/\*\*|\/\/ )/.test(text))
      .map(({ path }) => path)
    expect(found).toEqual([])
  })

  it('names files in kebab case, and none with an empty name such as utils', () => {
    const found = sources
      .map(({ path }) => path)
      .filter((path) => {
        const name = basename(path).replace(/(\.test|\.d)?\.tsx?$/, '')
        return (
          !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name) || /^(utils?|helpers?|common|types)$/.test(name)
        )
      })
    expect(found).toEqual([])
  })

  it('has no any, no console, no skipped or focused test, no unfinished mark', () => {
    const marks = [
      /\bas any\b|: any\b|<any>/,
      /\bconsole\.(log|error|warn|info)\(/,
      /\b(it|test|describe)\.(skip|only|todo)\b/,
      new RegExp(`\\b(${['TO', 'DO'].join('')}|${['FIX', 'ME'].join('')})\\b`),
      /@ts-(ignore|expect-error|nocheck)/,
    ]
    const found = sources
      .filter(({ path }) => path !== 'test/unit/process/tidy.test.ts')
      .flatMap(({ path, lines }) =>
        lines
          .filter((line) => !/^\s*(\*|\/\/|\/\*)/.test(line) || marks[3]!.test(line))
          .filter((line) => marks.some((mark) => mark.test(line)))
          .map((line) => `${path}: ${line.trim().slice(0, 80)}`),
      )
    expect(found).toEqual([])
  })

  it('exports names only, and writes import paths with their ending', () => {
    const found = sources.flatMap(({ path, text, imports }) => [
      ...(/^export default/m.test(text) && path !== 'vitest.config.ts' ? [`${path}: default`] : []),
      ...imports
        .filter((name) => /^[.#]/.test(name) && !/\.(tsx?|json|css)$|\?raw$/.test(name))
        .map((name) => `${path}: ${name}`),
    ])
    expect(found).toEqual([])
  })

  it.each(['postgres', 'clickhouse'])('numbers the migrations of %s without a gap', (folder) => {
    const names = readdirSync(join(root, folder)).filter((name) => name.endsWith('.sql'))
    expect(names.length).toBeGreaterThan(0)
    const numbers = names.sort().map((name) => Number(/^(\d{4})-[a-z0-9-]+\.sql$/.exec(name)?.[1]))
    expect(numbers).toEqual(names.map((_, index) => index + 1))
  })

  it('names no package registry and no path of a machine', () => {
    const hosts = new RegExp(
      [`registry\\.npm${'js'}`, `deb\\.${'debian'}\\.org`, '/work/(main|shared)'].join('|'),
    )
    const tracked = ['README.md', 'CHANGELOG.md', 'package.json', '.ci/run', 'package-lock.json']
      .filter((path) => statSync(join(root, path), { throwIfNoEntry: false })?.isFile())
      .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
    const found = [...sources, ...tracked].filter(({ text }) => hosts.test(text))
    expect(found.map(({ path }) => path)).toEqual([])
  })
})
