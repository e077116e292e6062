// Requests an erasure and runs the job until it is done, for tests without a console.

import { randomBytes, randomUUID } from 'node:crypto'
import { erasuresWaitingMax } from '#shared/core/base/limits/tenants.ts'
import { unavailable } from '#shared/core/http/problem.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import {
  type ErasureReceipt,
  findErasure,
  requestErasure,
} from '#shared/io/erasure/erasure-job-store.ts'
import { createErasureStore, type ErasureStore } from '#shared/io/erasure/erasure-store.ts'
import type { ErasureSubject } from '#shared/io/erasure/erasure-subject.ts'
import { createSealer } from '#shared/io/keys/console-keys.ts'
import { createEdgeKeys, toEdgeKeyTexts } from '#shared/io/keys/edge-keys.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import {
  createErasures,
  type Erasures,
  type ErasuresDeps,
} from '../../../services/console/jobs/erasures.ts'
import { testLog } from '../http/console-rig.ts'
import type { ScorerRig } from './scorer-rig.ts'

const masterKey = randomBytes(32).toString('base64')
export const erasureSealer = createSealer([masterKey])
/** What an edge has of it. */
export const erasureEdgeKeys = createEdgeKeys(toEdgeKeyTexts([masterKey]))

type Of = Pick<ScorerRig, 'postgres' | 'clickhouse' | 'nats'>

/**
 * The job of one console on the stores of a rig. It leaves the parts that mutations replaced to the
 * server, which takes seconds to remove them; a test that reads files has the whole store.
 */
export function createTestErasures(rig: Of, more: Partial<ErasuresDeps> = {}): Erasures {
  return createErasures({
    postgres: rig.postgres,
    leases: { renewals: rig.postgres, work: rig.postgres },
    sealer: erasureSealer,
    clickhouse: rig.clickhouse,
    createStore: (clickhouse) => ({
      ...createErasureStore(clickhouse),
      dropOldParts: async () => 0,
    }),
    findNats: () => rig.nats,
    log: testLog,
    metrics: createMetrics('test'),
    nowMs: () => performance.now(),
    wallMs: Date.now,
    ...more,
  })
}

/**
 * For tests of what is around an erasure of a subject without rows: it searches, and spares the
 * mutations of some thirty tables.
 */
export function createReadingStore(clickhouse: Clickhouse): ErasureStore {
  const nothing = async () => undefined
  return {
    ...createErasureStore(clickhouse),
    eraseRows: nothing,
    eraseExpectedAlerts: nothing,
    eraseReplicas: nothing,
    rebuild: nothing,
    forgetHourlyCounts: nothing,
    dropOldParts: async () => 0,
  }
}

/** Requests an erasure. @returns its id */
export async function requestForTest(rig: Of, subject: ErasureSubject): Promise<string> {
  const erasure = await requestErasure(rig.postgres, erasureSealer, {
    erasureId: `era_${randomUUID()}`,
    subject,
    actor: 'test',
    waitingMax: erasuresWaitingMax,
  })
  if (erasure === 'busy') throw new Error('too many erasures wait')
  return erasure.erasure_id
}

/** @throws Problem unavailable when an attempt fails; the next call makes another one */
export async function eraseNow(
  rig: Of,
  subject: ErasureSubject,
  more: Partial<ErasuresDeps> = {},
): Promise<ErasureReceipt> {
  const { tenantId } = subject
  const erasures = createTestErasures(rig, more)
  const erasureId = await requestForTest(rig, subject)
  for (;;) {
    await erasures.runNext(tenantId)
    const erasure = await findErasure(rig.postgres, { tenantId, erasureId })
    if (erasure?.receipt) return erasure.receipt
    if (erasure?.problem) throw unavailable(erasure.problem)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
