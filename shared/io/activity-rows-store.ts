/**
 * The rows of `activity` that a batch of events is about, as every question to it begins: the keys
 * of the events' devices, users and sessions, and the stream no further than the last of them.
 */
import { hash } from 'node:crypto'
import { type Screen, toScreen } from '#shared/core/activity.ts'
import type { VelocityMetric, VelocityRule } from '#shared/core/policy.ts'

/** An event that is asked about. */
export type ActivitySubject = {
  tenantId: string
  deviceId: string
  sessionId: string
  /** Users and accounts alike. */
  userIds: readonly string[]
  eventId: string
  position: number
  receivedAtMs: number
  /** The velocity rules of the policy it was scored by. */
  rules: readonly VelocityRule[]
}

/** What the rows of `activity` are about. */
export type Kind = 'device' | 'user' | 'session'

/** Where each metric finds its subjects: on which kind of key, in which columns. */
export const places: Record<
  Exclude<VelocityMetric, 'signal_flips'>,
  { kind: Kind; columns: string[] }
> = {
  sessions_per_device: { kind: 'device', columns: ['session_hash'] },
  users_per_device: { kind: 'device', columns: ['user_hash', 'account_hash'] },
  platforms_per_device: { kind: 'device', columns: ['platform_hash'] },
  devices_per_user: { kind: 'user', columns: ['user_device_hash'] },
  devices_per_session: { kind: 'session', columns: ['session_device_hash'] },
}

export type Asked = ActivitySubject & { eventHash: string; keys: Record<Kind, string[]> }

export type Question = {
  asked: readonly Asked[]
  screen: Screen
  /** ClickHouse parameters that every query shares. */
  params: Record<string, unknown>
  firstMs: number
}

export function toAsked(subject: ActivitySubject): Asked {
  const { tenantId, deviceId, sessionId, userIds } = subject
  const toKey = (kind: Kind, id: string) => `${tenantId} ${toKeyHash(kind, id)}`
  return {
    ...subject,
    eventHash: toHash(subject.eventId),
    keys: {
      device: [toKey('device', deviceId)],
      user: [...new Set(userIds)].map((id) => toKey('user', id)),
      session: [toKey('session', sessionId)],
    },
  }
}

/** As ClickHouse computes `reinterpretAsUInt64(SHA256(text))`, in decimal. */
export function toHash(text: string): string {
  return hash('sha256', text, 'buffer').readBigUInt64LE(0).toString()
}

export function toKeyHash(kind: Kind, id: string): string {
  return toHash(`${kind} ${id}`)
}

export function toQuestion(asked: readonly Asked[]): Question {
  const screen = toScreen(new Set(asked.map((one) => one.rules)))
  const hashesOf = (kind: Kind): bigint[] => {
    const keys = new Set(asked.flatMap((one) => one.keys[kind]))
    return [...keys].map((key) => BigInt(key.slice(key.indexOf(' ') + 1)))
  }
  const needed = new Set(
    screen.rules.map(({ metric }) => (metric === 'signal_flips' ? 'device' : places[metric].kind)),
  )
  const positions = asked.map((one) => one.position)
  return {
    asked,
    screen,
    firstMs: Math.min(...asked.map((one) => one.receivedAtMs)),
    params: {
      tenants: [...new Set(asked.map((one) => one.tenantId))],
      devices: hashesOf('device'),
      users: needed.has('user') ? hashesOf('user') : [],
      sessions: needed.has('session') ? hashesOf('session') : [],
      first_position: Math.min(...positions),
      last_position: Math.max(...positions),
    },
  }
}

/** Dividing so little work among threads costs more than it saves. */
export const oneThread = { max_threads: 1 } as const

/** Narrows a question to some of its keys, whatever their kinds. */
export function toKeyParams(keys: ReadonlySet<string>): Record<string, bigint[]> {
  const hashes = [...keys].map((key) => BigInt(key.slice(key.indexOf(' ') + 1)))
  const third = Math.ceil(hashes.length / 3)
  // Any of the three will do; in thirds each parameter stays within its limit.
  return {
    devices: hashes.slice(0, third),
    users: hashes.slice(third, 2 * third),
    sessions: hashes.slice(2 * third),
  }
}

/** Rows of the keys asked about, as far as the last event asked about. */
export const rowsOfKeys = `
  select
    tenant_id, key_hash, position, received_at, event_hash, session_hash, user_hash, account_hash,
    platform_hash, detected_bits, clean_bits, user_device_hash, session_device_hash,
    toUnixTimestamp64Milli(received_at) as at
  from activity
  where tenant_id in {tenants:Array(String)}
    and (key_hash in {devices:Array(UInt64)} or key_hash in {users:Array(UInt64)}
      or key_hash in {sessions:Array(UInt64)})
    and position <= {last_position:UInt64}`

export const recent = (window: string): string =>
  `received_at > fromUnixTimestamp64Milli({${window}:Int64}, 'UTC')`
