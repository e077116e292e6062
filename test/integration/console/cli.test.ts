// The command line against a real console process: with --json stdout is one JSON document and
// nothing else, failures are a message on stderr and status 1, and each command prints what the
// contract requires.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { toDerivedKeys } from '#shared/io/keys/process-keys.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { writeMmdb } from '../../../deploy/local/network/mmdb-writer.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { toBody } from '../../support/http/tenant-client.ts'
import { type CommandResult, runDi } from '../../support/process/command-line.ts'
import { nodeEnv } from '../../support/process/node-env.ts'
import { until } from '../../support/process/until.ts'
import { startNats, type TestNats } from '../../support/servers/nats/nats-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'

const projectFolder = fileURLToPath(new URL('../../..', import.meta.url))
const node = join(projectFolder, 'node_modules/.bin/node')
const adminToken = randomBytes(32).toString('base64url')
const masterKey = randomBytes(32).toString('base64')

let postgres: TestPostgres
let nats: TestNats
let postgresUrl: string
let consoleUrl: string
let server: ChildProcess
const folder = mkdtempSync(join(tmpdir(), 'cli-'))
const networkFolder = join(folder, 'network')

beforeAll(async () => {
  ;[postgres, nats] = await Promise.all([startPostgres(), startNats()])
  postgresUrl = await postgres.createMigratedDatabase()
  mkdirSync(networkFolder)
  const database = writeMmdb([['8.8.0.0/16', { country: { iso_code: 'DE' } }]])
  writeFileSync(join(networkFolder, 'country.mmdb'), database)
  writeFileSync(join(networkFolder, 'vpn.txt'), '203.0.113.0/24\n0.0.0.0/0\n')
  ;({ server, url: consoleUrl } = await startConsole(masterKey))
})
afterAll(async () => {
  if (server !== undefined) await stopConsole(server)
  await Promise.all([postgres?.stop(), nats?.stop()])
  rmSync(folder, { recursive: true, force: true })
})

/** Starts the console as in production, on any free port; rejects with stderr when it ends. */
async function startConsole(key: string): Promise<{ server: ChildProcess; url: string }> {
  const started = spawn(node, ['services/console/main.ts'], {
    cwd: projectFolder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...nodeEnv(),
      POSTGRES_URL: postgresUrl,
      NATS_URL: nats.url,
      // No server listens there: commands that need it fail, the others work.
      CLICKHOUSE_URL: 'http://127.0.0.1:1',
      MASTER_KEY: key,
      ADMIN_TOKEN: adminToken,
      CONSOLE_LISTEN: '127.0.0.1:0',
      CONSOLE_INTERNAL_LISTEN: '127.0.0.1:0',
      NETWORK_DATA: networkFolder,
      ALLOW_PRIVATE_WEBHOOKS: '1',
      PARENT_PID: String(process.pid),
    },
  })
  let complaint = ''
  started.stderr!.on('data', (chunk: Buffer) => {
    complaint += chunk
  })
  const { url, internal_url: internalUrl } = await new Promise<{
    url: string
    internal_url: string
  }>((resolve, reject) => {
    started.once('close', () => reject(new Error(complaint)))
    createInterface({ input: started.stdout! }).on('line', (line) => {
      const entry = JSON.parse(line) as { msg: string; url: string; internal_url: string }
      if (entry.msg === 'listening') resolve(entry)
    })
  })
  for (let ready = false; !ready; ) ready = (await fetch(`${internalUrl}/readyz`)).ok
  return { server: started, url }
}

async function stopConsole(child: ChildProcess): Promise<number | null> {
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  return (await exited)[0]
}

const toEnv = (more: Record<string, string>) => ({
  CONSOLE_URL: consoleUrl,
  ADMIN_TOKEN: adminToken,
  DATA_DIR: folder,
  ...more,
})

const di = (args: string[], more: Record<string, string> = {}) => runDi(args, toEnv(more))

/** The same as a process of its own, as people and scripts run it. */
function diProcess(args: string[], more: Record<string, string> = {}): Promise<CommandResult> {
  return new Promise((resolve) => {
    const options = { cwd: projectFolder, env: { ...nodeEnv(), ...toEnv(more) } }
    execFile(node, ['services/console/cli.ts', ...args], options, (error, stdout, stderr) => {
      resolve({ status: error === null ? 0 : Number(error.code), stdout, stderr })
    })
  })
}

/** Runs a command with --json and reads the one document that it prints. */
async function diJson<T = Record<string, unknown>>(...args: string[]): Promise<T> {
  const { status, stdout, stderr } = await di([...args, '--json'])
  expect({ status, stderr }, args.join(' ')).toEqual({ status: 0, stderr: '' })
  expect(stdout.endsWith('\n')).toBe(true)
  expect(stdout.trim()).not.toContain('\n')
  return JSON.parse(stdout) as T
}

type Created = Record<
  'tenant_id' | 'environment' | 'public_api_key' | 'hmac_secret' | 'webhook_secret',
  string
>

describe('tenants', () => {
  it('create, list, show, rotate, webhook, suspend and resume follow the contract', async () => {
    const created = await diJson<Created>('tenants', 'create', 'acme', '--sandbox')
    expect(Object.keys(created)).toEqual([
      'tenant_id',
      'environment',
      'public_api_key',
      'hmac_secret',
      'webhook_secret',
      'webhook_url',
    ])
    expect(created).toMatchObject({ tenant_id: 'acme', environment: 'sandbox', webhook_url: null })
    const { data } = await diJson<{ data: object[] }>('tenants', 'list')
    expect(data).toMatchObject([{ tenant_id: 'acme', status: 'active' }])
    const shown = await diJson('tenants', 'show', 'acme')
    expect(shown).toMatchObject({
      tenant_id: 'acme',
      public_api_key: { last4: expect.any(String), last_used_at: null },
      stale_secret_requests: { retired_secret: null, requests: 0, data: [] },
    })
    expect(JSON.stringify(shown)).not.toContain(created.hmac_secret)

    const rotated = await diJson<Created>('tenants', 'rotate', 'acme')
    expect(rotated.hmac_secret).not.toBe(created.hmac_secret)
    expect(rotated.webhook_secret).not.toBe(created.webhook_secret)
    expect(rotated).not.toHaveProperty('public_api_key')
    expect(await diJson('tenants', 'show', 'acme')).toMatchObject({
      stale_secret_requests: {
        retired_secret: { last4: created.hmac_secret.slice(-4) },
        requests: 0,
        data: [],
      },
    })
    expect(await diJson('tenants', 'rotate', 'acme', '--api-key')).toMatchObject({
      public_api_key: expect.stringMatching(/^dpk_sandbox_/),
    })

    const url = 'http://127.0.0.1:9999/hook'
    expect(await diJson('tenants', 'webhook', 'acme', '--url', url)).toEqual({
      tenant_id: 'acme',
      webhook_url: url,
    })
    expect(await diJson('tenants', 'webhook', 'acme', '--off')).toEqual({
      tenant_id: 'acme',
      webhook_url: null,
    })
    expect(await diJson('tenants', 'suspend', 'acme')).toEqual({
      tenant_id: 'acme',
      status: 'suspended',
    })
    expect(await diJson('tenants', 'resume', 'acme')).toEqual({
      tenant_id: 'acme',
      status: 'active',
    })
    const audit = await diJson<{ data: { action: string }[] }>('audit', 'acme')
    expect(audit.data.map(({ action }) => action)).toContain('webhook.switched_off')
    expect(await diJson('edges')).toMatchObject({ data: [] })
  })

  it('have rates, which can be shown, set and reset to the default', async () => {
    await diJson('tenants', 'create', 'rated')
    const byDefault = { ingest_rate: null, ingest_bytes: null, ingest_share: null, rest_rate: null }
    expect(await diJson('tenants', 'rates', 'rated')).toEqual({ tenant_id: 'rated', ...byDefault })
    const options = ['--ingest-bytes', '1000000/3000000', '--ingest-share', '0.5', '--rest', '7']
    const set = {
      ...byDefault,
      ingest_bytes: { per_second: 1_000_000, burst: 3_000_000 },
      ingest_share: 0.5,
      rest_rate: { per_second: 7, burst: 14 },
    }
    expect(await diJson('tenants', 'rates', 'rated', ...options)).toMatchObject(set)
    const shown = await di(['tenants', 'rates', 'rated', '--ingest-bytes', 'default'])
    expect(shown.stdout).toMatch(/^ingest_bytes +what others leave \(the default\)$/m)
    expect(shown.stdout).toMatch(/^ingest_share +0\.5$/m)
    for (const wrong of ['0', '0.91', 'much']) {
      const refused = await di(['tenants', 'rates', 'rated', '--ingest-share', wrong])
      expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining('up to 0.9')])
    }
  })

  it('have answers to their clients with or without flags', async () => {
    await diJson('tenants', 'create', 'answered')
    const answer = { tenant_id: 'answered', ingest_answer: 'interface' }
    expect(await diJson('tenants', 'ingest-answer', 'answered', 'interface')).toEqual(answer)
    expect(await diJson('tenants', 'show', 'answered')).toMatchObject(answer)
    const wrong = await di(['tenants', 'ingest-answer', 'answered', 'nothing'])
    expect([wrong.status, wrong.stderr]).toEqual([1, expect.stringContaining('ingest_answer')])
  })

  it('have an address of their clients that counts, and keep it or not', async () => {
    await diJson('tenants', 'create', 'addressed')
    const shown = () => diJson('tenants', 'show', 'addressed')
    expect(await shown()).toMatchObject({
      client_address: 'connection',
      store_client_address: false,
    })
    const source = { tenant_id: 'addressed', client_address: 'body' }
    expect(await diJson('tenants', 'client-address', 'addressed', 'body')).toEqual(source)
    const stored = { tenant_id: 'addressed', store_client_address: true }
    expect(await diJson('tenants', 'store-client-address', 'addressed', 'on')).toEqual(stored)
    expect(await shown()).toMatchObject({ ...source, ...stored })
    expect((await di(['tenants', 'show', 'addressed'])).stdout).toMatch(
      /^client_address +client_ip of the body; kept in full$/m,
    )
    await diJson('tenants', 'client-address', 'addressed', 'connection')
    await diJson('tenants', 'store-client-address', 'addressed', 'off')
    expect((await di(['tenants', 'show', 'addressed'])).stdout).toMatch(
      /^client_address +of the connection; its network and a hash are kept$/m,
    )
    const wrong = await di(['tenants', 'client-address', 'addressed', 'nothing'])
    expect([wrong.status, wrong.stderr]).toEqual([1, expect.stringContaining('client_address')])
    const unclear = await di(['tenants', 'store-client-address', 'addressed', 'maybe'])
    expect([unclear.status, unclear.stderr]).toEqual([1, expect.stringContaining('on or off')])
  })

  it('share verdict keys, which the console makes, lists and rotates', async () => {
    const list = () => diJson('verdict-keys', 'list') as Promise<{ data: { state: string }[] }>
    await until('there are keys', async () => (await list()).data.length === 2)
    const early = await di(['verdict-keys', 'rotate'])
    expect([early.status, early.stderr]).toEqual([1, expect.stringContaining('published since')])
    const rotated = await di(['verdict-keys', 'rotate', '--revoke'])
    expect(rotated.stdout).toMatch(/^KEY +STATE +PUBLISHED/)
    expect((await list()).data.map(({ state }) => state).slice(0, 2)).toEqual(['next', 'current'])
  })

  it('are printed as tables for people', async () => {
    const created = await di(['tenants', 'create', 'shop', '--name', 'A shop'])
    expect(created.stdout).toMatch(/^tenant_id +shop\n/)
    expect(created.stdout).toMatch('never shown again')
    const listed = await di(['tenants', 'list'])
    expect(listed.stdout).toMatch(/^TENANT +ENVIRONMENT +STATUS/)
    expect(listed.stdout).toMatch(/^shop +live +active/m)
    const commands = [
      ['tenants', 'show', 'shop'],
      ['tenants', 'rotate', 'shop', '--hmac'],
      ['deliveries', 'list', 'shop'],
      ['audit', 'shop'],
      ['edges'],
    ]
    await Promise.all(
      commands.map(async (command) => {
        const { status, stdout, stderr } = await di(command)
        expect({ status, stderr }, command.join(' ')).toEqual({ status: 0, stderr: '' })
        expect(stdout.trim()).not.toBe('')
      }),
    )
  })
})

describe('network data', () => {
  it('is shown by file, with what it gives and what is wrong with it', async () => {
    type Status = { is_on: boolean; data: { file: string; fault: string | null }[] }
    const read = () => diJson<Status>('network', 'status')
    await until('both files are read', async () => (await read()).data.length === 2)
    expect(await read()).toMatchObject({
      is_on: true,
      data: [
        { file: 'country.mmdb', state: 'in_use', gives: ['country'], fault: null },
        { file: 'vpn.txt', state: 'broken', fault: 'line 2 has a network that is too wide' },
      ],
    })
    const shown = await di(['network', 'status'])
    expect(shown.stdout).toMatch(/^FILE +STATE +GIVES +NETWORKS +MIB +BUILT +FAULT$/m)
    expect(shown.stdout).toMatch(/^country\.mmdb +in_use +country +/m)
  })
})

describe('alerts and deliveries', () => {
  it('get a disposition and are listed with their attempts', async () => {
    await diJson('tenants', 'create', 'bank', '--webhook-url', 'https://93.184.216.34/hook')
    const candidate = makeAlertCandidate({ tenantId: 'bank', sessionId: 's' })
    const { alertId } = candidate
    const connection = createPostgres(postgresUrl, { role: 'test', log: testLog })
    await createAlertStore(connection).raiseAlerts([candidate], () => Date.now())
    await connection.close()
    const alert = await diJson('alerts', 'disposition', alertId, 'FALSE_POSITIVE', '--note', 'mine')
    expect(alert).toMatchObject({ alert_id: alertId, disposition: 'FALSE_POSITIVE', seq: 1 })
    const deliveries = await diJson<{ data: object[] }>('deliveries', 'list', 'bank')
    expect(deliveries.data).toMatchObject([{ alert_id: alertId, state: 'pending', attempts: [] }])
    expect(await diJson('deliveries', 'list', 'bank', '--state', 'failed')).toEqual({
      data: [],
      limit: 50,
      next_cursor: null,
    })
  })

  it('fall into cases, which are listed, taken, judged and shown', async () => {
    await diJson('tenants', 'create', 'desk')
    const connection = createPostgres(postgresUrl, { role: 'test', log: testLog })
    const alerts = ['s1', 's2'].map((sessionId) =>
      makeAlertCandidate({ tenantId: 'desk', sessionId, deviceId: 'd\u202e1' }),
    )
    await createAlertStore(connection).raiseAlerts(alerts, () => Date.now())
    await connection.close()
    const { stdout: table } = await di(['cases', 'list', 'desk', '--min-risk', '1'])
    const [, id] = /^(cas_\S+) +device d\\u\{202e\}1 +OPEN +2 of 2 open /m.exec(table) ?? []
    const next = ['cases', 'next', 'desk']
    const { case: taken } = await diJson<{ case: { case_id: string; version: number } }>(...next)
    expect(taken).toMatchObject({ case_id: id, leased_by: 'admin' })
    const judge = ['cases', 'judge', id!, 'confirmed', '--expected-version']
    const { stdout: judged } = await di([...judge, String(taken.version), '--note', 'a farm'])
    expect(judged).toMatch(/state +CLOSED[\s\S]*2 alerts judged, 0 labels and 0 list entries added/)
    const { stdout: shown } = await di(['cases', 'show', id!])
    expect(shown).toMatch(/Devices: d\\u\{202e\}1\n.*judged by admin .*"note":"a farm"/)
  })

  it('change together, and the change is listed, cancelled and undone', async () => {
    const begin = await fetch(`${consoleUrl}/admin/v1/tenants/bank/alerts/bulk-disposition`, {
      method: 'POST',
      headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
      body: JSON.stringify({ filter: {}, disposition: 'CONFIRMED', expected_count: 1 }),
    })
    const { job_id: jobId } = (await begin.json()) as { job_id: string }
    type Job = { job_id: string; state: string; changed: number; undo_of: string | null }
    const list = async () => (await diJson<{ data: Job[] }>('alerts', 'bulk', 'list', 'bank')).data
    await until('the job is done', async () => (await list())[0]?.state === 'done')
    const undo = await diJson<Job>('alerts', 'bulk', 'undo', jobId)
    expect(undo).toMatchObject({ undo_of: jobId })
    await until('the undo is done', async () => (await list())[0]?.state === 'done')
    expect(await list()).toMatchObject([
      { job_id: undo.job_id, changed: 1, undo_of: jobId },
      { job_id: jobId, changed: 1, undone_by: undo.job_id },
    ])
    expect(await diJson('alerts', 'bulk', 'cancel', jobId)).toMatchObject({ state: 'done' })
    const { stdout } = await di(['alerts', 'bulk', 'list', 'bank'])
    expect(stdout).toMatch(/undo of blk_\S+ +done +1 +1 +-\n.* to CONFIRMED +done +1 +1 +blk_/)
    const again = await di(['alerts', 'bulk', 'undo', jobId])
    expect(again).toMatchObject({ status: 1, stderr: expect.stringMatching(/undone already/) })
    const { stdout: shown } = await di([
      'alerts',
      'list',
      'bank',
      '--disposition',
      'FALSE_POSITIVE',
    ])
    expect(shown).toContain('1 of 1')
  })
})

describe('policies', () => {
  type Policy = { version: number; policy_hash: string; name: string }
  const write = (name: string, value: unknown) => {
    const path = join(folder, name)
    writeFileSync(path, typeof value === 'string' ? value : JSON.stringify(value))
    return path
  }

  it('show, set, versions, presets and schema print the admin API’s answers', async () => {
    await diJson('tenants', 'create', 'market')
    const before = await diJson<Policy>('policy', 'show', 'market')
    expect(before).toMatchObject({ version: 1, name: 'balanced', in_force: true })
    expect(before).toHaveProperty('thresholds', { review: 40, block: 75 })
    // The output of `show` can be set unchanged.
    const same = await diJson('policy', 'set', 'market', write('same.json', before))
    expect(same).toMatchObject({ version: 1, previous_version: 1, lease_expired_edges: [] })
    expect(same).toMatchObject(before)
    const thresholds = { review: 30, block: 70 }
    const edited = write('mine.json', { ...before, name: 'mine', thresholds })
    const set = await di(['policy', 'set', 'market', edited])
    expect(set.stderr).toBe('')
    expect(set.stdout).toContain('Version 2 (mine) is in force, after version 1.')
    expect(set.stdout).toContain('$.thresholds.review: 40 -> 30')
    expect(set.stdout).toContain('$.name: "balanced" -> "mine"')
    const after = await diJson<Policy>('policy', 'show', 'market')
    const { version, policy_hash, created_at } = after as Policy & { created_at: string }
    expect(version).toBe(2)
    expect(after).toEqual({
      ...before,
      name: 'mine',
      thresholds,
      version,
      policy_hash,
      created_at,
    })
    // So can the output of `set`.
    const back = await diJson('policy', 'set', 'market', write('shown.json', same))
    expect(back).toMatchObject({ version: 3, policy_hash: before.policy_hash })
    expect(await diJson('policy', 'set', 'market', '--preset', 'strict')).toMatchObject({
      version: 4,
      name: 'strict',
    })
    const [second, versions, presets, strict, schema] = await Promise.all([
      diJson<Policy>('policy', 'show', 'market', '--version', '2'),
      diJson<{ data: Policy[] }>('policy', 'versions', 'market'),
      diJson<{ data: { name: string }[] }>('policy', 'presets'),
      diJson('policy', 'presets', 'strict'),
      diJson('policy', 'schema'),
    ])
    expect(second).toEqual({ ...after, in_force: false })
    expect(versions.data.map(({ version }) => version)).toEqual([4, 3, 2, 1])
    expect(presets.data.map(({ name }) => name)).toContain('regulated-banking')
    expect(strict).toMatchObject({ name: 'strict' })
    expect(schema).toMatchObject({ type: 'object' })
  })

  it('are readable: thresholds, caps, floors, rules, suppressions, top weights', async () => {
    const balanced = await diJson<Policy>('policy', 'presets', 'balanced')
    const suppressions = [
      {
        signals: ['root.*'],
        sdkVersions: ['4.2.*'],
        expiresAt: '2026-01-02T03:04:05+01:00',
        reason: 'the release of March',
      },
    ]
    await diJson('tenants', 'create', 'reader')
    await diJson('policy', 'set', 'reader', write('p.json', { ...balanced, suppressions }))
    const { stdout } = await di(['policy', 'show', 'reader'])
    for (const text of [
      'thresholds  review 40, block 75',
      'root 70, emulator 75',
      '80 from debugger.frida_detected',
      'sessions_per_device',
      'root.*   4.2.*  all       2026-01-02 02:04:05Z',
      'the release of March',
      ' 80  tamper.signature_mismatch',
    ]) {
      expect(stdout).toContain(text)
    }
    expect((await di(['policy', 'presets', 'strict'])).stdout).toContain('review 25, block 60')
  })

  it('are set from stdin with -', async () => {
    await diJson('tenants', 'create', 'piped')
    const command = `"${node}" services/console/cli.ts policy presets permissive --json |
      "${node}" services/console/cli.ts policy set piped - --json`
    const env = {
      ...nodeEnv(),
      CONSOLE_URL: consoleUrl,
      ADMIN_TOKEN: adminToken,
    }
    const options = { cwd: projectFolder, env }
    const stdout = await new Promise<string>((resolve, reject) => {
      execFile('sh', ['-c', command], options, (error, out) =>
        error === null ? resolve(out) : reject(error),
      )
    })
    expect(JSON.parse(stdout)).toMatchObject({ version: 2, name: 'permissive' })
  })

  it('that are invalid are rejected with every fault and its path', async () => {
    const failsWith = async (args: string[], ...texts: string[]) => {
      const { status, stdout, stderr } = await di(args)
      expect({ status, stdout }, args.join(' ')).toEqual({ status: 1, stdout: '' })
      for (const text of texts) expect(stderr).toContain(text)
    }
    await diJson('tenants', 'create', 'faulty')
    await Promise.all([
      failsWith(['policy', 'set', 'faulty'], 'Give one of FILE and --preset NAME.'),
      failsWith(['policy', 'set', 'faulty', '/nowhere/p.json'], '/nowhere/p.json cannot be read'),
      failsWith(['policy', 'set', 'faulty', write('no.json', '{"schema":')], 'no.json is not JSON'),
      failsWith(
        ['policy', 'set', 'faulty', write('bad.json', { schema: 1, name: 'x', extra: 1 })],
        'invalid_policy',
        '$.extra: ',
        '$.thresholds: ',
      ),
      failsWith(
        ['policy', 'set', 'faulty', '--preset', 'x'],
        '$.preset: must be one of permissive',
      ),
      failsWith(['policy', 'set', 'faulty', '--preset', 'strict', '--if-version', '9'], 'not 9'),
      failsWith(['policy', 'show', 'faulty', '--version', '9'], 'has no version 9'),
      failsWith(['explain', 'nonsense'], 'event_id: must be evt_'),
      failsWith(['explain', `evt_${'a'.repeat(22)}`], 'events cannot be read at the moment'),
    ])
  })
})

describe('failures', () => {
  const fails = async (args: string[], message: string, env?: Record<string, string>) => {
    const { status, stdout, stderr } = await di(args, env)
    expect(stderr, args.join(' ')).toContain(message)
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).not.toMatch(/\n +at /)
  }

  it('are one readable message on stderr, nothing on stdout, and status 1', async () => {
    await Promise.all([
      fails(['tenants', 'show', 'nobody', '--json'], 'There is no tenant nobody.'),
      fails(['tenants', 'create', 'UPPER', '--json'], '$.tenant_id: must be 1 to 63'),
      fails(['tenants', 'create', 'x', '--webhook-url', 'http://a.example'], 'webhook_url_refused'),
      fails(['alerts', 'disposition', 'alr_x', 'MAYBE', '--json'], '$.disposition'),
      fails(['alerts', 'disposition', 'alr_x', 'OPEN', '--json'], 'There is no alert alr_x.'),
      fails(
        ['tenants', 'webhook', 'acme', '--json'],
        'Give one of --url URL, --events KINDS, --off, --pause',
      ),
      // A rotation leaves no secret that still works.
      fails(['tenants', 'rotate', 'acme', '--overlap', '24h'], "unknown option '--overlap'"),
      fails(['tenants', 'create', '--json'], "missing required argument 'slug'"),
      fails(['nonsense', '--json'], "unknown command 'nonsense'"),
      fails(['deliveries', 'list', 'acme', '--limit', '0'], 'from 1 to 500'),
      fails(['tenants', 'list'], 'needs the admin token', { ADMIN_TOKEN: 'wrong' }),
      fails(['tenants', 'list'], 'cannot be reached', { CONSOLE_URL: 'http://127.0.0.1:1' }),
      fails(['tenants', 'list'], 'no running local stack', {
        CONSOLE_URL: '',
        DATA_DIR: '/none',
      }),
    ])
  })

  it('name a page of something between the command and the console', async () => {
    let status = 200
    const between = createServer((_, response) => {
      response.writeHead(status, { 'content-type': 'text/html' })
      response.end('<html><head><title>Acme</title></head><body><h1>Log in</h1></body></html>')
    })
    await once(between.listen(0, '127.0.0.1'), 'listening')
    const { port } = between.address() as AddressInfo
    for (status of [200, 403]) {
      const env = { CONSOLE_URL: `http://127.0.0.1:${port}` }
      await fails(['tenants', 'list'], `did not come from the console`, env)
      await fails(['tenants', 'list'], `HTTP ${status}, text/html; it says “Acme Log in”`, env)
    }
    between.close()
  })

  it('never print the token', async () => {
    const nowhere = { CONSOLE_URL: 'http://127.0.0.1:1' }
    const { status, stdout, stderr } = await diProcess(['tenants', 'list', '--json'], nowhere)
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toContain('cannot be reached')
    expect(stderr).not.toContain(adminToken)
  })
})

describe('keys', () => {
  it('are printed for each process, from MASTER_KEY alone', async () => {
    const env = { MASTER_KEY: masterKey, CONSOLE_URL: 'http://127.0.0.1:1' }
    const { status, stdout } = await di(['secrets', 'keys', '--json'], env)
    expect(status).toBe(0)
    const all = toDerivedKeys(masterKey)
    expect(JSON.parse(stdout)).toEqual({
      ingest: {
        DIRECTORY_PUBLIC_KEY: all.DIRECTORY_PUBLIC_KEY,
        EDGE_KEY: all.EDGE_KEY,
        TELEMETRY_KEY: all.TELEMETRY_KEY,
      },
      scorer: { TELEMETRY_KEY: all.TELEMETRY_KEY },
      delivery: { WEBHOOK_KEY: all.WEBHOOK_KEY },
    })
    const text = await di(['secrets', 'keys'], env)
    expect(text.stdout).toContain(`# delivery\nWEBHOOK_KEY=${all.WEBHOOK_KEY}`)
    const older = await di(['secrets', 'telemetry-key'], env)
    expect(older.stdout).toBe(`${all.TELEMETRY_KEY}\n`)
    const previous = randomBytes(32).toString('base64')
    const both = await di(['secrets', 'keys'], { ...env, MASTER_KEY_PREVIOUS: previous })
    expect(both.stdout).toContain(`EDGE_KEY_PREVIOUS=${toDerivedKeys(previous).EDGE_KEY}`)
    const none = await di(['secrets', 'keys'])
    expect(none).toMatchObject({ status: 1, stdout: '' })
    expect(none.stderr).toContain('MASTER_KEY is required')
  })
})

describe('recovery', () => {
  it('shows what Postgres has forgotten, and takes over exactly that', async () => {
    expect((await di(['recovery', 'list'])).stdout).toBe('Nothing is to be recovered.\n')
    await diJson('tenants', 'create', 'forgotten')
    const db = createPostgres(postgresUrl, { role: 'test', log: createLog('test', 'silent') })
    await db.query(`delete from tenants where tenant_id = 'forgotten'`)
    await db.close()
    const { stdout } = await di(['recovery', 'list'])
    expect(stdout).toMatch(
      /^tenant forgotten: Postgres has nothing; the edges have epoch 1, active/,
    )
    const digest = /di recovery apply (\w+)$/m.exec(stdout)![1]!
    const wrong = await di(['recovery', 'apply', 'x'.repeat(16)])
    expect(wrong).toMatchObject({ status: 1, stderr: expect.stringContaining('Look again') })
    const refused = await di(['tenants', 'create', 'forgotten'])
    expect(refused.stderr).toContain('recovery_pending')
    expect(await diJson('recovery', 'apply', digest)).toEqual({
      tenants: 1,
      api_keys: 0,
      webhooks: 0,
      erasures: 0,
    })
    expect(await diJson('tenants', 'show', 'forgotten')).toMatchObject({ status: 'active' })
    expect((await di(['recovery', 'list'])).stdout).toBe('Nothing is to be recovered.\n')
  })
})

describe('the local stack', () => {
  it('is found through stack.json in DATA_DIR, relative to where npm was called', async () => {
    const data = join(folder, 'here', 'data')
    mkdirSync(data, { recursive: true })
    const facts = { console: consoleUrl, admin_token: adminToken }
    writeFileSync(join(data, 'stack.json'), JSON.stringify(facts))
    const env = {
      CONSOLE_URL: '',
      ADMIN_TOKEN: '',
      DATA_DIR: 'data',
      INIT_CWD: join(folder, 'here'),
    }
    const { status, stdout, stderr } = await diProcess(['tenants', 'list', '--json'], env)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(JSON.parse(stdout)).toHaveProperty('data')
  })
})

describe('the console process', () => {
  it('refuses to start on a wrong MASTER_KEY, with the reason', async () => {
    const start = startConsole(randomBytes(32).toString('base64'))
    await expect(start).rejects.toThrow('MASTER_KEY does not open what is stored')
  })

  it('ends in order on SIGTERM', async () => {
    const other = await startConsole(masterKey)
    expect(await stopConsole(other.server)).toBe(0)
  })
})

describe('submissions', () => {
  it('are checked: the signature by the console, the body without it', async () => {
    const { hmac_secret: secret } = await diJson<Created>('tenants', 'create', 'signer')
    const body = toBody('signer', { signals: { root: { su_binay: true } } })
    const file = join(folder, 'body.json')
    writeFileSync(file, `${body}\n`)
    const check = ['signature', 'check', 'signer', '--body', file, '--signature']
    const sign = (text: string) => createHmac('sha256', secret).update(text).digest('base64')
    const wrong = await diJson<{ findings: object[] }>(...check, sign(body))
    expect(wrong).toMatchObject({ valid: false, findings: [{ code: 'trailing_newline' }] })
    const right = await di([...check, sign(`${body}\n`)])
    expect([right.status, right.stdout]).toEqual([0, expect.stringContaining('is right')])

    const away = { CONSOLE_URL: 'http://127.0.0.1:1' }
    const accepted = await di(['telemetry', 'check', file], away)
    expect(accepted).toMatchObject({ status: 0, stderr: '' })
    expect(accepted.stdout).toContain('did you mean root.su_binary?')
    writeFileSync(file, body.slice(0, -3))
    const refused = await di(['telemetry', 'check', file, '--json'], away)
    expect(refused).toMatchObject({ status: 1, stderr: 'The answer would be 400.\n' })
    expect(JSON.parse(refused.stdout)).toMatchObject({ status: 400, errors: [{ path: '$' }] })
  })
})
