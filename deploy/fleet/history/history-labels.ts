/**
 * What turned out to be fraud in a simulated history: labels that a case tool sends days after the
 * visits, most of them about phones of fraudsters, a few about others who were never suspected, and
 * some about honest customers.
 */
import { hash } from 'node:crypto'
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import { coveredDaysDefault } from '#shared/core/base/limits/outcomes.ts'
import { fraudLabels } from '#shared/core/outcomes/labels.ts'
import { dateLabels } from '#shared/io/history/simulated-history-store.ts'
import { insertLabels, type NewLabel } from '#shared/io/outcomes/label-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { createRandom } from '../phones/random.ts'
import type { AcceptedVisit } from './history-edge.ts'
import { isFraudKind } from './history-outcomes.ts'

/** A label with the time of its receipt, in ms since 1970. */
type HistoryLabel = NewLabel & { createdAtMs: number }

/** Shares of phones with a label, by outcome. Some fraud comes from phones that nobody suspected. */
const sharesOfFraudsters = { fraud: 0.4, legitimate: 0.02 }
const sharesOfOthers = { fraud: 0.01, legitimate: 0.04 }
const labelsPerTransaction = 500
const actor = 'api-key:case-tool'

/** Labels of a history; those that would come after its end are still to come. */
export function makeLabels(
  visits: readonly AcceptedVisit[],
  { tenantId, seed, endMs }: { tenantId: string; seed: number; endMs: number },
): HistoryLabel[] {
  return [...Map.groupBy(visits, ({ phone }) => phone.deviceId)]
    .flatMap(([deviceId, own]) => {
      const random = createRandom(seed, `label:${deviceId}`)
      const shares = isFraudKind(own[0]!.phone.kind.name) ? sharesOfFraudsters : sharesOfOthers
      const drawn = random.next()
      if (drawn >= shares.fraud + shares.legitimate) return []
      const isFraud = drawn < shares.fraud
      const occurredAtMs = random.pick(own).atMs + random.int(1, 72) * hourMs
      return {
        labelId: `lbl_${hash('sha256', `${tenantId} ${deviceId}`, 'base64url').slice(0, 22)}`,
        subject: { kind: 'device' as const, id: deviceId },
        label: isFraud ? random.pick(fraudLabels) : 'legitimate',
        codeMeans: null,
        occurredAtMs,
        coveredDays: coveredDaysDefault,
        amount: isFraud ? `${random.int(10, 900)}.${random.int(10, 99)}` : null,
        currency: isFraud ? 'EUR' : null,
        externalId: `case-${random.int(10_000, 99_999)}`,
        note: null,
        createdAtMs: occurredAtMs + random.int(1, 14) * dayMs,
      }
    })
    .filter(({ createdAtMs }) => createdAtMs < endMs)
    .sort((a, b) => a.createdAtMs - b.createdAtMs)
}

/** Stores labels as of the times of their receipt. */
export async function storeLabels(
  postgres: Postgres,
  tenantId: string,
  labels: readonly HistoryLabel[],
): Promise<void> {
  for (let at = 0; at < labels.length; at += labelsPerTransaction) {
    const some = labels.slice(at, at + labelsPerTransaction)
    await postgres.transaction(async (tx) => {
      await insertLabels(tx, { tenantId, actor, labels: some })
      await dateLabels(tx, some)
    })
  }
}
