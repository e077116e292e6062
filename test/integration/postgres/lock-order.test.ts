// Writers of alerts, counters and deliveries on a real PostgreSQL: each takes its locks in one
// order that its statements state, so that they wait for one another without deadlocks.
import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { toDeliveryId } from '#shared/core/base/ids.ts'
import { dayMs } from '#shared/core/base/instants.ts'
import { setAssignee } from '#shared/io/alerts/alert-work-store.ts'
import { stepBulkJob } from '#shared/io/alerts/bulk/bulk-job-steps.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { setDisposition } from '#shared/io/alerts/set-disposition.ts'
import { createDeliveryStore } from '#shared/io/deliveries/delivery-store.ts'
import type { DeliveryOutcome } from '#shared/io/deliveries/record-outcomes.ts'
import { beginReplay, replayNext } from '#shared/io/deliveries/replay-deliveries.ts'
import { eraseAlerts } from '#shared/io/erasure/erasure-alerts-store.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { removeAlerts } from '#shared/io/retention/retention-store.ts'
import {
  type DeliveryDeps,
  replayDeliveries,
} from '../../../services/console/deliveries/manage-deliveries.ts'
import { changeOperator } from '../../../services/console/operators/change-operator.ts'
import type { OperatorParts } from '../../../services/console/operators/operator-deps.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { until } from '../../support/process/until.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'

let server: TestPostgres
let url: string
let postgres: Postgres

beforeAll(async () => {
  server = await startPostgres()
  url = await server.createMigratedDatabase()
  const log = createLog('test', 'silent')
  postgres = createPostgres(url, { role: 'test', log, connectionsMax: 12 })
})

afterAll(async () => {
  await postgres?.close()
  await server?.stop()
})

/** A tenant with alerts of the sessions s0, s1, ... */
async function addTenant(alerts: number): Promise<{ tenantId: string; alertIds: string[] }> {
  const tenantId = `t-${randomUUID().slice(0, 8)}`
  await insertBareTenants(postgres, [tenantId])
  const candidates = Array.from({ length: alerts }, (_, index) =>
    makeAlertCandidate({ tenantId, sessionId: `s${index}` }),
  )
  await raiseAlerts(postgres, candidates, Date.now)
  return { tenantId, alertIds: candidates.map((candidate) => candidate.alertId) }
}

const deadlocks = async (): Promise<number> => {
  const { rows } = await postgres.query<{ n: number }>(
    `select deadlocks as n from pg_stat_database where datname = current_database()`,
  )
  return rows[0]!.n
}

/** Sessions that wait for a lock. */
const waiting = async (): Promise<number> => {
  const { rows } = await postgres.query(
    `select 1 from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return rows.length
}
const isWaiting = async (): Promise<boolean> => (await waiting()) > 0

type Work = (tenantId: string, alertIds: string[]) => Promise<unknown>

const writersOfCounters: Record<string, Work> = {
  raising: (tenantId) =>
    raiseAlerts(postgres, [makeAlertCandidate({ tenantId, sessionId: randomUUID() })], Date.now),
  disposition: (_, [alertId]) =>
    setDisposition(postgres, {
      alertId: alertId!,
      disposition: 'CONFIRMED',
      note: null,
      actor: 'ada',
    }),
  'a bulk change': async (tenantId, alertIds) => {
    const jobId = `blk_${randomUUID()}`
    await postgres.query(
      `insert into bulk_jobs (job_id, tenant_id, sets, alert_ids, disposition, actor, total)
       values ($1, $2, 'disposition', $3, 'CONFIRMED', 'admin', 3)`,
      [jobId, tenantId, alertIds],
    )
    await stepBulkJob(postgres, jobId)
  },
  assigning: (_, [alertId]) =>
    setAssignee(postgres, { alertId: alertId!, assignee: 'ada', scope: 'all', actor: 'ada' }),
  retention: (tenantId) =>
    removeAlerts(postgres, { tenantId, cutoffMs: Date.now() + dayMs }, 1_000),
  erasure: (tenantId) =>
    eraseAlerts(postgres, {
      subject: { tenantId, kind: 'device', id: 'device-1' },
      eventIds: [],
      sessionIds: [],
    }),
}

describe('the counters of a tenant', () => {
  test.each(Object.entries(writersOfCounters))(
    'are written by %s only under the lock of its sequence, taken before any row',
    async (_, work) => {
      const { tenantId, alertIds } = await addTenant(3)
      await postgres.query(
        `update deliveries set state = 'delivered', ended_at = now() where tenant_id = $1`,
        [tenantId],
      )
      let done: Promise<unknown> = Promise.resolve()
      await postgres.transaction(async (tx) => {
        await tx.query('select 1 from alert_sequences where tenant_id = $1 for update', [tenantId])
        let ended = false
        done = work(tenantId, alertIds).finally(() => {
          ended = true
        })
        done.catch(() => undefined)
        await until('it waits', async () => ended || isWaiting())
        expect(ended).toBe(false)
        // While it waits it has no lock that another writer needs.
        for (const table of [
          'alerts',
          'alert_counts_by_day',
          'alert_counts_by_hour',
          'deliveries',
        ]) {
          await tx.query(`select 1 from ${table} where tenant_id = $1 for update nowait`, [
            tenantId,
          ])
        }
      })
      await done
    },
  )

  test('are written concurrently without a deadlock', async () => {
    const before = await deadlocks()
    const { tenantId, alertIds } = await addTenant(60)
    const works = Array.from({ length: 8 }, async (_, writer) => {
      for (let turn = 0; turn < 30; turn++) {
        const id = alertIds[(turn * 7 + writer) % alertIds.length]!
        const dispositions = ['CONFIRMED', 'REVIEWED', 'OPEN', 'FALSE_POSITIVE'] as const
        const disposition = dispositions[(turn + writer) % 4]!
        await setDisposition(postgres, { alertId: id, disposition, note: null, actor: 'ada' })
        if (writer % 2 === 0) await writersOfCounters.raising!(tenantId, [])
      }
    })
    await Promise.all(works)
    expect(await deadlocks()).toBe(before)
  })
})

describe('deliveries', () => {
  const claim = 'claim-1'
  /** In random order. */
  const toOutcomes = async (tenantId: string): Promise<DeliveryOutcome[]> => {
    const { rows } = await postgres.query<{ id: string; alert: string; created_at: string }>(
      `select delivery_id as id, alert_id as alert, created_at::text from deliveries
       where tenant_id = $1 order by alert_id desc`,
      [tenantId],
    )
    return rows.map(({ id: deliveryId, alert: alertId, created_at: createdAt }) => ({
      tenantId,
      deliveryId,
      createdAt,
      alertId,
      claim,
      next: { state: 'delivered' },
      attempt: null,
    }))
  }

  type DeliveryWork = { claimed: boolean; work: Work }
  const writers: Record<string, DeliveryWork> = {
    outcomes: {
      claimed: true,
      work: async (tenantId) =>
        createDeliveryStore(postgres).recordOutcomes(await toOutcomes(tenantId), Date.now()),
    },
    replay: {
      claimed: false,
      work: async (tenantId) =>
        postgres.transaction(async (tx) =>
          replayNext(tx, {
            tenantId,
            scope: { sinceMs: null, onlyFailed: false },
            progress: await beginReplay(tx),
          }),
        ),
    },
    erasure: { claimed: false, work: writersOfCounters.erasure! },
    retention: { claimed: false, work: writersOfCounters.retention! },
  }

  test.each(Object.entries(writers))(
    'are locked by %s in the order of their ids',
    async (name, { claimed, work }) => {
      const { tenantId, alertIds } = await addTenant(40)
      const ids = alertIds.map(toDeliveryId).sort()
      const scramble = [...ids].sort((a, b) => (a.slice(-4) < b.slice(-4) ? -1 : 1))
      // New versions in random order, so that the order on disk does not help.
      for (const id of scramble) {
        await postgres.query(
          `update deliveries set claimed_by = $2, state = $3, ended_at = $4,
             created_at = created_at + random() * interval '1 minute' - interval '1 hour'
           where delivery_id = $1`,
          [
            id,
            claimed ? claim : null,
            ...(name === 'retention' ? ['failed', 'now'] : ['pending', null]),
          ],
        )
      }
      const middle = ids[20]!
      let done: Promise<unknown> = Promise.resolve()
      await postgres.transaction(async (tx) => {
        await tx.query('select 1 from deliveries where delivery_id = $1 for update', [middle])
        done = work(tenantId, alertIds)
        done.catch(() => undefined)
        await until('it waits', isWaiting)
        const free = await tx.query<{ delivery_id: string }>(
          `select delivery_id from deliveries where tenant_id = $1 for update skip locked`,
          [tenantId],
        )
        const locked = ids.filter((id) => !free.rows.some((row) => row.delivery_id === id))
        expect(locked).toEqual(ids.slice(0, 20))
      })
      await done
    },
  )

  const webhookUrl = 'https://receiver.example/hook'
  const toDeps = (of: Postgres): DeliveryDeps => ({
    postgres: of,
    log: createLog('test', 'silent'),
    randomBytes,
    wallMs: Date.now,
    hintDelivery: async () => undefined,
  })
  /** Every delivery is claimed, and its attempt failed: the webhook begins to fail. */
  const toFailures = async (tenantId: string, gone: boolean): Promise<DeliveryOutcome[]> => {
    await postgres.query('update deliveries set claimed_by = $2 where tenant_id = $1', [
      tenantId,
      claim,
    ])
    const health = { url: webhookUrl, ok: false, failure: 'x', probe: false, openCircuit: false }
    const switchOff = { url: webhookUrl, reason: 'gone' } as const
    return (await toOutcomes(tenantId)).map((outcome) => ({
      ...outcome,
      health,
      ...(gone ? { switchOff } : {}),
    }))
  }
  const addWebhook = async (tenantId: string): Promise<void> => {
    await postgres.query(
      `insert into webhooks (tenant_id, url, state) values ($1, $2, 'on')
       on conflict (tenant_id) do update set url = excluded.url, state = 'on', off_reason = null`,
      [tenantId, webhookUrl],
    )
  }
  const replayAll = (of: Postgres, tenantId: string) =>
    replayDeliveries(toDeps(of), {
      tenantId,
      what: { sinceMs: null, onlyFailed: false },
      actor: 'ada',
    })

  type WebhookWork = (tenantId: string, alertIds: string[]) => Promise<() => Promise<unknown>>
  const record = (gone: boolean) => async (tenantId: string) => {
    const outcomes = await toFailures(tenantId, gone)
    return () => createDeliveryStore(postgres).recordOutcomes(outcomes, Date.now())
  }
  const writersOfWebhooks: Record<string, WebhookWork> = {
    'failed attempts': record(false),
    'a receiver that is gone': record(true),
    'a replay': async (tenantId) => () => replayAll(postgres, tenantId),
    'the replay of one alert': async (tenantId, alertIds) => () =>
      replayDeliveries(toDeps(postgres), {
        tenantId,
        what: { alertId: alertIds[20]! },
        actor: 'ada',
      }),
  }

  test.each(Object.entries(writersOfWebhooks))(
    'are locked by %s before the webhook',
    async (_, prepare) => {
      const { tenantId, alertIds } = await addTenant(40)
      await addWebhook(tenantId)
      const work = await prepare(tenantId, alertIds)
      let done: Promise<unknown> = Promise.resolve()
      await postgres.transaction(async (tx) => {
        const held = [toDeliveryId(alertIds[20]!)]
        await tx.query('select 1 from deliveries where delivery_id = $1 for update', held)
        done = work()
        done.catch(() => undefined)
        await until('it waits', isWaiting)
        // While it waits for a delivery, the webhook is free.
        await tx.query('select 1 from webhooks where tenant_id = $1 for update nowait', [tenantId])
      })
      await done
    },
  )

  test('have their webhooks locked in the order of the tenants, also one that is gone', async () => {
    const tenants = [await addTenant(1), await addTenant(1)].map(({ tenantId }) => tenantId).sort()
    for (const tenantId of tenants) await addWebhook(tenantId)
    const [[test], [failed]] = [
      await toFailures(tenants[0]!, true),
      await toFailures(tenants[1]!, false),
    ]
    // The answer to a test event shows nothing about the webhook's health.
    const { health: _, ...gone } = test!
    let done: Promise<unknown> = Promise.resolve()
    await postgres.transaction(async (tx) => {
      await tx.query('select 1 from webhooks where tenant_id = $1 for update', [tenants[0]])
      done = createDeliveryStore(postgres).recordOutcomes([failed!, gone], Date.now())
      done.catch(() => undefined)
      await until('it waits', isWaiting)
      await tx.query('select 1 from webhooks where tenant_id = $1 for update nowait', [tenants[1]])
    })
    expect(await done).toMatchObject({ switchedOff: [tenants[0]] })
  })

  test('are replayed while an attempt is recorded, without a deadlock', async () => {
    const { tenantId, alertIds } = await addTenant(2)
    await addWebhook(tenantId)
    const ids = alertIds.map(toDeliveryId).sort()
    const outcomes = await toFailures(tenantId, false)
    await postgres.query('update deliveries set claimed_by = null where tenant_id = $1', [tenantId])
    let tries = 0
    const counting: Postgres = {
      ...postgres,
      transaction: (work) =>
        postgres.transaction((tx) => {
          tries++
          return work(tx)
        }),
    }
    let done: Promise<unknown> = Promise.resolve()
    await postgres.transaction(async (tx) => {
      await tx.query('select 1 from deliveries where delivery_id = $1 for update', [ids[0]])
      const replay = replayAll(counting, tenantId)
      replay.catch(() => undefined)
      await until('the replay waits', isWaiting)
      // Meanwhile the other delivery is claimed and its attempt fails.
      await postgres.query('update deliveries set claimed_by = $2 where delivery_id = $1', [
        ids[1],
        claim,
      ])
      const own = outcomes.filter(({ deliveryId }) => deliveryId === ids[1])
      let recorded = false
      const recording = createDeliveryStore(postgres)
        .recordOutcomes(own, Date.now())
        .finally(() => {
          recorded = true
        })
      recording.catch(() => undefined)
      await until('it is recorded or waits too', async () => recorded || (await waiting()) === 2)
      done = Promise.all([replay, recording])
      done.catch(() => undefined)
    })
    await done
    // One part with the deliveries, one that finds none left.
    expect(tries).toBe(2)
  })
})

test('operators are locked in the order of their ids, also administrators', async () => {
  const [first, admin] = ['a', 'b'].map((letter) => `opr_${letter.repeat(22)}`)
  for (const [id, role] of [
    [first, 'viewer'],
    [admin, 'admin'],
  ]) {
    await postgres.query(
      `insert into operators (operator_id, email, name, role, password_hash, created_at, created_by)
       values ($1, $1::text || '@x.example', 'x', $2, '$argon2id$x', now(), 'x')`,
      [id, role],
    )
  }
  let done: Promise<unknown> = Promise.resolve()
  await postgres.transaction(async (tx) => {
    await tx.query('select 1 from operators where operator_id = $1 for update', [first])
    const parts = { postgres, wallMs: Date.now } as unknown as OperatorParts
    done = changeOperator(parts, { operatorId: first!, role: 'analyst', actor: 'ada' })
    done.catch(() => undefined)
    await until('it waits', isWaiting)
    await tx.query('select 1 from operators where operator_id = $1 for update nowait', [admin])
  })
  expect(await done).toMatchObject({ role: 'analyst' })
})
