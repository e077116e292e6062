// Outcomes are recorded once each, also when Postgres refuses one of them and fails at another.
import { expect, it } from 'vitest'
import type { DeliveryOutcome } from '#shared/io/deliveries/record-outcomes.ts'
import { PostgresUnavailableError } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createDeliveryMetrics } from '../../../services/delivery/metrics.ts'
import { createOutcomeRecorder } from '../../../services/delivery/send/outcome-recorder.ts'

const toOutcome = (deliveryId: string): DeliveryOutcome => ({
  tenantId: 'acme',
  deliveryId,
  createdAt: '2026-01-01 00:00:00+00',
  alertId: `alert of ${deliveryId}`,
  claim: 'claim',
  attempt: null,
  next: { state: 'delivered' },
})

it('an outcome that is recorded is not recorded again when Postgres fails at a later one', async () => {
  const recorded: string[] = []
  let failures = 2
  const recorder = createOutcomeRecorder({
    record: async (outcomes) => {
      const ids = outcomes.map(({ deliveryId }) => deliveryId)
      if (ids.includes('bad')) throw new Error('a value is refused')
      if (ids.includes('last') && failures-- > 0) throw new PostgresUnavailableError(new Error())
      recorded.push(...ids)
      return { recorded: new Set(ids), switchedOff: [], health: [] }
    },
    onHealth: async () => undefined,
    monotonicMs: () => performance.now(),
    log: createLog('test', 'silent'),
    metrics: createDeliveryMetrics(createMetrics('delivery'), () => 0),
  })
  recorder.add(toOutcome('alone'))
  for (const id of ['first', 'bad', 'second', 'last']) recorder.add(toOutcome(id))
  await recorder.drained()
  expect(recorded).toEqual(['alone', 'first', 'second', 'last'])
  expect(recorder.waiting()).toBe(0)
})
