/**
 * Finds earlier events of sessions. The first matching event of a session raises an alert, and
 * another scorer may be deciding on it at this moment. There is rarely one, and `activity` shows
 * that cheaply.
 */
import { type ClickHouseSettings, TupleParam } from '@clickhouse/client'
import {
  activityQueryMax,
  activityRowsMax,
  parameterBytesMax,
  sessionEventsMax,
  sessionQueryMax,
} from '#shared/core/base/limits/history.ts'
import type { Reason } from '#shared/core/scoring/score.ts'
import type { ServerSignals } from '#shared/core/signals/signal-definition.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { readStoredTelemetry } from '#shared/core/telemetry/submission.ts'
import { toHash, toKeyHash } from '#shared/core/velocity/key-hash.ts'
import {
  type Clickhouse,
  type ClickhouseNode,
  smallQuery,
} from '#shared/io/clickhouse/clickhouse.ts'
import { onNodesOf } from '#shared/io/clickhouse/shards.ts'
import { toInstall } from '#shared/io/installs/stored-install.ts'
import {
  connectionColumns,
  type StoredConnection,
  toEventConnection,
} from '#shared/io/network/stored-connection.ts'
import {
  type ActivityKey,
  latestOf,
  ofKeys,
  queryBounded,
  toActivityKey,
  toShardKey,
} from '#shared/io/velocity/activity-rows-store.ts'

/** A session before one of its events. */
type SessionPart = {
  tenantId: string
  deviceId: string
  sessionId: string
  beforeStreamOffset: number
}

export type EarlierEventsQuery = {
  parts: readonly SessionPart[]
  /** Stream offsets of events that the caller has already. */
  excludedStreamOffsets: readonly number[]
}

/**
 * @returns the events of these sessions before the given stream offsets, each once, with its first
 *   stream offset and time of receipt; at most a thousand per session
 */
export async function findEarlierEvents(
  clickhouse: Clickhouse,
  { parts, excludedStreamOffsets }: EarlierEventsQuery,
): Promise<AcceptedEvent[]> {
  const found: AcceptedEvent[] = []
  for (let at = 0; at < parts.length; at += activityQueryMax) {
    const some = parts.slice(at, at + activityQueryMax)
    const firsts = await findFirsts(clickhouse, { parts: some, excludedStreamOffsets })
    const open = some.filter((part) => firsts.sessions.has(keyOf(part)))
    const read = (node: ClickhouseNode, parts: SessionPart[]) => readEvents(node, parts, firsts)
    for (const sessions of inParameters(open)) {
      const events = (await onNodesOf(clickhouse, sessions, toDeviceKey, read)).flat()
      found.push(...events.sort((a, b) => a.streamOffset - b.streamOffset))
    }
  }
  return found
}

const toDeviceKey = ({ deviceId }: SessionPart) => toKeyHash('device', deviceId)

const keyOf = (part: Pick<SessionPart, 'tenantId' | 'sessionId'>): ActivityKey =>
  toActivityKey(part.tenantId, 'session', part.sessionId)

/** Splits sessions so that each part fits into one query parameter. */
function* inParameters(parts: readonly SessionPart[]): Generator<SessionPart[]> {
  let some: SessionPart[] = []
  let bytes = 0
  for (const part of parts) {
    const { tenantId, deviceId, sessionId } = part
    const text = `('${tenantId}','${deviceId}','${sessionId}'),`
    // Quotes and backslashes are escaped by a backslash.
    const own = Buffer.byteLength(text) + (text.match(/['\\]/g)?.length ?? 0)
    if (some.length === sessionQueryMax || bytes + own > parameterBytesMax) {
      yield some
      some = []
      bytes = 0
    }
    some.push(part)
    bytes += own
  }
  if (some.length > 0) yield some
}

/** The first receipt of the events of some sessions. */
type Firsts = {
  sessions: Set<string>
  /** By session and event. */
  events: Map<string, { streamOffset: number; receivedAtMs: number }>
}

async function findFirsts(
  clickhouse: Clickhouse,
  { parts, excludedStreamOffsets }: EarlierEventsQuery,
): Promise<Firsts> {
  const excluded = new Set(excludedStreamOffsets)
  const before = new Map<ActivityKey, number>()
  for (const part of parts) {
    const key = keyOf(part)
    before.set(key, Math.max(part.beforeStreamOffset, before.get(key) ?? 0))
  }
  const lastStreamOffset = Math.max(...before.values()) - 1
  const findOn = (node: ClickhouseNode, nodeKeys: ActivityKey[]) =>
    queryBounded(
      nodeKeys,
      (keys, settings) => {
        const { text, params } = ofKeys(keys, lastStreamOffset)
        return queryFirsts(node, text, { params, settings })
      },
      // A hot session id, shared by many devices: read its latest events, which may be undecided.
      (key) => {
        const { text, params } = latestOf(key, { lastStreamOffset, rowsMax: activityRowsMax })
        return queryFirsts(node, text, { params, settings: smallQuery })
      },
    )
  const found = await onNodesOf(clickhouse, before.keys(), toShardKey, findOn)
  const firsts: Firsts = { sessions: new Set(), events: new Map() }
  for (const [tenantId, hash, eventHash, first, at] of found.flat(2)) {
    const key = `${tenantId} ${hash}`
    const streamOffset = Number(first)
    if (excluded.has(streamOffset) || streamOffset >= (before.get(key) ?? 0)) continue
    firsts.sessions.add(key)
    firsts.events.set(`${key} ${eventHash}`, { streamOffset, receivedAtMs: Number(at) })
  }
  return firsts
}

type FirstRow = [
  tenantId: string,
  keyHash: string,
  eventHash: string,
  streamOffset: number | string,
  receivedAtMs: number | string,
]

async function queryFirsts(
  clickhouse: ClickhouseNode,
  from: string,
  { params, settings }: { params: Record<string, unknown>; settings: ClickHouseSettings },
): Promise<FirstRow[]> {
  const result = await clickhouse.query({
    query: `
      select tenant_id, toString(key_hash), toString(event_hash), min(stream_offset) as first,
        toUnixTimestamp64Milli(argMin(received_at, stream_offset))
      from ${from}
      group by tenant_id, key_hash, event_hash
      order by first desc
      limit {firsts:UInt32} by tenant_id, key_hash`,
    query_params: { ...params, firsts: activityRowsMax },
    use_multipart_params_auto: true,
    clickhouse_settings: settings,
    format: 'JSONCompactEachRow',
  })
  return result.json<FirstRow>()
}

type EventRow = [
  tenantId: string,
  eventId: string,
  raspScore: number,
  raspAction: AcceptedEvent['rasp_action'],
  reasons: string,
  policyVersion: number,
  policyHash: string,
  epoch: number | string,
  serverSignals: ServerSignals,
  body: string,
  installToken: string,
  attestedKey: string,
  assertionCounter: number,
  ...connection: StoredConnection,
]

async function readEvents(
  clickhouse: ClickhouseNode,
  open: readonly SessionPart[],
  firsts: Firsts,
): Promise<AcceptedEvent[]> {
  const wanted = new Map(
    open.map((part) => [[part.tenantId, part.deviceId, part.sessionId].join('\n'), part]),
  )
  const result = await clickhouse.query({
    query: `
      select tenant_id, event_id, rasp_score, toString(rasp_action), reasons, policy_version,
        policy_hash, epoch, server_signals, body, install_token, attested_key, assertion_counter,
        ${connectionColumns}
      from telemetry final
      where (tenant_id, device_id, session_id) in {keys:Array(Tuple(String, String, String))}
      order by received_at
      limit {most:UInt32} by tenant_id, device_id, session_id`,
    query_params: {
      keys: [...wanted.values()].map(
        (part) => new TupleParam([part.tenantId, part.deviceId, part.sessionId]),
      ),
      most: sessionEventsMax,
    },
    use_multipart_params_auto: true,
    format: 'JSONCompactEachRow',
  })
  const events: AcceptedEvent[] = []
  for (const row of await result.json<EventRow>()) {
    const [tenantId, eventId, score, action, reasons, version, policyHash, epoch, ...rest] = row
    const [serverSignals, text, installToken, attestedKey, assertionCounter, ...stored] = rest
    const connection = toEventConnection(stored)
    const install = toInstall({ installToken, attestedKey, assertionCounter })
    const body = readStoredTelemetry(text)
    const key = keyOf({ tenantId, sessionId: body.session_id })
    const first = firsts.events.get(`${key} ${toHash(eventId)}`)
    if (first === undefined) continue
    events.push({
      tenant_id: tenantId,
      event_id: eventId,
      streamOffset: first.streamOffset,
      received_at: first.receivedAtMs,
      rasp_score: score,
      rasp_action: action,
      reasons: JSON.parse(reasons) as Reason[],
      policy_version: version,
      policy_hash: policyHash,
      epoch: Number(epoch),
      server_signals: serverSignals,
      ...(install === undefined ? {} : { install }),
      ...(connection === undefined ? {} : { connection }),
      body,
    })
  }
  return events
}
