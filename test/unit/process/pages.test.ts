/** The pages in Markdown agree with the code: the files, settings, commands and metrics exist. */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { toClickhouseOwnerGrants } from '#shared/core/permissions/table-privileges.ts'
import { variables } from '#shared/io/process/config.ts'
import type { CliContext } from '../../../services/console/cli/context.ts'
import { addCommands } from '../../../services/console/cli/program.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')

const tracked = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((path) => path !== '' && existsSync(join(root, path)))
const pages = tracked
  .filter((path) => path.endsWith('.md') && path !== 'CHANGELOG.md')
  .map((path) => ({ path, text: read(path) }))
const foldersWithPage = [
  ...readdirSync(join(root, 'services')).map((name) => `services/${name}`),
  ...['shared', 'clickhouse', 'postgres', 'deploy', 'test', 'test/bench', 'test/faults'],
]

describe('the pages', () => {
  it('are a front page of at most 250 lines and one page in each folder', () => {
    expect(read('README.md').split('\n').length).toBeLessThanOrEqual(250)
    const paths = pages.map(({ path }) => path)
    expect(foldersWithPage.filter((folder) => !paths.includes(`${folder}/README.md`))).toEqual([])
  })

  it('name only files that exist', () => {
    const missing = pages.flatMap(({ path: page, text }) => {
      const links = [...text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)]
      const files = [...text.matchAll(/`((?:[\w.-]+\/)+[\w.-]*\.(?:ts|sql|yaml|json|conf|sh))`/g)]
      return [...links, ...files]
        .map(([, path]) => path!)
        .filter((path) => !path.startsWith('.data/'))
        .filter((path) => !existsSync(join(root, path)))
        .filter((path) => !existsSync(join(root, dirname(page), path)))
        .map((path) => `${page}: ${path}`)
    })
    expect(missing).toEqual([])
  })

  it('list the grants of the user that migrates ClickHouse', () => {
    const lines = read('clickhouse/README.md').matchAll(/^GRANT (.+) ON (\S+) TO di;$/gm)
    const listed = [...lines].flatMap(([, privileges, place]) =>
      privileges!.split(', ').map((privilege) => `GRANT ${privilege} ON ${place}`),
    )
    const names = {
      database: 'device_intelligence',
      all: 'device_intelligence_all',
      analytics: 'analytics',
    }
    const needed = toClickhouseOwnerGrants(names, true).map((grant) => grant.replaceAll('`', ''))
    expect(listed.sort()).toEqual(needed.sort())
  })

  it('name only metrics that exist', () => {
    const code = tracked
      .filter((path) => /^(services|shared|deploy)\/.*\.ts$/.test(path))
      .map(read)
      .join('\n')
    const rulesFile = 'deploy/prometheus/alerts.yaml'
    const rules = { path: rulesFile, text: read(rulesFile) }
    const named = [
      ...pages.map((page) => ({ ...page, pattern: /`(di_[a-z_]+[a-z])[`{]/g })),
      { ...rules, pattern: /\b(di_[a-z_]+[a-z])\b/g },
    ]
    const unknown = named.flatMap(({ path, text, pattern }) =>
      [...text.matchAll(pattern)]
        .filter(([, name]) => !code.includes(`'${name}'`))
        .map(([, name]) => `${path}: ${name}`),
    )
    expect(unknown).toEqual([])
  })

  it('list every setting', () => {
    const page = read('deploy/README.md')
    const unlisted = Object.keys(variables).filter((name) => !page.includes(`\`${name}\``))
    // The local stack alone sets it.
    expect(unlisted).toEqual(['CLICKHOUSE_EMBEDDED', 'PARENT_PID'])
  })

  it('list every command of the command line', () => {
    const page = read('services/console/README.md')
    const program = new Command('di')
    addCommands(program, {} as CliContext)
    const namesOf = ({ commands }: Command): string[] =>
      commands.flatMap((command) => [command.name(), ...namesOf(command)])
    const commands = namesOf(program)
    expect(commands.length).toBeGreaterThan(60)
    expect(commands.filter((name) => !new RegExp(`\\b${name}\\b`).test(page))).toEqual([])
  })
})
