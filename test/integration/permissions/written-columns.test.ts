// What the scorer, the api and delivery may write in PostgreSQL, beside what their SQL writes. Each
// does its whole work here with its own role; the statements that reach the server are read, and
// their columns must be those of its grants, not one fewer and not one more.
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { auditedActions } from '#shared/core/audit/audited-actions.ts'
import { postgresPrivileges } from '#shared/core/permissions/table-privileges.ts'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { claimDeliveries } from '#shared/io/deliveries/claim-deliveries.ts'
import { recordOutcomes, switchFailingOff } from '#shared/io/deliveries/record-outcomes.ts'
import { extendSecretLease } from '#shared/io/deliveries/webhook-secret-lease.ts'
import { setWebhookEvents } from '#shared/io/deliveries/webhook-store.ts'
import { answerOnce } from '#shared/io/http/idempotent-answers.ts'
import { addListEntry, dropListEntry } from '#shared/io/lists/change-lists.ts'
import { addLabels } from '#shared/io/outcomes/change-labels.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { toRole } from '#shared/io/postgres/postgres-roles.ts'
import { createLog } from '#shared/io/process/log.ts'
import { addIncarnation } from '#shared/io/telemetry/stream-incarnations.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { createDeliveryFixtures } from '../../support/deliveries/delivery-fixtures.ts'
import { migratePostgres } from '../../support/servers/databases.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'

const processes = ['scorer', 'api', 'delivery'] as const
type Process = (typeof processes)[number]

const database = 'device_intelligence'
const log = createLog('test', 'silent')
const keyHash = randomBytes(32)
const actor = 'api-key:crm'
let tenantId: string

let server: TestPostgres
let owner: Postgres
const roles = new Map<Process, Postgres>()
const of = (process: Process) => roles.get(process)!
const statements = new Map<string, Set<string>>()

beforeAll(async () => {
  server = await startPostgres()
  const url = new URL(await server.createDatabase(database))
  const rolePasswords = Object.fromEntries(processes.map((process) => [process, `of-${process}`]))
  await migratePostgres(url.href, { rolePasswords })
  owner = createPostgres(url.href, { role: 'test', log })
  readStatements()
  for (const process of processes) {
    url.username = toRole(database, process)
    url.password = `of-${process}`
    roles.set(process, createPostgres(url.href, { role: process, log }))
  }
  const fixtures = createDeliveryFixtures(owner)
  tenantId = (await fixtures.addTenant({ url: 'https://receiver.example/' })).tenantId
  await owner.query(
    `insert into tenant_secrets (tenant_id, kind, state, sealed, last4)
     values ($1, 'hmac', 'active', 'sealed', 'last')`,
    [tenantId],
  )
  await owner.query(
    `insert into api_keys (key_hash, tenant_id, state, prefix, last4, name, scopes, created_by)
     values ($1, $2, 'active', 'di', 'last', 'crm', '{alerts:write}', 'admin')`,
    [keyHash, tenantId],
  )
  await setWebhookEvents(owner, tenantId, ['risk.alert', 'alert.updated'])
})
afterAll(async () => {
  vi.restoreAllMocks()
  for (const postgres of [owner, ...roles.values()]) await postgres?.close()
  await server?.stop()
})

/** Keeps the text of every statement by the user that sends it. */
function readStatements(): void {
  const { query } = pg.Client.prototype
  vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (
    this: pg.Client,
    ...args: unknown[]
  ) {
    const [first] = args as [string | { text?: string }]
    const text = typeof first === 'string' ? first : (first.text ?? '')
    const known = statements.get(this.user ?? '') ?? new Set()
    statements.set(this.user ?? '', known.add(text))
    return Reflect.apply(query, this, args)
  } as never)
}

/** Splits at commas that are in no parentheses. */
function split(text: string): string[] {
  let depth = 0
  let part = ''
  const parts: string[] = []
  for (const sign of text) {
    if (sign === '(' || sign === '[') depth++
    if (sign === ')' || sign === ']') depth--
    if (depth < 0) break
    if (sign === ',' && depth === 0) {
      parts.push(part)
      part = ''
    } else part += sign
  }
  return [...parts, part].map((one) => one.trim())
}

/** `table verb column` of every column that a statement fills or changes. */
function findWrites(text: string): string[] {
  const found: string[] = []
  const sets = (table: string, rest: string) => {
    const end = /\b(from|where|returning)\b(?![^(]*\))/
    for (const one of split(rest)) {
      const name = /^(\w+)\s*=/.exec(one)?.[1]
      if (name === undefined) break
      found.push(`${table} update ${name}`)
      if (end.test(one.replace(/\([^()]*\)/g, ''))) break
    }
  }
  for (const { 1: table, 2: columns, index } of text.matchAll(
    /insert into (\w+)(?: as \w+)?\s*\(([^)]*)\)/g,
  )) {
    found.push(...split(columns!).map((column) => `${table} insert ${column}`))
    const rest = text.slice(index + 1).split(/\binsert into\b/)[0]!
    const conflict = /on conflict[^)]*\)\s*do update\s+set\s([\s\S]*)/.exec(rest)
    if (conflict !== null) sets(table!, conflict[1]!)
  }
  for (const { 1: table, index, 0: head } of text.matchAll(
    /(?<!do )(?<!for )(?<!no key )\bupdate (\w+)(?: as \w+)?\s+set\s/g,
  )) {
    sets(table!, text.slice(index + head.length))
  }
  for (const { 1: table } of text.matchAll(/delete from (\w+)/g)) found.push(`${table} delete`)
  return found
}

const writesOf = (process: Process): string[] =>
  [...new Set([...(statements.get(toRole(database, process)) ?? [])].flatMap(findWrites))].sort()

/** The same of its grants. */
function grantsOf(process: Process): string[] {
  const found = Object.entries(postgresPrivileges[process]).flatMap(([table, privileges]) =>
    privileges.flatMap((privilege) => {
      const [, verb, columns] = /^(\w+)(?:\((.*)\))?$/.exec(privilege)!
      if (verb === 'select') return []
      return (columns?.split(', ') ?? ['']).map((column) => `${table} ${verb} ${column}`.trim())
    }),
  )
  return found.sort()
}

/** Written by a trigger of `deliveries`, with the rights of who changes one. */
const ofTrigger = ['replication_changes insert delivery_id']
/** What the api may change to lock a row, and never does. */
const toLock = ['alert_sequences update case_seq']

test('the scorer writes the columns that it may, and may write no other', async () => {
  const store = createAlertStore(of('scorer'))
  const raise = (sessionId: string) =>
    store.raiseAlerts([makeAlertCandidate({ tenantId, sessionId })], Date.now)
  await owner.query('delete from alert_sequences where tenant_id = $1', [tenantId])
  await raise('s1')
  await raise('s2')
  const incarnation = { number: 9, createdMs: 1_000, firstSequence: 1, baseMs: 2_000 }
  await addIncarnation(of('scorer'), { stream: 'TELEMETRY', number: 9 }, incarnation)
  expect([...writesOf('scorer'), ...ofTrigger].sort()).toEqual(grantsOf('scorer'))
})

test('the api writes the columns that it may, and may write no other', async () => {
  const api = of('api')
  const { rows } = await owner.query<{ alert_id: string }>('select alert_id from alerts')
  const [first, second] = rows.map(({ alert_id: alertId }) => alertId) as [string, string]
  const change = { scope: [tenantId], actor, note: null, keyHash } as const
  const store = createAlertStore(api)
  expect(
    await store.setDisposition({ ...change, alertId: first, disposition: 'CONFIRMED' }),
  ).not.toBeNull()
  await store.setListedDispositions({
    tenantId,
    actor,
    keyHash,
    note: null,
    disposition: 'REVIEWED',
    alertIds: [second],
  })
  const by = { tenantId, actor, keyHash, nowMs: Date.now() }
  const call = { tenantId, actor, key: 'key-1', requestSha256: randomBytes(32) }
  const added = await answerOnce(api, call, (tx) =>
    addListEntry(tx, { ...by, entry: { list: 'deny', kind: 'device', id: 'd', reason: 'fraud' } }),
  )
  const network = { list: 'deny', kind: 'network', id: '93.184.216.0/24', reason: 'x' } as const
  await addListEntry(api, { ...by, entry: network })
  await dropListEntry(api, { ...by, entryId: added.answer.entry_id })
  await addLabels(api, { ...by, body: { label: 'chargeback', subject: { device_id: 'd' } } })
  await createTenantStore(api).recordApiKeyUse(keyHash, Date.now())
  expect([...writesOf('api'), ...ofTrigger, ...toLock].sort()).toEqual(grantsOf('api'))
})

test('delivery writes the columns that it may, and may write no other', async () => {
  const delivery = of('delivery')
  const [claimed] = await claimDeliveries(delivery, {
    queues: [{ tenantId, retry: false, limit: 1 }],
    claim: 'c1',
    claimMs: 60_000,
    takeOver: true,
  })
  const nowMs = performance.now()
  const url = 'https://receiver.example/'
  const { health } = await recordOutcomes(
    delivery,
    [
      {
        ...claimed!,
        claim: 'c1',
        attempt: {
          attempt: 1,
          atMs: nowMs,
          durationMs: 1,
          status: 500,
          errorKind: 'status',
          error: null,
          address: null,
          answer: null,
        },
        next: { state: 'pending', dueAtMs: nowMs },
        health: { url, ok: false, failure: 'status 500', probe: false, openCircuit: true },
      },
    ],
    nowMs,
  )
  expect(await switchFailingOff(delivery, health[0]!)).toBe(true)
  await extendSecretLease(delivery, 60_000)
  expect([...writesOf('delivery'), ...ofTrigger].sort()).toEqual(grantsOf('delivery'))
})

const tryAs = async (process: Process, text: string): Promise<string> => {
  try {
    await of(process).transaction(async (tx) => {
      await tx.query(text)
      throw new Error('allowed')
    })
  } catch (error) {
    return (error as { code?: string }).code ?? (error as Error).message
  }
  return 'none'
}

test('delivery reads webhook secrets and no others', async () => {
  const { rows } = await of('delivery').query('select distinct kind from tenant_secrets')
  expect(rows).toEqual([{ kind: 'webhook' }])
})

test('the api acts as the keys that a tenant has, and records its own acts alone', async () => {
  const toEntry = (name: string, of = tenantId, action = 'labels.added') =>
    `insert into audit_log (actor, tenant_id, action) values ('${name}', '${of}', '${action}')`
  expect(await tryAs('api', toEntry(actor))).toBe('allowed')
  expect(await tryAs('api', toEntry('api-key:another'))).toBe('42501')
  expect(await tryAs('api', toEntry(actor, 'another'))).toBe('42501')
  const allowed: string[] = []
  for (const action of auditedActions) {
    if ((await tryAs('api', toEntry(actor, tenantId, action))) === 'allowed') allowed.push(action)
    expect(await tryAs('delivery', toEntry('system', tenantId, action))).toBe(
      action === 'webhook.switched_off' ? 'allowed' : '42501',
    )
  }
  const written = await owner.query<{ action: string }>(
    `select distinct action from audit_log where actor = $1 order by action`,
    [actor],
  )
  expect(allowed).toEqual(written.rows.map(({ action }) => action))
  await owner.query(`update api_keys set state = 'retired', retired_at = now()`)
  expect(await tryAs('api', toEntry(actor))).toBe('42501')
})

test.each(processes)('the %s makes no large object', async (process) => {
  for (const call of [`lo_create(0)`, `lo_from_bytea(0, '')`, `lo_creat(-1)`]) {
    expect(await tryAs(process, `select ${call}`)).toBe('42501')
  }
})
