// What each process must not be able to do in the stores of the local stack, tested with its own
// user on the real servers; and that the table of rights lists every table.

import { hash } from 'node:crypto'
import { type ClickHouseClient, createClient } from '@clickhouse/client'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type ProcessName,
  processNames,
  processPermissions,
} from '#shared/core/permissions/process-permissions.ts'
import {
  clickhousePrivileges,
  postgresPrivileges,
  toClickhouseGrants,
  toClickhouseOwnerGrants,
} from '#shared/core/permissions/table-privileges.ts'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { setWebhookEvents } from '#shared/io/deliveries/webhook-store.ts'
import { readDenied } from '#shared/io/identity/denied-installs-store.ts'
import { createPhoneCorrections } from '#shared/io/identity/phone-corrections.ts'
import { createClickhouseCheck } from '#shared/io/migrations/clickhouse-check.ts'
import { createPostgresCheck } from '#shared/io/migrations/postgres-check.ts'
import { createSchemaVersions } from '#shared/io/migrations/schema-versions.ts'
import { createPostgres, type Queryable } from '#shared/io/postgres/postgres.ts'
import { postgresProcesses, toRole, toScramVerifier } from '#shared/io/postgres/postgres-roles.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'
import {
  migrateClickhouse,
  migratePostgres,
  postgresTablesSql,
} from '../../support/servers/databases.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'

const database = 'device_intelligence'
const log = createLog('test', 'silent')
const passwordOf = (process: string) => `password-of-the-${process}`

let server: TestPostgres
let ownerUrl: string
const clients = new Map<ProcessName, pg.Client>()

beforeAll(async () => {
  server = await startPostgres()
  ownerUrl = await server.createDatabase(database)
  const rolePasswords = Object.fromEntries(
    postgresProcesses.map((process) => [process, passwordOf(process)]),
  )
  await migratePostgres(ownerUrl, { rolePasswords })
  // A second run must change nothing and not fail.
  await migratePostgres(ownerUrl, { rolePasswords })
  for (const process of postgresProcesses) {
    const url = new URL(ownerUrl)
    url.username = toRole(database, process)
    url.password = passwordOf(process)
    const client = new pg.Client({ connectionString: url.href })
    await client.connect()
    clients.set(process, client)
  }
  const owner = createPostgres(ownerUrl, { role: 'test', log })
  await insertBareTenants(owner, ['keyed', 'told'])
  await owner.query(
    `insert into api_keys (key_hash, tenant_id, state, prefix, last4, name, scopes, created_by)
     values (sha256('1'), 'keyed', 'active', 'di', 'last', 'backend', '{alerts:write}', 'admin'),
       (sha256('2'), 'told', 'active', 'di', 'last', 'crm', '{alerts:write}', 'admin')`,
  )
  await owner.close()
})

afterAll(async () => {
  for (const client of clients.values()) await client.end()
  await server?.stop()
})

const insertAlert = `insert into alerts (tenant_id, alert_id, seq, device_id, session_id, event_id,
  action, risk_score, rasp_score, reasons, policy_version, created_at)
  values ('a', 'alr_1', 1, 'd', 's', 'e', 'BLOCK', 80, 80, '[]', 1, now())`

/** Forbidden to every process: the schema, the server, other roles, the audit history. */
const forbiddenToAll = {
  'make a table': 'create table mine (n int)',
  'change a table': 'alter table alerts add column n int',
  'drop a table': 'drop table alerts',
  'empty a table': 'truncate alerts',
  'replace a trigger':
    'create or replace function note_mirror_change() returns trigger language sql as $$ select 1 $$',
  'switch a trigger off': 'alter table audit_log disable trigger audit_log_is_append_only',
  'choose when an audit entry was written': `insert into audit_log (actor, action, at)
    values ('system', 'tenant.tested', now() - interval '1 year')`,
  'choose who wrote an audit entry': `insert into audit_log (actor, action, written_by)
    values ('system', 'tenant.tested', 'x')`,
  'rewrite the audit log': `update audit_log set actor = 'nobody'`,
  'shorten the audit log': 'delete from audit_log',
  'shorten how long the audit log is kept': 'update audit_retention set days = 30',
  'make a role': 'create role mine login',
  'make itself powerful': 'alter role current_user superuser',
  'take another role': `set role ${toRole(database, 'console')}_of_others`,
  'take the owner': 'set role di',
  'read a file of the server': `select pg_read_file('/etc/passwd')`,
  'run a program': `copy (select 1) to program 'true'`,
  'make a large object': 'select lo_create(0)',
  'read password hashes': 'select * from pg_authid',
  'say what is migrated': `insert into schema_migrations (name, checksum) values ('x', 'y')`,
  'read a partition instead of its table': 'select from deliveries_default',
  'create any month of deliveries': `select create_delivery_month('2020-01-01')`,
  'ask which months are needed': `select keeps_deliveries('2020-01-01', '{}', '{}')`,
}

const secretsAndKeys = {
  'read the secrets of tenants': 'select sealed from tenant_secrets',
  'change a secret of a tenant': `update tenant_secrets set sealed = 'x'`,
  'read hashes of API keys': 'select key_hash from api_keys',
  'make an API key': `insert into api_keys (key_hash, tenant_id, state, prefix, last4)
    values ('\\x00', 'a', 'active', 'p', 'l')`,
  'give a tenant away': `update api_keys set tenant_id = 'other'`,
  'read hashes of analysts': 'select password_hash from analysts',
  'suspend a tenant': `update tenants set status = 'suspended'`,
  'make a tenant': `insert into tenants (tenant_id, environment) values ('mine', 'live')`,
  'weaken a policy': `update policy_documents set document = '{}'`,
  'read the audit log': 'select * from audit_log',
  'redirect a webhook': `update webhooks set url = 'https://elsewhere.example'`,
}

/** Acts under a name. */
const toAuditEntry = (actor: string, action = 'labels.added') =>
  `insert into audit_log (actor, tenant_id, action) values ('${actor}', 'keyed', '${action}')`
const toDisposition = (actor: string) =>
  `insert into alert_dispositions (tenant_id, alert_id, from_disposition, to_disposition, actor)
   values ('a', 'alr_1', 'OPEN', 'CONFIRMED', '${actor}')`
const toUpdate = (event: string) =>
  `insert into deliveries (tenant_id, delivery_id, alert_id, event, body)
   values ('a', 'dlv_1', 'alr_1', '${event}', '')`
const toListEntry = (actor: string) =>
  `insert into list_entries (entry_id, tenant_id, list, kind, id, reason, created_by, shard)
   values ('lst_1', 'a', 'deny', 'device', 'd', '', '${actor}', 0)`

/** Functions that run as the owner. */
const consoleOnly = {
  'remove expired audit entries': 'select remove_expired_audit_entries(1)',
  'create months of deliveries': 'select create_delivery_months()',
  'drop a month of deliveries': `select drop_expired_delivery_month('{}', '{}')`,
}

const correctedPhones = {
  'say which phone an install is on': `insert into phone_corrections
    (correction_id, tenant_id, device_id, from_phone_id, phone_id, reason, actor, at)
    values ('phc_1', 'a', 'd', 'phn_1', 'phn_2', 'x', 'system', now())`,
  'undo what an analyst says of a phone': `update phone_corrections
    set undone_by = 'system', undone_at = now()`,
  'read why and by whom a phone was corrected': 'select reason, actor from phone_corrections',
}

const alertsAndDeliveries = {
  'raise an alert': insertAlert,
  'hide an alert': `update alerts set disposition = 'FALSE_POSITIVE'`,
  'remove an alert': 'delete from alerts',
  'change a counter': 'update alert_counts_by_day set alert_count = 0',
  'make a delivery': `insert into deliveries (tenant_id, delivery_id, body) values ('a', 'd', '')`,
  'read what is delivered': 'select body from deliveries',
  'end a delivery': `update deliveries set state = 'delivered'`,
  'read what receivers answered': 'select answer from delivery_attempts',
  'change what a case counts': 'update cases set open_count = 0',
  'read notes of a case': 'select note from case_notes',
}

type Tries = Record<string, string>
const without = (tries: Tries, ...allowed: string[]): Tries =>
  Object.fromEntries(Object.entries(tries).filter(([name]) => !allowed.includes(name)))

const forbidden: Record<string, Tries> = {
  scorer: {
    ...consoleOnly,
    ...secretsAndKeys,
    ...correctedPhones,
    'read why and by whom a device was listed': 'select reason, created_by from list_entries',
    'say who judged a case': `update cases set judged_by = 'x', judged_at = now()`,
    'give a case to somebody': `update cases set assignee = 'x'`,
    'hide a case in another': 'update cases set merged_into = null',
    'raise an alert that is judged': insertAlert.replace('created_at)', 'changed_at)'),
    ...without(
      alertsAndDeliveries,
      'raise an alert',
      'make a delivery',
      'change a counter',
      'change what a case counts',
      'read what is delivered',
    ),
  },
  api: {
    ...consoleOnly,
    ...correctedPhones,
    ...without(secretsAndKeys, 'read hashes of API keys'),
    // It sets dispositions, and therefore changes counters.
    ...without(alertsAndDeliveries, 'hide an alert', 'change a counter'),
    'widen a key': `update api_keys set scopes = '{alerts:write}'`,
    'change what an alert says': `update alerts set risk_score = 0`,
    'change who judged': `update alert_dispositions set actor = 'x'`,
    'write an audit entry as the admin token': toAuditEntry('admin'),
    'write an audit entry as the service': toAuditEntry('system'),
    'write an audit entry as a key that the tenant does not have': toAuditEntry('api-key:crm'),
    'write of an act that is none of its own': toAuditEntry('api-key:backend', 'policy.published'),
    'judge as a key that the tenant does not have': toDisposition('api-key:backend'),
    'judge as an operator': toDisposition('ann@example.com'),
    'deliver an update that is none': toUpdate('alert.updated'),
    'deliver an alert as if it were raised': toUpdate('risk.alert'),
    'choose when a delivery is due': `insert into deliveries (tenant_id, delivery_id, body, due_at)
      values ('a', 'd', '', now())`,
    'read names of operators': 'select name from operators',
    'read passwords of operators': 'select password_hash from operators',
    'read where alerts are delivered': 'select url from webhooks',
    'list a device as an operator': toListEntry('ann@example.com'),
  },
  delivery: {
    ...consoleOnly,
    ...correctedPhones,
    ...without(secretsAndKeys, 'read the secrets of tenants'),
    'change what is sent': `update deliveries set body = 'x'`,
    'give a delivery away': `update deliveries set tenant_id = 'b', alert_id = 'alr_2'`,
    'write an audit entry as the admin token': toAuditEntry('admin', 'webhook.switched_off'),
    'write an audit entry as an operator': toAuditEntry('ann@example.com', 'webhook.switched_off'),
    ...without(
      alertsAndDeliveries,
      'read what is delivered',
      'end a delivery',
      'read what receivers answered',
    ),
  },
  console: {},
}

/** The SQLSTATE of the rejection, or the result. */
async function tryPostgres(process: ProcessName, sql: string): Promise<string> {
  const client = clients.get(process)!
  await client.query('begin')
  try {
    await client.query(sql)
    return 'allowed'
  } catch (error) {
    return (error as { code?: string }).code ?? String(error)
  } finally {
    await client.query('rollback')
  }
}

describe('PostgreSQL', () => {
  test.each(
    postgresProcesses.flatMap((process) =>
      Object.entries({ ...forbiddenToAll, ...forbidden[process] }).map(
        ([what, sql]) => [process, what, sql] as const,
      ),
    ),
  )('the %s cannot %s', async (process, _, sql) => {
    // insufficient_privilege; a role that does not exist cannot be set either.
    expect(['42501', '22023']).toContain(await tryPostgres(process, sql))
  })

  test.each(['scorer', 'api'] as const)('the %s reads what decides of phones', async (process) => {
    const { findCorrections } = createPhoneCorrections(clients.get(process) as never)
    expect(await findCorrections('a', ['d'], Date.now())).toEqual(new Map())
  })

  test('the scorer reads how phones are told apart, and the denied ones', async () => {
    const db = clients.get('scorer') as never
    const isDenied = await readDenied(db, [{ tenantId: 'a', deviceId: 'd' }])
    expect(isDenied({ tenantId: 'a', deviceId: 'd' }, Date.now())).toBe(false)
    expect(await tryPostgres('scorer', 'select * from identity_parameters')).toBe('allowed')
  })

  test.each([
    ['api', 'api-key:backend', 'labels.added'],
    ['delivery', 'system', 'webhook.switched_off'],
    ['console', 'ann@example.com', 'policy.tested'],
    ['console', 'admin', 'policy.tested'],
  ] as const)(
    'the %s writes audit entries as %s, and they name its role',
    async (process, actor, action) => {
      const client = clients.get(process)!
      await client.query(toAuditEntry(actor, action))
      const { rows } = await clients
        .get('console')!
        .query('select actor, written_by from audit_log order by audit_id desc limit 1')
      expect(rows).toEqual([{ actor, written_by: toRole(database, process) }])
    },
  )

  test('the api delivers its own changes, and reads them back without an email', async () => {
    const owner = createPostgres(ownerUrl, { role: 'test', log })
    const url = new URL(ownerUrl)
    url.username = toRole(database, 'api')
    url.password = passwordOf('api')
    const api = createPostgres(url.href, { role: 'api', log })
    try {
      await setWebhookEvents(owner, 'told', ['risk.alert', 'alert.updated'])
      const candidates = ['s1', 's2'].map((sessionId) =>
        makeAlertCandidate({ tenantId: 'told', sessionId }),
      )
      await createAlertStore(owner).raiseAlerts(candidates, Date.now)
      const [alertId, other] = candidates.map((candidate) => candidate.alertId) as [string, string]
      const change = { scope: ['told'], disposition: 'CONFIRMED', note: null } as const
      const store = createAlertStore(api)
      await store.setDisposition({ ...change, alertId, actor: 'api-key:crm' })
      const detail = await store.findAlertDetail({ tenantId: 'told', alertId })
      expect(detail?.details.history).toMatchObject([{ by: { kind: 'api_key', id: 'crm' } }])
      const { rows } = await owner.query<{ alert_id: string; recorded: boolean }>(
        `select alert_id, delivery_id in (select delivery_id from replication_changes) as recorded
         from deliveries where event = 'alert.updated'`,
      )
      expect(rows).toEqual([{ alert_id: alertId, recorded: true }])
      const forge = (tx: Queryable, id: string, event: string) =>
        tx.query(
          `insert into deliveries (tenant_id, delivery_id, alert_id, event, body)
           values ('told', 'dlv_forged', $1, $2, '')`,
          [id, event],
        )
      // Of an alert that it changed before, of one that it never changed, and of another kind.
      for (const id of [alertId, other]) {
        await expect(forge(api, id, 'alert.updated')).rejects.toMatchObject({ code: '42501' })
      }
      const raising = api.transaction(async (tx) => {
        await tx.query(
          `insert into alert_dispositions
             (tenant_id, alert_id, from_disposition, to_disposition, actor)
           values ('told', $1, 'OPEN', 'CONFIRMED', 'api-key:crm')`,
          [other],
        )
        await forge(tx, other, 'risk.alert')
      })
      await expect(raising).rejects.toMatchObject({ code: '42501' })
    } finally {
      await api.close()
      await owner.close()
    }
  })

  test.each(Object.entries(consoleOnly))('the console can %s', async (_, sql) => {
    expect(await tryPostgres('console', sql)).toBe('allowed')
  })

  test('the console removes expired audit entries, and no others', async () => {
    const owner = new pg.Client({ connectionString: ownerUrl })
    await owner.connect()
    const add = (daysAgo: number) =>
      owner.query(
        `insert into audit_log (at, actor, action)
         values (now() - make_interval(days => $1), $2, 'tenant.tested')`,
        [daysAgo, `${daysAgo} days ago`],
      )
    for (const daysAgo of [399, 401, 402, 900]) await add(daysAgo)
    const client = clients.get('console')!
    const remove = async (most: number) =>
      (await client.query('select remove_expired_audit_entries($1) as removed', [most])).rows[0]
    // A longer period keeps them; 0 keeps everything.
    await migratePostgres(ownerUrl, { auditRetentionDays: 0 })
    expect(await remove(10)).toEqual({ removed: 0 })
    await migratePostgres(ownerUrl, { auditRetentionDays: 400 })
    expect(await remove(2)).toEqual({ removed: 2 })
    expect(await remove(10)).toEqual({ removed: 1 })
    const { rows } = await owner.query<{ actor: string }>(
      `select actor from audit_log where action = 'tenant.tested'`,
    )
    expect(rows).toEqual([{ actor: '399 days ago' }])
    await owner.end()
  })

  test('a role cannot connect to another database of the server', async () => {
    const other = await server.createDatabase('other')
    await migratePostgres(other, { rolePasswords: { api: passwordOf('other') } })
    const url = new URL(other)
    url.username = toRole(database, 'api')
    url.password = passwordOf('api')
    const client = new pg.Client({ connectionString: url.href })
    await expect(client.connect()).rejects.toMatchObject({ code: '42501' })
  })

  test('the server stores no password, only its verifiers', async () => {
    const owner = new pg.Client({ connectionString: ownerUrl })
    await owner.connect()
    const role = toRole(database, 'api')
    const { rows } = await owner.query('select rolpassword from pg_authid where rolname = $1', [
      role,
    ])
    await owner.end()
    expect(rows).toEqual([{ rolpassword: toScramVerifier(role, passwordOf('api')) }])
  })

  test('a right that was removed from the table is revoked', async () => {
    const owner = new pg.Client({ connectionString: ownerUrl })
    await owner.connect()
    // As in a dump that was restored without privileges.
    await owner.query('grant execute on all functions in schema public to public')
    const { 'drop a month of deliveries': drop } = consoleOnly
    expect(await tryPostgres('api', drop)).toBe('allowed')
    await owner.query(`grant all on tenant_secrets to "${toRole(database, 'api')}"`)
    expect(await tryPostgres('api', 'select * from tenant_secrets')).toBe('allowed')
    await migratePostgres(ownerUrl, { rolePasswords: { api: passwordOf('api') } })
    expect(await tryPostgres('api', 'select * from tenant_secrets')).toBe('42501')
    expect(await tryPostgres('api', drop)).toBe('42501')
    await owner.end()
  })

  test('the console lists every table, so that a new one needs a decision', async () => {
    const owner = new pg.Client({ connectionString: ownerUrl })
    await owner.connect()
    const { rows } = await owner.query<{ name: string }>(postgresTablesSql)
    await owner.end()
    const tables = Object.keys(postgresPrivileges.console).filter((name) => !name.includes('('))
    expect(tables.sort()).toEqual(rows.map(({ name }) => name))
  })

  test('readiness of a process names an older schema and a read-only server', async () => {
    const url = new URL(ownerUrl)
    url.username = toRole(database, 'delivery')
    url.password = passwordOf('delivery')
    const postgres = createPostgres(url.href, { role: 'delivery', log })
    const metrics = createMetrics('delivery', { isThread: true })
    const check = createPostgresCheck(postgres, { schemas: createSchemaVersions(metrics), log })
    expect([await check.reads(), await check.writes()]).toEqual([null, null])
    const owner = new pg.Client({ connectionString: ownerUrl })
    await owner.connect()
    const { rows } = await owner.query<{ name: string }>(
      'delete from schema_migrations where name > $1 returning name',
      ['0012'],
    )
    const warn = vi.spyOn(log, 'warn')
    expect(await check.reads()).toMatch(/^has the schema/)
    expect(await check.writes()).toMatch(
      /^has the schema 0011-.+\.sql; this release needs .+: run `npm run migrate`$/,
    )
    expect(warn).toHaveBeenCalledTimes(1)
    warn.mockRestore()
    expect(await metrics.registry.metrics()).toContain('di_schema_version{store="postgres"')
    for (const { name } of rows) {
      await owner.query(`insert into schema_migrations values ($1, 'of a test')`, [name])
    }
    await owner.query(`alter database ${database} set default_transaction_read_only = on`)
    await postgres.close()
    const reopened = createPostgres(url.href, { role: 'delivery', log })
    const again = createPostgresCheck(reopened, {
      schemas: createSchemaVersions(createMetrics('x', { isThread: true })),
      log,
    })
    expect(await again.reads()).toBeNull()
    expect(await again.writes()).toMatch(
      /^has default_transaction_read_only = on: `alter role ".*_delivery" in database /,
    )
    await owner.query(`alter database ${database} reset default_transaction_read_only`)
    await owner.end()
    await reopened.close()
  })
})

describe('ClickHouse', () => {
  let engine: TestClickhouse
  const users = new Map<ProcessName, ClickHouseClient>()
  const names = processNames.filter((name) => {
    const { clickhouse } = processPermissions[name]
    return clickhouse !== null && clickhouse !== 'owner'
  })

  const ownerGrants = toClickhouseOwnerGrants(
    { database: 'owned', all: null, analytics: 'owned_analytics' },
    false,
  )
  const toUser = (name: string, grants: string[]) => ({
    name,
    passwordSha256Hex: hash('sha256', passwordOf(name), 'hex'),
    grants,
  })
  /** By a user of the engine, in the database `owned`. */
  const migrateAs = (name: string) => {
    const url = new URL(`${engine.url}/owned`)
    url.username = name
    url.password = passwordOf(name)
    return migrateClickhouse(url.href)
  }

  beforeAll(async () => {
    engine = await startClickhouse({
      users: [
        ...names.map((name) =>
          toUser(
            name,
            toClickhouseGrants(
              processPermissions[name].clickhouse as Record<string, readonly string[]>,
              { databases: [database], analytics: 'analytics' },
            ),
          ),
        ),
        toUser('owner', ownerGrants),
        ...ownerGrants.map((missing, index) =>
          toUser(
            `lacks_${index}`,
            ownerGrants.filter((grant) => grant !== missing),
          ),
        ),
      ],
    })
    await migrateClickhouse(`${engine.url}/${database}`)
    for (const name of names) {
      const { origin } = new URL(engine.url)
      users.set(
        name,
        createClient({ url: origin, username: name, password: passwordOf(name), database }),
      )
    }
  })

  afterAll(async () => {
    for (const client of users.values()) await client.close()
    await engine?.stop()
  })

  const forbiddenHere: Tries = {
    'make a table': 'create table mine (n Int32) engine = Memory',
    'change a table': 'alter table telemetry add column n Int32',
    'drop a table': 'drop table telemetry',
    'empty a table': 'truncate table telemetry',
    'make a view': 'create view mine as select 1',
    'read a file as a table': `select * from file('/etc/passwd', 'LineAsString')`,
    'write a file': `insert into function file('/tmp/x', 'CSV', 'n Int32') values (1)`,
    'call another server': `select * from url('http://127.0.0.1:1/', 'LineAsString')`,
    'call another ClickHouse': `select * from remote('127.0.0.1:1', system.one)`,
    'call object storage': `select * from s3('http://127.0.0.1:1/bucket/x', 'LineAsString')`,
    'run a program': `select * from executable('x', 'TSV', 'n Int32')`,
    'end the server': 'system shutdown',
    'drop its caches': 'system drop mark cache',
    'make a dictionary':
      'create dictionary mine (n UInt64) primary key n source(null()) layout(flat()) lifetime(0)',
    'make a function': 'create function mine as (x) -> x',
    'grant itself more': `grant all on *.* to current_user`,
    'make a row policy': 'create row policy mine on telemetry using 1 to all',
  }
  const userManagement: Tries = {
    'make a user': 'create user mine',
    'change a user': `alter user default identified by 'x'`,
    'see users': 'show users',
  }
  const ofScorer: Tries = {
    'remove events': 'alter table telemetry delete where 1',
    'change what is stored': `alter table telemetry update device_id = '' where 1`,
    'read copies of alerts': 'select * from alerts_replica',
    'read the history of devices': 'select * from devices',
    'write a history': `insert into devices (tenant_id, device_id) values ('a', 'd')`,
    'say what is migrated': `insert into schema_migrations (name) values ('x')`,
    'read the views of analysts': 'select * from analytics.reconciliation',
  }
  const ofApi: Tries = {
    'remove events': 'alter table telemetry delete where 1',
    'write an event': `insert into telemetry (tenant_id) values ('a')`,
    'write reconciliation': `insert into reconciliation_entries (tenant_id) values ('a')`,
    'read what the scorer counts': 'select * from activity',
    'say what is migrated': `insert into schema_migrations (name) values ('x')`,
  }
  const triesOf: Partial<Record<ProcessName, Tries>> = {
    scorer: { ...userManagement, ...ofScorer },
    api: { ...userManagement, ...ofApi },
  }

  test.each(
    names.flatMap((name) =>
      Object.entries({ ...forbiddenHere, ...triesOf[name] }).map(
        ([what, sql]) => [name, what, sql] as const,
      ),
    ),
  )('the %s cannot %s', async (name, _, query) => {
    // ACCESS_DENIED, before any other check.
    await expect(users.get(name)!.command({ query })).rejects.toMatchObject({ code: '497' })
  })

  const createCheck = (
    clickhouse: ClickHouseClient,
    of: 'scorer' | 'api' | 'console',
    log = createLog('test', 'silent'),
  ) =>
    createClickhouseCheck({
      clickhouse: Object.assign(clickhouse, { shards: [] }),
      database,
      privileges: clickhousePrivileges[of],
      schemas: createSchemaVersions(createMetrics(of, { isThread: true })),
      log,
    })

  test.each(['scorer', 'api', 'console'] as const)('the %s finds all that it needs', async (of) => {
    expect(await createCheck(users.get(of)!, of)()).toBeNull()
  })

  test('readiness names each right that is missing, and logs them once', async () => {
    const log = createLog('test', 'silent')
    const warn = vi.spyOn(log, 'warn')
    // Another process's user is one whose rights do not suffice.
    const check = createCheck(users.get('scorer')!, 'console', log)
    await check()
    expect(await check()).toBe(
      'does not grant this user: ' +
        'SELECT, INSERT, ALTER DELETE, ALTER UPDATE, OPTIMIZE, SYSTEM CLEANUP ON ' +
        '`device_intelligence`.*; ' +
        'SELECT ON `analytics`.*; SELECT ON `system`.*; ' +
        'CREATE USER, ALTER USER, DROP USER, ROLE ADMIN, SHOW ACCESS ON *.*',
    )
    expect(warn).toHaveBeenCalledTimes(1)
  })

  test.each(
    ownerGrants.map((grant, index) => [grant.replace('GRANT ', ''), `lacks_${index}`] as const),
  )('a migration without %s is refused before it changes anything', async (missing, name) => {
    await expect(migrateAs(name)).rejects.toThrow(`does not grant its user ${missing}. Nothing`)
    const { origin, username, password } = new URL(engine.url)
    const owner = createClient({ url: origin, username, password })
    const result = await owner.query({
      query: `select name from system.databases where name like 'owned%'`,
      format: 'JSONEachRow',
    })
    expect(await result.json()).toEqual([])
    await owner.close()
  })

  test('a migration needs no other grants than those of its list', async () => {
    await migrateAs('owner')
    await migrateAs('owner')
  })

  test.each([
    `alter table telemetry drop partition id '202001'`,
    `alter table sessions delete where tenant_id = 'a' settings mutations_sync = 1`,
    `alter table reconciliation_entries update alert_id = '' where tenant_id = 'a'`,
    'select count() from system.parts',
    'select count() from system.mutations',
    'select count() from analytics.reconciliation',
  ])('the console can do its maintenance: %s', async (query) => {
    await users
      .get('console')!
      .command({ query })
      .catch((error: { code?: string }) => {
        // It may have other errors, but is not denied.
        expect(error.code).not.toBe('497')
      })
  })
})
