/**
 * Sessions of a tenant as they are stored, with what they turned out to be: events, decisions and
 * labels. What a suggestion reads of them is compared with what is known here.
 */
import { createSeededRandom } from '#shared/core/base/seeded-random.ts'
import type { Outcome } from '#shared/core/outcomes/labels.ts'
import { noScores, type ScoreCounts } from '#shared/core/outcomes/score-distribution.ts'
import { toShare } from '#shared/core/outcomes/suggest/fit-logistic.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { countKey } from '#shared/core/velocity/correlation.ts'
import { decideRisk, noRiskFeatures } from '#shared/core/velocity/risk.ts'
import { insertAlertRows, insertLabelRows } from '#shared/io/analytics/replica-rows-store.ts'
import type { LabelReplicaRow } from '#shared/io/analytics/replication-store.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createDecisionWriter, type Decision } from '#shared/io/telemetry/decision-store.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { toInstant } from '../analytics/history-alerts.ts'
import { makeEvents } from '../telemetry/accepted-events.ts'

/** Log odds and shares; `developer_mode` says nothing. */
const planted = [
  { path: 'emulator.app_cloned', share: 0.2, logOdds: 2.5 },
  { path: 'ecosystem.location_spoofed', share: 0.15, logOdds: 2 },
  { path: 'tamper.device_info_spoofed', share: 0.05, logOdds: 0 },
  { path: 'ecosystem.developer_mode', share: 0.3, logOdds: 0 },
] as const
const manyUsers = { metric: 'users_per_device', windowSeconds: 86_400 } as const
const manyUsersLogOdds = 3

/** A session, and what it turned out to be; null when nothing is known. */
export type StoredSession = {
  startedAtMs: number
  events: AcceptedEvent[]
  riskScore: number
  outcome: Outcome | null
  userId: string
  /** In cents of EUR. */
  lostCents: number
}

export type StoredOutcomes = {
  events: AcceptedEvent[]
  decisions: Decision[]
  labels: LabelReplicaRow[]
  /** Alerts that somebody judged, of sessions without a label. */
  alerts: Parameters<typeof insertAlertRows>[2][number][]
  sessions: StoredSession[]
  /** How sessions score under the default policy, by what is known of them. */
  expected: ScoreCounts
}

/** Makes them: one session a device, an hour apart. */
export function makeStoredOutcomes(tenantId: string, startMs: number, count: number) {
  const random = createSeededRandom(7)
  const made: StoredOutcomes = {
    events: [],
    decisions: [],
    labels: [],
    alerts: [],
    sessions: [],
    expected: noScores(),
  }
  for (let n = 0; n < count; n++) {
    const shown = planted.filter(({ share }) => random() < share)
    const isShared = random() < 0.1
    const sum = shown.reduce(
      (total, { logOdds }) => total + logOdds,
      isShared ? manyUsersLogOdds : 0,
    )
    const isFraud = random() < toShare(sum - 2.5)
    // Three sessions a user, of which one at most is among those that are judged or not known.
    const userId = `learner-${n % 401}`
    const ids = { tenantId, deviceId: `learn-${n}`, sessionId: `session-${n}`, userId }
    const atMs = startMs + n * 3_600_000
    const signals = Object.fromEntries(
      shown
        .map(({ path }) => path.split('.') as [string, string])
        .map(([category, name]) => {
          return [category, { [name]: true }]
        }),
    )
    // Two of a category are one event each, so that sessions have several kinds of events.
    const facts = shown.map(({ path }) => {
      const [category, name] = path.split('.') as [string, string]
      return { ...ids, receivedAtMs: atMs, nonce: path, signals: { [category]: { [name]: true } } }
    })
    const events = makeEvents([{ ...ids, receivedAtMs: atMs + 1_000, nonce: n, signals }, ...facts])
    made.events.push(...events)
    const scores = events.map(({ rasp_score: score }) => score)
    if (isShared) {
      const decision = decide(events[0]!)
      made.decisions.push(decision)
      scores.push(decision.risk.riskScore)
    }
    const riskScore = Math.max(...scores)
    const isLabelled = n % 5 !== 0
    const isJudged = n % 10 === 0 && riskScore >= defaultPolicy.thresholds.review
    if (isLabelled) made.labels.push(toLabel(ids, { n, atMs, isFraud }))
    if (isJudged) made.alerts.push(toJudged(ids, { n, atMs, isFraud, riskScore }))
    const outcome = isLabelled || isJudged ? (isFraud ? 'fraud' : 'legitimate') : null
    made.expected[outcome ?? 'unlabelled'][riskScore]!++
    const startedAtMs = Math.min(...events.map((event) => event.received_at))
    const lostCents = isLabelled && isFraud ? 100 * toAmount(n) : 0
    made.sessions.push({ startedAtMs, events, riskScore, outcome, userId, lostCents })
  }
  return made
}

/** What the scorer makes of an event of a shared device. */
export function decide(event: AcceptedEvent, policy = defaultPolicy): Decision {
  const counts = new Map([[countKey(manyUsers), 7]])
  return { event, risk: decideRisk(event, policy, { ...noRiskFeatures, counts }) }
}

const toJudged = (
  { tenantId, deviceId, sessionId }: Labelled,
  { n, atMs, isFraud, riskScore }: { n: number; atMs: number; isFraud: boolean; riskScore: number },
): StoredOutcomes['alerts'][number] => ({
  tenant_id: tenantId,
  alert_id: `alr_learn_${n}`,
  seq: n + 1,
  disposition: isFraud ? 'CONFIRMED' : 'FALSE_POSITIVE',
  device_id: deviceId,
  session_id: sessionId,
  action: riskScore >= defaultPolicy.thresholds.block ? 'BLOCK' : 'REVIEW',
  risk_score: riskScore,
  rasp_score: 0,
  policy_version: 1,
  created_at: toInstant(atMs + 2_000),
})

type Labelled = { tenantId: string; deviceId: string; sessionId: string }

const toAmount = (n: number): number => (n % 4 === 1 ? n + 0.5 : 0)

/** Every third label is of the device, on the day after. */
function toLabel(
  { tenantId, deviceId, sessionId }: Labelled,
  { n, atMs, isFraud }: { n: number; atMs: number; isFraud: boolean },
): LabelReplicaRow {
  const isOfDevice = n % 3 === 0
  const instant = (ms: number) => new Date(ms).toISOString().replace('T', ' ').slice(0, -1)
  return {
    tenant_id: tenantId,
    created_at: instant(atMs + 90_000_000),
    label_id: `lbl_${n}`,
    seq: n + 1,
    subject_kind: isOfDevice ? 'device' : 'session',
    subject_id: isOfDevice ? deviceId : sessionId,
    label: isFraud ? 'chargeback' : 'legitimate',
    occurred_at: instant(atMs + 86_400_000),
    covered_days: 30,
    // An amount of an honest session is no loss.
    amount: toAmount(n),
    currency: toAmount(n) > 0 ? 'EUR' : '',
    external_id: '',
    note: '',
    actor: 'test',
    removed: 0,
  }
}

export async function storeOutcomes(
  clickhouse: Clickhouse,
  { events, decisions, labels, alerts }: StoredOutcomes,
): Promise<void> {
  const { insertTelemetry } = createTelemetryStore(clickhouse)
  for (let at = 0; at < events.length; at += 800) {
    const { refused } = await insertTelemetry(events.slice(at, at + 800))
    if (refused.length > 0) throw new Error(JSON.stringify(refused))
  }
  await createDecisionWriter(clickhouse).insertDecisions(decisions)
  await insertLabelRows(clickhouse, 1, labels)
  await insertAlertRows(clickhouse, 1, alerts)
}
