// The parts of `npm run faults -- image` that need no container: the options of a container follow
// from compose.yaml, and what breaks a promise is seen.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { processNames } from '#shared/core/permissions/process-permissions.ts'
import { judgeRights, toRunOptions } from '../../faults/image/container.ts'
import { type ImageFacts, judgeContents } from '../../faults/image/image-contents.ts'
import { readComposeFile } from '../../support/deploy/compose-file.ts'

const deploy = join(import.meta.dirname, '../../../deploy')
const { services } = readComposeFile()
const ports = new Map([8080, 8081, 8082, 8083, 8084, 8090, 8091, 8092].map((n) => [`${n}`, n + 1]))
const settings = { secretsDir: '/secrets', ports, isFirst: false }

describe('a container', () => {
  it.each(processNames)('of %s has the settings of compose', (name) => {
    const options = toRunOptions(services[name]!, settings).join(' ')
    for (const option of [
      '--read-only --read-only-tmpfs=false',
      '--tmpfs /tmp',
      '--cap-drop ALL',
      '--security-opt no-new-privileges:true',
      '--init',
      '--pids-limit 128',
      `--memory ${services[name]!.mem_limit}`,
    ]) {
      expect(options).toContain(option)
    }
    const files = services[name]!.secrets!.map((one) => `/secrets/${one}:/run/secrets/${one}:ro`)
    const own = (services[name]!.volumes ?? []).map((one) => one.replace('./', `${deploy}/`))
    expect([...options.matchAll(/--volume (\S+)/g)].map(([, file]) => file).sort()).toEqual(
      [...files, ...own].sort(),
    )
    expect(toRunOptions(services[name]!, { ...settings, isFirst: true })).not.toContain('--init')
  })

  it('listens on the mapped ports of this machine', () => {
    const options = toRunOptions(services.ingest!, settings)
    expect(options).toContain('INGEST_LISTEN=127.0.0.1:8081')
    expect(options).toContain('INGEST_INTERNAL_LISTEN=127.0.0.1:8091')
  })

  it('is not run with a setting that the drill does not know', () => {
    const service = Object.assign({ ...services.api! }, { user: 'root' })
    expect(() => toRunOptions(service, settings)).toThrow('does not know user of compose.yaml')
  })
})

describe('rights', () => {
  const ordinary = {
    uids: ['1000\t1000\t1000\t1000'],
    capabilities: ['0000000000000000'],
    noNewPrivileges: ['1'],
    writable: ['/tmp'],
  }

  it('are those of an ordinary user with /tmp', () => {
    expect(judgeRights(ordinary)).toEqual([])
  })

  it.each<[string, Partial<typeof ordinary>]>([
    ['another user', { uids: ['0\t0\t0\t0'] }],
    ['a second user', { uids: ['1000\t1000\t1000\t1000', '0\t0\t0\t0'] }],
    ['a capability', { capabilities: ['0000000000000000', '0000000000000400'] }],
    ['new privileges', { noNewPrivileges: ['0'] }],
    ['a writable root', { writable: ['/', '/tmp'] }],
    ['no writable /tmp', { writable: [] }],
  ])('are broken by %s', (_, change) => {
    expect(judgeRights(Object.assign({ ...ordinary }, change))).toHaveLength(1)
  })
})

describe('contents', () => {
  const lock = readFileSync(join(import.meta.dirname, '../../../package-lock.json'), 'utf8')
  type Entries = Record<string, { dev?: true; optional?: true; devOptional?: true }>
  const { packages } = JSON.parse(lock) as { packages: Entries }
  const needed = Object.keys(packages).filter((path) => {
    const { dev, optional, devOptional } = packages[path]!
    return path !== '' && !dev && !optional && !devOptional
  })
  const top =
    '.compiled LICENSE clickhouse node_modules package.json postgres services shared'.split(' ')
  const dist = 'services/console/web/dist'
  const whole: ImageFacts = {
    config: {
      User: 'node',
      WorkingDir: '/app',
      Env: ['PATH=/bin', 'NODE_ENV=production', 'API_LISTEN=0.0.0.0:8081'],
      Cmd: ['node', 'services/ingest/main.ts'],
    },
    healthcheck: [],
    files: [...top, 'services/api', dist, `${dist}/index.html`, `${dist}/assets`],
    changeable: [],
    packages: needed,
    keys: [],
    besideBase: [],
    bytes: 1,
  }
  const broken = (change: Partial<ImageFacts>) =>
    judgeContents(Object.assign({ ...whole }, change), lock)
      .filter(([, wrong]) => wrong.length > 0)
      .map(([promise]) => promise)

  it('break nothing when they are what the Dockerfile says', () => {
    expect(broken({})).toEqual([])
  })

  it.each<[promise: string, change: Partial<ImageFacts>]>([
    ['has what the Dockerfile copies', { files: [...whole.files, 'deploy'] }],
    ['has no development dependency', { packages: [...needed, 'node_modules/chdb'] }],
    ['has no development dependency', { packages: needed.slice(1) }],
    ['has no test and no simulated fleet', { files: [...whole.files, 'deploy/fleet'] }],
    ['has no test and no simulated fleet', { files: [...whole.files, 'shared/a.test.ts'] }],
    ['has no secret', { files: [...whole.files, 'shared/secrets/master_key'] }],
    ['has no secret', { keys: ['shared/key.ts'] }],
    ['has no secret', { config: { ...whole.config, Env: ['ADMIN_TOKEN=x'] } }],
    ["has the console's pages", { files: [...top, 'services/api'] }],
    ['has no program file that a process could change', { changeable: ['services/api/main.ts'] }],
    ['changes nothing of its base image', { besideBase: ['etc/passwd'] }],
    ['runs as `node`, and its command is ingest', { config: { ...whole.config, User: '' } }],
  ])('break "%s"', (promise, change) => {
    expect(broken(change)).toEqual([promise])
  })
})
