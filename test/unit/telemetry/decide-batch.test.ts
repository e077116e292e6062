// The writes of a batch, in order: expected alerts are recorded before they are raised, and no
// write is in progress when the batch fails.
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { DecidedLink } from '#shared/core/identity/decide-link.ts'
import { noRiskFeatures } from '#shared/core/velocity/risk.ts'
import type { ConsumedMessage } from '#shared/io/nats/consume/consume.ts'
import { type DecideBatchDeps, decideBatch } from '../../../services/scorer/decide/decide-batch.ts'
import { makeMessage, signalsOf } from '../../support/telemetry/accepted-events.ts'
import { makeDecideDeps } from '../../support/telemetry/decide-deps.ts'

const message: ConsumedMessage = {
  data: makeMessage([{ deviceId: 'bad', signals: signalsOf.BLOCK }]),
  sequence: 7,
  proof: '',
  tracedEvents: '',
  streamOffset: 7_000,
  publishedMs: 1_000,
  deliveries: 1,
}

const firstLink: DecidedLink = {
  tenantId: 'acme',
  deviceId: 'bad',
  phoneId: 'phn_bad',
  kind: 'first',
  possible: null,
  confidence: 1,
  identifiersShared: false,
  doubtful: [],
  fixed: null,
  isCompared: true,
  installs: [],
  parametersVersion: 0,
  streamOffset: 7_000,
  receivedAtMs: 1_000,
  evidence: [],
}

/** A promise that the test resolves by hand. */
function hold() {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { promise, resolve }
}

/** Starts deciding; `ended` is the outcome, once there is one. */
function begin(
  reconciliation: Partial<DecideBatchDeps['reconciliation']>,
  more: Partial<DecideBatchDeps> = {},
) {
  const { decide, raised } = makeDecideDeps()
  const outcome: { ended: string | null } = { ended: null }
  const deps = {
    ...decide,
    ...more,
    reconciliation: { ...decide.reconciliation, ...reconciliation },
  }
  void decideBatch([message], deps).then(
    () => {
      outcome.ended = 'done'
    },
    (error: Error) => {
      outcome.ended = error.message
    },
  )
  return { outcome, raised }
}

describe('deciding a batch', () => {
  it('raises alerts only after their expectation is recorded', async () => {
    const recording = hold()
    const { outcome, raised } = begin({ insertExpectedAlerts: () => recording.promise })
    await turn()
    expect(raised).toEqual([])
    expect(outcome.ended).toBeNull()
    recording.resolve()
    await turn()
    expect(raised).toHaveLength(1)
    expect(outcome.ended).toBe('done')
  })

  it('raises nothing when expected alerts cannot be recorded', async () => {
    const insertExpectedAlerts = () => Promise.reject(new Error('no reconciliation'))
    const { outcome, raised } = begin({ insertExpectedAlerts })
    await turn()
    expect(raised).toEqual([])
    expect(outcome.ended).toBe('no reconciliation')
  })

  it('fails only when none of its writes is in progress', async () => {
    const found = hold()
    const findUnraised = async () => {
      await found.promise
      return []
    }
    const insertExpectedAlerts = () => Promise.reject(new Error('no reconciliation'))
    const { outcome } = begin({ insertExpectedAlerts }, { findUnraised })
    await turn()
    expect(outcome.ended).toBeNull()
    found.resolve()
    await turn()
    expect(outcome.ended).toBe('no reconciliation')
  })

  it('raises alerts without waiting for the phones of its events, and ends after them', async () => {
    const storing = hold()
    const { outcome, raised } = begin(
      {},
      {
        loadRiskFeatures: async (events) =>
          events.map(() => ({
            ...noRiskFeatures,
            phone: { link: firstLink, decided: firstLink, hasDeniedInstall: false, otherPhone: [] },
          })),
        phones: { insertLinks: () => storing.promise },
      },
    )
    await turn()
    expect(raised).toHaveLength(1)
    expect(outcome.ended).toBeNull()
    storing.resolve()
    await turn()
    expect(outcome.ended).toBe('done')
  })
})
