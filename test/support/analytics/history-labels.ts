/**
 * The labels of the planned history, a pure function of the seed: fraud behind phones that are
 * often blocked, late and with money, and honest users of others. Of every kind of subject, with
 * superseded labels, retractions, unknown subjects and losses that two labels name.
 */
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import { fraudLabels, type Label, subjectKinds } from '#shared/core/outcomes/labels.ts'
import type { LabelReplicaRow } from '#shared/io/analytics/replication-store.ts'
import { createRandom, type Random } from '../../../deploy/fleet/phones/random.ts'
import { type HistoryEvent, toInstant } from './history-alerts.ts'

/** A label with the time of its receipt. */
export type HistoryLabel = Label & { createdAtMs: number }

/** @param events in the order in which they were received */
export function makeLabels(seed: number, events: readonly HistoryEvent[]): HistoryLabel[] {
  const random = createRandom(seed, 'labels')
  const labels: Omit<HistoryLabel, 'seq' | 'labelId'>[] = []
  for (const [deviceId, own] of Map.groupBy(events, ({ event }) => event.body.device_id)) {
    const isBlocked = own.some(({ event }) => event.rasp_action === 'BLOCK')
    const share = isBlocked ? 0.6 : 0.08
    if (!random.chance(share)) continue
    labels.push(...makeLabelsOf(random, deviceId, own, isBlocked && random.chance(0.85)))
  }
  // They came in the order of their times, however they were made.
  return labels
    .sort((a, b) => a.createdAtMs - b.createdAtMs)
    .map((label, at) => ({ ...label, seq: at + 1, labelId: `lbl_${String(at).padStart(22, '0')}` }))
}

// Codes that the tenant declared among them, and one from before there were declarations.
const fraudCodes: Pick<Label, 'label' | 'codeMeans'>[] = [
  ...fraudLabels.map((label) => ({ label, codeMeans: null })),
  { label: 'mule_account', codeMeans: 'fraud' },
  { label: 'older_code', codeMeans: null },
]
const honestCodes: Pick<Label, 'label' | 'codeMeans'>[] = [
  { label: 'legitimate', codeMeans: null },
  { label: 'trusted_customer', codeMeans: 'legitimate' },
]

function makeLabelsOf(
  random: Random,
  deviceId: string,
  own: readonly HistoryEvent[],
  isFraud: boolean,
): Omit<HistoryLabel, 'seq' | 'labelId'>[] {
  const { event } = random.pick(own)
  const kind = random.pick(subjectKinds)
  const user = event.body.user_id ?? event.body.account_id ?? 'never-seen'
  const ids = { event: event.event_id, session: event.body.session_id, device: deviceId, user }
  const occurredAtMs = event.received_at + random.int(-2, 20 * 24) * hourMs
  const hasAmount = isFraud && random.chance(0.7)
  const externalId = random.chance(0.5) ? `case-${event.event_id}` : ''
  const first = {
    subject: { kind, id: ids[kind] },
    ...random.pick(isFraud ? fraudCodes : honestCodes),
    occurredAtMs,
    coveredDays: random.pick([3, 30, 30, 90]),
    amount: hasAmount ? `${random.int(5, 900)}.${random.int(10, 99)}` : null,
    currency: hasAmount ? random.pick(['EUR', 'USD']) : null,
    externalId,
    createdAtMs: event.received_at + random.int(1, 45 * 24) * hourMs,
  }
  const later = { ...first, createdAtMs: first.createdAtMs + dayMs }
  const other = random.pick(subjectKinds)
  return [
    first,
    ...(random.chance(0.1)
      ? [{ ...later, label: 'retracted', codeMeans: null, amount: null, currency: null }]
      : []),
    ...(random.chance(0.15)
      ? [{ ...later, label: isFraud ? 'fraud' : 'legitimate', codeMeans: null }]
      : []),
    // The same loss, told of another subject.
    ...(random.chance(0.2) ? [{ ...later, subject: { kind: other, id: ids[other] } }] : []),
    // Somebody else says the opposite of the session alone.
    ...(random.chance(0.1)
      ? [
          {
            ...later,
            subject: { kind: 'session' as const, id: ids.session },
            label: isFraud ? 'legitimate' : 'fraud',
            codeMeans: null,
            externalId: 'second-opinion',
          },
        ]
      : []),
  ]
}

/** As replication writes it. */
export const toLabelRow = (tenantId: string, label: HistoryLabel): LabelReplicaRow => ({
  tenant_id: tenantId,
  created_at: toInstant(label.createdAtMs),
  label_id: label.labelId,
  seq: label.seq,
  code_means: label.codeMeans ?? '',
  subject_kind: label.subject.kind,
  subject_id: label.subject.id,
  label: label.label,
  occurred_at: toInstant(label.occurredAtMs),
  covered_days: label.coveredDays,
  amount: label.amount ?? '0',
  currency: label.currency ?? '',
  external_id: label.externalId,
  note: '',
  actor: 'api-key:case-tool',
})
