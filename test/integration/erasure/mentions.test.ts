// What an erasure leaves of an id. It stands in a text about others in every text column of every
// table, as the servers list them; after the erasure all of them are searched again, and the receipt
// must name what is found.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { deadLetterSubject } from '#shared/core/telemetry/nats-names.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import type { ErasureReceipt } from '#shared/io/erasure/erasure-job-store.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { eraseNow } from '../../support/telemetry/erase-now.ts'
import { createScorerRig, type ScorerRig } from '../../support/telemetry/scorer-rig.ts'

const tenantId = 'mentioned'
const id = 'phone-Mk7"canary'
/** In the texts of others. */
const marker = 'Mk7'
const text = `seen beside ${id} in June`
const atMs = Date.now() - 60_000

let rig: ScorerRig
beforeAll(async () => {
  rig = await createScorerRig()
  await rig.addTenant(tenantId)
  await rig.addTenant('denies')
  await rig.addTenant('other')
})
afterAll(() => rig?.close())

const places = ({ kept_mentions: { others } }: ErasureReceipt) =>
  others.map(({ place, rows }) => withoutMerges(`${place} ${rows}`)).sort()
/** Merges of ClickHouse make one row of several at any time. */
const withoutMerges = (place: string) => place.replace(/^(clickhouse\..*) [1-9]\d*$/, '$1')

type Column = { table: string; name: string; type: string }

async function listPostgres(): Promise<Column[]> {
  const { rows } = await rig.postgres.query<Column>(
    `select c.relname as table, a.attname as name, format_type(a.atttypid, null) as type
     from pg_attribute as a join pg_class as c on c.oid = a.attrelid
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
       and not c.relispartition and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
       and a.attidentity = ''
     order by c.relname, a.attnum`,
  )
  return rows
}

const isHash = ({ name, type }: Column) => type === 'bytea' && /(hash|sha256)$/.test(name)

const written: Record<string, string> = {
  text: `$1::text`,
  'text[]': `array[$1::text]`,
  json: `json_build_object('told', $1::text)`,
  jsonb: `jsonb_build_object('told', $1::text)`,
  bytea: `convert_to(json_build_object('told', $1::text)::text, 'UTF8')`,
  'timestamp with time zone': `'${new Date(atMs).toISOString()}'::timestamptz`,
  date: 'current_date',
  uuid: 'gen_random_uuid()',
  xid8: 'pg_current_xact_id()',
  boolean: 'false',
  integer: '1',
  bigint: '1',
  smallint: '1',
  numeric: '1',
  real: '1',
  'double precision': '1',
}

/** Writes a row with the text into every table, whatever checks say of such a row. */
async function markPostgres(columns: readonly Column[]): Promise<void> {
  await rig.postgres.withSession(async (session) => {
    await session.query(`set session_replication_role = replica`)
    const { rows: checks } = await session.query<{ sql: string }>(
      `select format('alter table %s drop constraint %I', conrelid::regclass, conname) as sql
       from pg_constraint as k join pg_class as c on c.oid = k.conrelid
       where contype = 'c' and connamespace = 'public'::regnamespace and conislocal`,
    )
    for (const { sql } of checks) await session.query(sql)
    for (const [table, all] of Map.groupBy(columns, (column) => column.table)) {
      const own = all.filter(({ name, type }) => name === 'tenant_id' || type in written)
      const values = own.map(({ name, type }) =>
        name === 'tenant_id' ? `'${tenantId}'` : written[type]!,
      )
      const names = own.map(({ name }) => `"${name}"`)
      const sets = own.flatMap(({ name, type }, at) =>
        name !== 'tenant_id' && type.startsWith('text') ? [`"${name}" = ${values[at]}`] : [],
      )
      const texts = values.some((value) => value.includes('$1')) ? [text] : []
      const { rowCount } = await session.query(
        `insert into "${table}" (${names}) values (${values}) on conflict do nothing`,
        texts,
      )
      // A row that each tenant has, or the only one of a table.
      if (rowCount === 0 && sets.length > 0) {
        const where = names.includes('"tenant_id"') ? `where tenant_id = '${tenantId}'` : ''
        await session.query(`update "${table}" set ${sets} ${where}`, [text])
      }
    }
    await session.query('set session_replication_role = default')
  })
}

/** @returns every column that has the marker, and in how many rows */
async function searchPostgres(columns: readonly Column[]): Promise<string[]> {
  const found: string[] = []
  for (const { table, name, type } of columns.filter((column) => !isHash(column))) {
    const as = type === 'bytea' ? `encode("${name}", 'escape')` : `"${name}"::text`
    const { rows } = await rig.postgres.query<{ n: number }>(
      `select count(*) as n from "${table}" where strpos(${as}, $1) > 0`,
      [marker],
    )
    if (rows[0]!.n > 0) found.push(`postgres.${table}.${name} ${rows[0]!.n}`)
  }
  return found
}

async function readClickhouse<Row>(query: string): Promise<Row[]> {
  const result = await rig.clickhouse.query({
    query,
    format: 'JSONEachRow',
    clickhouse_settings: { output_format_json_escape_forward_slashes: 0 },
  })
  return result.json<Row>()
}

const listClickhouse = () =>
  readClickhouse<Column & { default_kind: string }>(
    `select table, name, type, default_kind from system.columns
     where database = currentDatabase() and table in (
       select name from system.tables
       where database = currentDatabase() and engine like '%MergeTree')
     order by table, position`,
  )

/** A value of a type of ClickHouse with the text in it, as JSON; undefined where none has room. */
function toValue(type: string): unknown {
  const [, name, inner] = /^(\w+)(?:\((.*)\))?$/s.exec(type) ?? []
  switch (name) {
    case 'String':
      return text
    case 'LowCardinality':
    case 'Nullable':
      return toValue(inner!)
    case 'SimpleAggregateFunction':
      return toValue(inner!.slice(inner!.indexOf(',') + 2))
    case 'Array':
      return [toValue(inner!)]
    case 'JSON':
      return { told: { by: text } }
    case 'Tuple': {
      const parts = inner!.split(/, (?![^(]*\))/).map((part) => part.split(/ (.*)/s))
      return Object.fromEntries(parts.map(([member, of]) => [member, toValue(of!)]))
    }
    case 'DateTime64':
    case 'DateTime':
      return Math.floor(atMs / 1_000)
    default:
      return undefined
  }
}

async function markClickhouse(columns: readonly (Column & { default_kind: string })[]) {
  for (const [table, all] of Map.groupBy(columns, (column) => column.table)) {
    const own = all.filter(({ default_kind: kind }) => kind === '' || kind === 'DEFAULT')
    const row = Object.fromEntries(
      own.map(({ name, type }) => [
        name,
        name === 'body' ? JSON.stringify({ text }) : toValue(type),
      ]),
    )
    await rig.clickhouse.insert({
      table,
      values: [
        own.some(({ name }) => name === 'tenant_id') ? { ...row, tenant_id: tenantId } : row,
      ],
      format: 'JSONEachRow',
      clickhouse_settings: {
        input_format_skip_unknown_fields: 1,
        input_format_json_defaults_for_missing_elements_in_named_tuple: 1,
        materialized_views_ignore_errors: 1,
      },
    })
  }
}

async function searchClickhouse(columns: readonly Column[]): Promise<string[]> {
  const found: string[] = []
  for (const { table, name, type } of columns) {
    if (type.startsWith('AggregateFunction')) continue
    const [row] = await readClickhouse<{ n: string }>(
      `select count() as n from \`${table}\` where position(toJSONString(\`${name}\`), '${marker}') > 0`,
    )
    if (Number(row!.n) > 0) found.push(`clickhouse.${table}.${name} ${row!.n}`)
  }
  return found
}

/** A table of none: operators, keys of the service and the state of jobs. */
const ofNoTenant = [
  'key_form',
  'leases',
  'operator_invitations',
  'operator_recovery_codes',
  'operator_sessions',
  'operators',
  'replication_changes',
  'replication_state',
  'schema_migrations',
  'stream_incarnations',
  'verdict_keys',
]
const tableOf = (place: string) => place.split(/[. ]/)[1]!

describe('the evidence of others', () => {
  it('names an erased device no more: alerts, webhooks, decisions and copies', async () => {
    const tenantId = 'denies'
    const banned = 'banned-Zk4"canary'
    const evidence = { phone_id: 'phn_1', confidence: 0.995, device_id: banned }
    const reason = { code: 'DENY_LISTED_PHONE', weight: 50, evidence }
    const reasons = [
      { code: 'ROOTED', weight: 5, evidence: { signals: ['root.su_binary'] } },
      reason,
    ]
    await raiseAlerts(rig.postgres, [
      makeAlertCandidate({ tenantId, sessionId: 's1', deviceId: 'evader', reasons }),
      // The same id is another device there.
      makeAlertCandidate({ tenantId: 'other', sessionId: 's1', deviceId: 'evader', reasons }),
    ])
    const copy = {
      device_id: 'evader',
      reason_codes: reasons.map(({ code }) => code),
      reason_evidence: reasons.map((one) => JSON.stringify(one.evidence)),
    }
    const decision = {
      device_id: 'evader',
      flags: copy.reason_codes,
      reasons: JSON.stringify(reasons),
    }
    const ofBoth = (row: object) =>
      [tenantId, 'other'].map((tenant) => ({ tenant_id: tenant, ...row }))
    await rig.clickhouse.insert({
      table: 'alerts_replica',
      values: ofBoth(copy),
      format: 'JSONEachRow',
    })
    await rig.clickhouse.insert({
      table: 'decisions',
      values: ofBoth(decision),
      format: 'JSONEachRow',
    })
    const search = async () => {
      const { rows } = await rig.postgres.query<{ found: string }>(
        `select tenant_id || ' alerts' as found from alerts where strpos(reasons::text, 'Zk4') > 0
         union all select tenant_id || ' deliveries' from deliveries
           where strpos(convert_from(body, 'UTF8'), 'Zk4') > 0 order by 1`,
      )
      const copies = await readClickhouse<{ found: string }>(
        `select concat(tenant_id, ' copies') as found from alerts_replica
           where position(toString(reason_evidence), 'Zk4') > 0
         union all select concat(tenant_id, ' decisions') from decisions
           where position(reasons, 'Zk4') > 0`,
      )
      return [...rows, ...copies].map(({ found }) => found).sort()
    }
    const ofOther = ['other alerts', 'other copies', 'other decisions', 'other deliveries']
    const all = [...ofOther.map((found) => found.replace('other', tenantId)), ...ofOther].sort()
    expect(await search()).toEqual(all)

    const receipt = await eraseNow(rig, { tenantId, kind: 'device', id: banned })

    expect(await search()).toEqual(ofOther)
    expect(receipt.kept_mentions).toEqual({ events: 0, others: [] })
    const { rows } = await rig.postgres.query<{ reasons: unknown; body: string }>(
      `select reasons, convert_from(body, 'UTF8') as body
       from alerts join deliveries using (tenant_id, alert_id) where tenant_id = $1`,
      [tenantId],
    )
    const left = [reasons[0], { ...reason, evidence: { phone_id: 'phn_1', confidence: 0.995 } }]
    expect(rows).toHaveLength(1)
    expect(rows[0]!.reasons).toEqual(left)
    expect(JSON.parse(rows[0]!.body)).toMatchObject({
      reasons: left,
      entity: { device: { device_id: 'evader' } },
    })
    const [stored] = await readClickhouse<{ reasons: string; reason_evidence: string[] }>(
      `select reasons, reason_evidence from decisions join alerts_replica using (tenant_id)
       where tenant_id = '${tenantId}'`,
    )
    expect(JSON.parse(stored!.reasons)).toEqual(left)
    expect(stored!.reason_evidence.map((one) => JSON.parse(one))).toEqual(
      left.map((one) => one!.evidence),
    )
  })
})

describe('an id in texts about others', () => {
  it('stays where the receipt says so, in every text column of every store', async () => {
    const postgres = await listPostgres()
    const clickhouse = await listClickhouse()
    await markPostgres(postgres)
    await markClickhouse(clickhouse)
    const letter = { tenant_id: tenantId, body: { device_id: 'another', near: id } }
    await rig.nats.jetstream.publish(deadLetterSubject, JSON.stringify(letter))
    await rig.nats.jetstream.publish(
      deadLetterSubject,
      `{"note":${JSON.stringify(id)},"t":"nobody"}`,
    )
    const hidden = JSON.stringify({ ...letter, body: { device_id: id } }).replace(
      'Mk7',
      '\\u004dk7',
    )
    // Cut off: it cannot be read, so it is about whom it names.
    await rig.nats.jetstream.publish(deadLetterSubject, hidden.slice(0, -1))
    const texts = postgres.filter(({ type }) => written[type]?.includes('$1'))
    const marked = await searchPostgres(postgres)
    // Every column that can hold a text does.
    expect(marked.map((place) => place.replace(/^postgres\.| \d+$/g, '')).sort()).toEqual(
      texts
        .filter((column) => column.name !== 'tenant_id' && !isHash(column))
        .map(({ table, name }) => `${table}.${name}`)
        .sort(),
    )

    const receipt = await eraseNow(rig, { tenantId, kind: 'device', id })

    const inPostgres = await searchPostgres(postgres)
    const none = inPostgres.filter((place) => ofNoTenant.includes(tableOf(place)))
    expect([...new Set(none.map(tableOf))]).toEqual(ofNoTenant)
    const inClickhouse = await searchClickhouse(clickhouse)
    const found = [
      ...inPostgres.filter((place) => !none.includes(place)),
      ...inClickhouse
        .map(withoutMerges)
        .filter((place) => place !== 'clickhouse.telemetry.body' && !/\.schema_/.test(place)),
      'streams.DEAD_LETTERS 1',
    ].sort()
    expect(places(receipt)).toEqual(found)
    expect(receipt.kept_mentions.events).toBe(1)
    expect(receipt.counts['streams.DEAD_LETTERS']).toEqual({ before: 1, after: 0 })
  })
})
