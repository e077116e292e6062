/**
 * The CronJob of the Helm chart: what it renders, and its commands, run one after another on real
 * servers. pg_dump and pg_restore alone are stand-ins, because no package of this project has them.
 */
import { execFile } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serverBackupParts } from '#shared/io/backup/server-backups.ts'
import { createClickhouse, defaultDatabase } from '#shared/io/clickhouse/clickhouse.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { type KubernetesObject, renderChart } from '../../support/deploy/helm.ts'
import { type Container, ofKind, type PodSpec } from '../../support/deploy/rendered-chart.ts'
import { nodeEnv } from '../../support/process/node-env.ts'
import { migrateClickhouse } from '../../support/servers/databases.ts'
import { signalsOf } from '../../support/telemetry/accepted-events.ts'
import { createScorerRig, type ScorerRig } from '../../support/telemetry/scorer-rig.ts'

const run = promisify(execFile)
const projectDir = fileURLToPath(new URL('../../..', import.meta.url))

type Egress = { ports: { port: number }[] }
type Backup = { name: string; pod: PodSpec; spec: Record<string, unknown> }

function renderBackup(
  more: object = {},
  others: object = {},
): Backup & { all: KubernetesObject[] } {
  const all = renderChart({
    backup: { enabled: true, clickhouseTo: "File('{name}')", keep: 2, ...more },
    ...others,
  })
  const [cronJob] = ofKind(all, 'CronJob') as unknown as {
    metadata: { name: string }
    spec: { jobTemplate: { spec: { template: { spec: PodSpec } } } }
  }[]
  const { jobTemplate, ...spec } = cronJob!.spec
  const { template, ...job } = jobTemplate.spec
  return { all, name: cronJob!.metadata.name, pod: template.spec, spec: { ...spec, ...job } }
}

const containersOf = ({ initContainers = [] as unknown as [Container], containers }: PodSpec) => [
  ...initContainers,
  ...containers,
]

describe('the CronJob', () => {
  it('is off by default, and starts one backup at a time', () => {
    const kinds = ['CronJob', 'PersistentVolumeClaim']
    expect(renderChart().filter(({ kind }) => kinds.includes(kind))).toEqual([])
    const { spec, pod } = renderBackup({ timeZone: 'Etc/UTC' })
    expect(spec).toEqual({
      schedule: '17 3 * * *',
      timeZone: 'Etc/UTC',
      concurrencyPolicy: 'Forbid',
      successfulJobsHistoryLimit: 3,
      failedJobsHistoryLimit: 3,
      backoffLimit: 2,
      activeDeadlineSeconds: 21_600,
    })
    expect(pod).toMatchObject({
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    })
    // Kubernetes runs init containers one after another, then the others.
    expect(containersOf(pod).map(({ name }) => name)).toEqual(['begin', 'postgres', 'finish'])
    for (const { securityContext } of containersOf(pod)) {
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
    }
  })

  it('writes to a claim that an uninstall keeps, or to one that exists', () => {
    const claimOf = ({ pod }: Backup) =>
      (pod.volumes as { persistentVolumeClaim?: { claimName: string } }[]).find(
        (one) => one.persistentVolumeClaim,
      )!.persistentVolumeClaim!.claimName
    const made = renderBackup()
    const [claim] = ofKind(made.all, 'PersistentVolumeClaim')
    expect(claim!.metadata).toMatchObject({
      name: claimOf(made),
      annotations: { 'helm.sh/resource-policy': 'keep' },
    })
    const existing = renderBackup({ storage: { existingClaim: 'nfs' } })
    expect(claimOf(existing)).toBe('nfs')
    expect(ofKind(existing.all, 'PersistentVolumeClaim')).toEqual([])
  })

  it('connects to the three stores alone, and accepts no connection', () => {
    const { all } = renderBackup()
    const [policy] = ofKind(all, 'NetworkPolicy').filter(
      ({ metadata }) => metadata.name === 'di-device-intelligence-backup',
    ) as unknown as { spec: { policyTypes: string[]; ingress?: object; egress: Egress[] } }[]
    const { policyTypes, ingress, egress } = policy!.spec
    expect({ policyTypes, ingress }).toEqual({ policyTypes: ['Ingress', 'Egress'] })
    const ports = egress.flatMap((rule) => rule.ports.map(({ port }) => port))
    expect(ports).toEqual([53, 53, 4222, 5432, 8123, 8443])
  })

  it('connects with certificates and a seed where they are set', () => {
    const { pod } = renderBackup(
      { settings: { NATS_CREDS_FILE: '/certificates/di.creds' } },
      {
        certificates: { existingSecret: 'pem' },
        secrets: { existingSecret: 'own', also: ['NATS_NKEY_SEED'] },
        settings: { NODE_EXTRA_CA_CERTS: '/certificates/ca.crt' },
      },
    )
    for (const { env } of containersOf(pod)) {
      expect(env).toContainEqual({ name: 'NATS_CREDS_FILE', value: '/certificates/di.creds' })
      expect(env).toContainEqual({ name: 'PGSSLROOTCERT', value: '/certificates/ca.crt' })
      expect(env).toContainEqual({
        name: 'NATS_NKEY_SEED_FILE',
        value: '/secrets/nats_nkey_seed_di',
      })
    }
  })

  it.each([
    ['no place for ClickHouse', { backup: { enabled: true } }, 'clickhouseTo'],
    [
      'shards',
      {
        backup: { enabled: true, clickhouseTo: "File('{name}')" },
        settings: { CLICKHOUSE_CLUSTER: 'http://a:8123;http://b:8123' },
      },
      'shards have their own BACKUP',
    ],
    ['other settings', { backup: { settings: { LOG_LEVEL: 'info' } } }, 'LOG_LEVEL'],
  ])('refuses %s', (_, values, message) => {
    expect(() => renderChart(values)).toThrow(message)
  })
})

describe('its commands', () => {
  const { pod } = renderBackup()
  let rig: ScorerRig
  let workDir: string
  /** What pg_restore lists of a dump of the whole database. */
  let listed: string

  beforeAll(async () => {
    workDir = mkdtempSync(join(tmpdir(), 'di-backups-'))
    for (const folder of ['secrets', 'backups', 'bin']) mkdirSync(join(workDir, folder))
    rig = await createScorerRig({ keepsStreams: false })
    const { POSTGRES_URL, CLICKHOUSE_URL } = rig.env as Record<string, string>
    const secrets = {
      nats_url_di: rig.natsServer.url,
      postgres_url_migrate: POSTGRES_URL,
      clickhouse_url_migrate: CLICKHOUSE_URL,
    }
    for (const [key, url] of Object.entries(secrets)) {
      writeFileSync(join(workDir, 'secrets', key), `${url}\n`)
    }
    const { rows: tables } = await rig.postgres.query<{ relname: string }>(
      "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace",
    )
    listed = tables.map(({ relname }) => `1; 0 2 TABLE DATA public ${relname} postgres\n`).join('')
    // It reads back what the other has written, and lists the tables that the test has chosen.
    writeFileSync(
      join(workDir, 'bin/pg_restore'),
      `#!/bin/sh
for arg in "$@"; do dump="$arg"; done
[ -s "$dump" ] || exit 1
case "$1" in --list) cat "${workDir}/listed" ;; esac
`,
    )
    chmodSync(join(workDir, 'bin/pg_restore'), 0o755)
    writeFileSync(join(workDir, 'listed'), listed)
    // Writes its arguments into the dump; fails for a folder named so.
    writeFileSync(
      join(workDir, 'bin/pg_dump'),
      `#!/bin/sh
for arg in "$@"; do case "$arg" in --file=*) file="\${arg#--file=}" ;; esac; done
printf '%s\\n' "$@" > "$file"
case "$file" in */failing/*) exit 1 ;; esac
`,
    )
    chmodSync(join(workDir, 'bin/pg_dump'), 0o755)
  })
  afterAll(async () => {
    await rig?.close()
    rmSync(workDir, { recursive: true, force: true })
  })

  const folderOf = (podName: string) => join(workDir, 'backups', podName)

  /** Runs a container's command as its pod would, below the test's folder. */
  async function runContainer(name: string, podName: string, change = (text: string) => text) {
    const { command, env = [] } = containersOf(pod).find((one) => one.name === name)!
    const values: Record<string, string> = {}
    // Kubernetes expands variables that come before.
    const expand = (text: string) =>
      text
        .replace(/\$\((\w+)\)/g, (_, variable: string) => values[variable] ?? '')
        .replace(/^\/(secrets|backups)\//, `${workDir}/$1/`)
    for (const { name: variable, value } of env) {
      values[variable] = value === undefined ? podName : expand(value)
    }
    const [program, ...args] = command.map(expand).map(change)
    const { PATH, ...others } = nodeEnv()
    const path = [join(workDir, 'bin'), PATH].join(delimiter)
    const file = program === 'node' ? process.execPath : program!
    return run(file, args, { cwd: projectDir, env: { ...others, PATH: path, ...values } })
  }

  const events = (name: string) =>
    [1, 2, 3].map((nonce) => ({
      tenantId: 'acme',
      deviceId: `${name}-${nonce}`,
      sessionId: `${name}-${nonce}`,
      signals: signalsOf.BLOCK,
    }))

  async function readSessions() {
    const { rows } = await rig.postgres.query<{ session_id: string }>(
      'select session_id from alerts order by session_id',
    )
    const result = await rig.clickhouse.query({
      query: 'select session_id from telemetry order by session_id',
      format: 'JSONEachRow',
    })
    const sessionsOf = (list: { session_id: string }[]) => list.map((one) => one.session_id)
    return { alerts: sessionsOf(rows), events: sessionsOf(await result.json()) }
  }

  it('keep every event and alert when events are decided while the backup is made', async () => {
    await rig.addTenant('acme')
    let scorer = await rig.startScorer()
    await rig.publish(events('before'))
    await rig.drained()
    await scorer.end('SIGTERM')
    await rig.publish(events('between'))
    await runContainer('begin', 'one')
    await runContainer('postgres', 'one')
    const dumped = await readSessions()
    // Decided after the dump of Postgres: ClickHouse's part has these events.
    scorer = await rig.startScorer()
    await rig.drained()
    await runContainer('finish', 'one')
    await scorer.end('SIGTERM')
    const all = await readSessions()
    expect(all.alerts).toHaveLength(6)
    expect(dumped.alerts).toHaveLength(3)
    const dump = readFileSync(join(folderOf('one'), serverBackupParts.postgres), 'utf8')
    expect(dump.trim().split('\n')).toEqual([
      '--format=custom',
      '--no-owner',
      '--no-privileges',
      `--file=${join(folderOf('one'), serverBackupParts.postgres)}`,
      `--dbname=${rig.env.POSTGRES_URL}`,
    ])

    await rig.postgres.query('delete from deliveries')
    await rig.postgres.query('delete from alerts where session_id <> all($1)', [dumped.alerts])
    const restore = () =>
      runContainer('begin', 'one', (text) => (text === 'begin' ? 'restore' : text))
    await expect(restore()).rejects.toThrow('ClickHouse has events')
    await loseClickhouse()
    for (const { config } of await rig.nats.manager.streams.list().next()) {
      await rig.nats.manager.streams.delete(config.name)
    }
    await expect(restore()).rejects.toThrow('NATS has no telemetry stream')
    await ensureStreams(rig.nats)
    await restore()
    await rig.startScorer()
    await rig.drained()
    expect(await readSessions()).toEqual(all)
  })

  async function loseClickhouse(): Promise<void> {
    const url = rig.env.CLICKHOUSE_URL!
    const clickhouse = createClickhouse(url, { name: 'test', database: 'default' })
    for (const database of ['analytics', defaultDatabase]) {
      await clickhouse.command({ query: `drop database ${database} sync` })
    }
    await clickhouse.close()
    await migrateClickhouse(url)
  }

  it('take no folder whose name could change the statement', async () => {
    await expect(runContainer('begin', "x') async; --")).rejects.toThrow('may have letters')
  })

  it('leave no part of a dump that failed', async () => {
    mkdirSync(folderOf('failing'))
    await expect(runContainer('postgres', 'failing')).rejects.toThrow()
    expect(readdirSync(folderOf('failing'))).toEqual([])
    await expect(runContainer('finish', 'failing')).rejects.toThrow('needs `begin`')
  })

  it('complete no backup whose dump is empty or lacks a table', async () => {
    await runContainer('begin', 'empty')
    writeFileSync(join(folderOf('empty'), serverBackupParts.postgres), '')
    await expect(runContainer('finish', 'empty')).rejects.toThrow('and then pg_dump')
    await runContainer('begin', 'partial')
    writeFileSync(join(workDir, 'listed'), listed.replace(/^.*public alerts .*\n/m, ''))
    await runContainer('postgres', 'partial')
    await expect(runContainer('finish', 'partial')).rejects.toThrow('lacks alerts')
    expect(existsSync(join(folderOf('one'), serverBackupParts.manifest))).toBe(true)
  })
})
