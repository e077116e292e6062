/**
 * Conditions of ClickHouse for the rows of a subject, table by table. Ids are hashed, since the
 * text of a mutation remains on the server.
 */
import { toHash, toKeyHash } from '#shared/core/velocity/key-hash.ts'
import { toIdentityConditions } from './erasure-identity-store.ts'
import { type ErasureSubject, toSubjectSha256 } from './erasure-subject.ts'

/** The keys of a subject's rows, read before anything is erased. */
export type ErasureTraces = {
  subject: ErasureSubject
  /** Later events are not erased. */
  lastStreamOffset: number
  sipHash: string
  /** Devices that the user was on, and their hashes; none for a device. */
  devices: { id: string; sipHash: string }[]
  eventIds: string[]
  eventHashes: string[]
  /** Sessions of these events. */
  sessionIds: string[]
}

/** Hashes in the text of one mutation: 20,000 of 20 digits are 440 KB. */
export const mutationValuesMax = 20_000

export function* chunksOf<T>(values: readonly T[], most: number): Generator<T[]> {
  for (let at = 0; at < values.length; at += most) yield values.slice(at, at + most)
}

/** SQL: the fast hash selects candidates, the strong one decides. */
const toSame = (text: string, subject: ErasureSubject, sipHash: string): string =>
  `(sipHash64(${text}) = ${sipHash} and SHA256(${text}) = unhex('${toSubjectSha256(subject)}'))`

/** SQL: no row of the table is of the subject. */
export const none = 'false'

export function toConditions(traces: ErasureTraces) {
  const { subject, lastStreamOffset, sipHash } = traces
  const is = (text: string) => toSame(text, subject, sipHash)
  const device = is('device_id')
  const inUsers = `arrayExists(one -> ${is('one')}, users)`
  // A registration is of a device and names no user.
  const ofDevice = (condition: string) =>
    subject.kind === 'device' ? `tenant_id = {tenant:String} and ${condition}` : none
  const anyTelemetry = `tenant_id = {tenant:String}
    and ${subject.kind === 'device' ? device : `(${is('user_id')} or ${is('account_id')})`}`
  const where = {
    is,
    anyTelemetry,
    telemetry: `${anyTelemetry} and stream_offset <= {last:UInt64}`,
    decisions: `${anyTelemetry} and stream_offset <= {last:UInt64}`,
    shadow_decisions: `${anyTelemetry} and stream_offset <= {last:UInt64}`,
    replays: `${anyTelemetry} and stream_offset <= {last:UInt64}`,
    installs: ofDevice(`${device} and stream_offset <= {last:UInt64}`),
    install_keys: ofDevice(
      `kind != 'issuer' and subject_hash = ${toKeyHash('device', subject.id)}`,
    ),
    phone_corrections_replica: ofDevice(device),
    ...toIdentityConditions({ ...subject, sipHash }, is),
    sessions: `tenant_id = {tenant:String} and ${subject.kind === 'device' ? device : inUsers}`,
    devices: `tenant_id = {tenant:String} and ${subject.kind === 'device' ? device : inUsers}`,
    user_devices: `tenant_id = {tenant:String}
      and ${subject.kind === 'device' ? device : is('user_id')}`,
  }
  return { where, params: { tenant: subject.tenantId, last: lastStreamOffset } }
}

/** Numbers only, so they may stand in the text: there may be more than fit into a parameter. */
export const toEventCondition = (eventHashes: readonly string[]): string =>
  `tenant_id = {tenant:String} and event_hash in (${eventHashes.join(',')})`

export const replicaTables = ['alerts_replica', 'deliveries_replica', 'labels_replica'] as const
export const replicaIds: Record<ReplicaTable, string> = {
  alerts_replica: 'alert_id',
  deliveries_replica: 'delivery_id',
  labels_replica: 'label_id',
}
export type ReplicaTable = (typeof replicaTables)[number]

/** Each row in one of them: an alert may name another user of its event. */
export function toReplicaConditions(traces: ErasureTraces, table: ReplicaTable): string[] {
  if (table === 'labels_replica') return toLabelConditions(traces)
  const { subject, sipHash, eventHashes } = traces
  const column = subject.kind === 'device' ? 'device_id' : 'user_id'
  const own = toSame(column, subject, sipHash)
  const tenant = 'tenant_id = {tenant:String}'
  if (subject.kind === 'device') return [`${tenant} and ${own}`]
  return [
    `${tenant} and ${own}`,
    ...[...chunksOf(eventHashes, mutationValuesMax)].map(
      (ids) => `${tenant} and not ${own}
        and reinterpretAsUInt64(SHA256(event_id)) in (${ids.join(',')})`,
    ),
  ]
}

/** Labels of the subject, and of its events and sessions. */
function toLabelConditions(traces: ErasureTraces): string[] {
  const { subject, sipHash, eventHashes, sessionIds } = traces
  const of = (kind: string) => `tenant_id = {tenant:String} and subject_kind = '${kind}'`
  const named = (kind: string, hashes: readonly string[]) =>
    [...chunksOf(hashes, mutationValuesMax)].map(
      (some) => `${of(kind)} and reinterpretAsUInt64(SHA256(subject_id)) in (${some.join(',')})`,
    )
  return [
    `${of(subject.kind)} and ${toSame('subject_id', subject, sipHash)}`,
    ...named('event', eventHashes),
    ...named('session', sessionIds.map(toHash)),
  ]
}
