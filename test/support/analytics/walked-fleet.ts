// Random fleets for the walk over the pages: events with copies of some, decisions above the
// edge's, alerts with dispositions, and hours that are counted before some events come.
import fc from 'fast-check'
import { hourMs, type Span } from '#shared/core/base/instants.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { createEventCountStore } from '#shared/io/analytics/event-count-store.ts'
import { createOverviewStore } from '#shared/io/analytics/overview-store.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createHistoryStore } from '#shared/io/devices/history-store.ts'
import { createLinkStore } from '#shared/io/devices/link-store.ts'
import { createUserStore } from '#shared/io/devices/user-store.ts'
import { createPhoneCorrections } from '#shared/io/identity/phone-corrections.ts'
import { createPhoneStore } from '#shared/io/identity/phone-store.ts'
import { createScoreStore } from '#shared/io/outcomes/score-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { createDecisionWriter } from '#shared/io/telemetry/decision-store.ts'
import { createEventListStore } from '#shared/io/telemetry/event-list-store.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { makeAlertCandidate } from '../alerts/alert-candidates.ts'
import { type EventFacts, makeEvents, signalsOf } from '../telemetry/accepted-events.ts'
import { anyConnection } from '../telemetry/connections.ts'
import { insertBareTenants } from '../tenants/bare-tenant.ts'
import type { AnalystsRig } from './analysts-rig.ts'

type Visit = {
  agoMs: number
  device: number
  session: number
  user: number
  version: string
  action: keyof typeof signalsOf
  isConnected: boolean
  /** How the event is decided, where it is not as the edge scored it. */
  raised: 'REVIEW' | 'BLOCK' | null
  /** The same bytes come again after so long. */
  againMs: number | null
  isLate: boolean
}

export type Fleet = Span & {
  visits: Visit[]
  /** Whole hours that are counted before the late events come. */
  counted: Span[]
  connection: EventFacts['connection']
}

const daysMs = 72 * hourMs
const blockMs = 9 * hourMs

/** Of three days before an hour. */
export const anyFleet = (nowHour: number): fc.Arbitrary<Fleet> =>
  fc
    .record({
      visits: fc.array(
        fc.record({
          agoMs: fc.integer({ min: 1, max: daysMs }),
          device: fc.integer({ min: 1, max: 6 }),
          session: fc.integer({ min: 1, max: 4 }),
          user: fc.integer({ min: 0, max: 3 }),
          version: fc.constantFrom('4.1.0', '4.2.0', '4.3.0'),
          action: fc.constantFrom('ALLOW', 'REVIEW', 'BLOCK'),
          isConnected: fc.boolean(),
          raised: fc.constantFrom(null, null, 'REVIEW', 'BLOCK'),
          againMs: fc.oneof(
            { weight: 4, arbitrary: fc.constant(null) },
            { weight: 1, arbitrary: fc.integer({ min: 1_000, max: 3 * hourMs }) },
          ),
          isLate: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
        }),
        { minLength: 30, maxLength: 60 },
      ),
      length: fc.integer({ min: hourMs, max: 36 * hourMs }),
      end: fc.integer({ min: 0, max: 6 * hourMs }),
      blocks: fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 8, maxLength: 8 }),
      connection: anyConnection,
    })
    .map(({ visits, length, end, blocks, connection }) => ({
      visits,
      connection,
      fromMs: nowHour - end - length,
      toMs: nowHour - end,
      // Two blocks of nine hours of three.
      counted: blocks.flatMap((choice, block) =>
        choice === 0
          ? []
          : [{ fromMs: nowHour - (block + 1) * blockMs, toMs: nowHour - block * blockMs }],
      ),
    })) as fc.Arbitrary<Fleet>

const nowOf = ({ toMs }: Span) => Math.ceil(toMs / hourMs) * hourMs

function toFacts(tenantId: string, fleet: Fleet, at: number, moreMs = 0): EventFacts {
  const visit = fleet.visits[at]!
  return {
    tenantId,
    deviceId: `wd-${visit.device}`,
    sessionId: `ws-${visit.session}`,
    ...(visit.user === 0 ? {} : { userId: `wu-${visit.user}` }),
    receivedAtMs: nowOf(fleet) - visit.agoMs + moreMs,
    signals: { ...signalsOf[visit.action], network: networkOf(visit) },
    connection: visit.isConnected ? fleet.connection : undefined,
    nonce: at,
    more: {
      sdk_meta: { sdk_version: visit.version, platform: platformOf(visit), batch_type: 'x' },
      ...(visit.session === 4 ? {} : { app: { version: `${visit.session}.0 β` } }),
    },
  }
}

/** One platform in two spellings, and another. */
const platformOf = ({ device }: Visit): string => ['android', 'Android 14', 'ios'][device % 3]!

/** A signal that is no boolean. */
const networkOf = ({ device, session }: Visit): object =>
  device % 3 === 0 ? {} : { proxy_type: session % 2 === 0 ? 'http' : 'socks' }

/** Stores what came in time. */
export async function storeFleet(rig: AnalystsRig, tenantId: string, fleet: Fleet): Promise<void> {
  await insertBareTenants(rig.postgres, [tenantId])
  await storeVisits(rig, tenantId, fleet, false)
}

/** Stores what came late. */
storeFleet.late = (rig: AnalystsRig, tenantId: string, fleet: Fleet): Promise<void> =>
  storeVisits(rig, tenantId, fleet, true)

async function storeVisits(
  rig: AnalystsRig,
  tenantId: string,
  fleet: Fleet,
  late: boolean,
): Promise<void> {
  const { clickhouse } = rig.deps.analysts
  const { insertTelemetry } = createTelemetryStore(clickhouse)
  const some = [...fleet.visits.entries()].filter(([, { isLate }]) => isLate === late)
  const events = makeEvents(
    some.map(([at]) => toFacts(tenantId, fleet, at)),
    late ? 500 : 1,
  )
  await insertTelemetry(events)
  // A message is delivered again.
  await insertTelemetry(events.slice(0, 9))
  const decided = some.flatMap(([, { raised }], place) => {
    const event = events[place]!
    return raised === null || event.rasp_action === 'BLOCK' ? [] : [{ raised, event }]
  })
  await createDecisionWriter(clickhouse).insertDecisions(
    decided.map(({ raised, event }) => ({ event, risk: toRisk(event, raised) })),
  )
  await storeCopies(rig, { tenantId, fleet, some, sequence: late ? 700 : 200 })
  const candidates = decided
    .sort((a, b) => a.event.received_at - b.event.received_at)
    .map(({ raised, event }) => ({
      atMs: event.received_at,
      candidate: makeAlertCandidate({
        tenantId,
        deviceId: event.body.device_id,
        sessionId: `${event.body.session_id}${late ? '-late' : ''}`,
        userId: event.body.user_id ?? null,
        eventId: event.event_id,
        action: raised,
      }),
    }))
  // Late alerts are raised now: those of a tenant are in the order of time.
  for (const { atMs, candidate } of candidates) {
    await raiseAlerts(rig.postgres, [candidate], (nowMs) => (late ? nowMs : atMs))
  }
}

function toRisk(event: AcceptedEvent, action: 'REVIEW' | 'BLOCK') {
  const higher = event.rasp_action === 'REVIEW' ? 'BLOCK' : action
  return {
    riskScore: higher === 'BLOCK' ? 90 : 50,
    action: higher as 'REVIEW' | 'BLOCK',
    reasons: [...event.reasons, { code: 'HIGH_VELOCITY', weight: 1, evidence: {} }],
  }
}

type Copies = {
  tenantId: string
  fleet: Fleet
  some: [number, Visit][]
  /** Of their messages. */
  sequence: number
}

/** Stores the same bytes again, as the decider has them: repeats, which are no events. */
async function storeCopies(
  rig: AnalystsRig,
  { tenantId, fleet, some, sequence }: Copies,
): Promise<void> {
  const again = some.filter(([, { againMs }]) => againMs !== null)
  if (again.length === 0) return
  const copies = makeEvents(
    again.map(([at, { againMs }]) => toFacts(tenantId, fleet, at, againMs!)),
    sequence,
  )
  await createTelemetryStore(rig.deps.analysts.clickhouse).insertTelemetry(copies)
  for (const { received_at: ms, streamOffset: offset } of copies) {
    await rig.asService(`insert into reconciliation_entries
      (tenant_id, hour, stage, stream, stream_offset, published_at, events, ids, places)
      select '${tenantId}', toStartOfHour(fromUnixTimestamp64Milli(${ms}, 'UTC')), 'decided', 1,
        ${offset}, now64(3), 1, ['0123456789abcdefg'], [0]`)
  }
}

/** The stores of the routes that the walk reads. */
export function toWalkDeps({
  deps: { analysts },
  postgres,
}: {
  deps: { analysts: { clickhouse: Clickhouse } }
  postgres: Postgres
}) {
  const { clickhouse } = analysts
  return {
    overview: createOverviewStore(clickhouse),
    eventCounts: createEventCountStore(clickhouse),
    eventList: createEventListStore(clickhouse, {
      nowMs: Date.now,
      monotonicMs: () => performance.now(),
    }),
    history: createHistoryStore(clickhouse),
    users: createUserStore(clickhouse),
    links: createLinkStore(clickhouse),
    phones: createPhoneStore(clickhouse, createPhoneCorrections(postgres)),
    scores: createScoreStore(clickhouse),
  }
}
