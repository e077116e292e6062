/**
 * A history of any length for `npm run bench -- history`, made by arithmetic alone: the engine
 * makes the rows in SQL and this file computes the same for any device in JavaScript, so that every
 * answer can be compared with the inserted rows. Unlike copies of a fleet's events, its devices are
 * spread over the whole key, so every part of a table may contain rows of any device, as with rows
 * that came over time.
 */
import { hash } from 'node:crypto'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'

/** Rows are spread over this number of days before the run. */
export const historyDays = 85
const spanMs = historyDays * 86_400_000

export const tenants = ['bench-a', 'bench-b', 'bench-c', 'bench-d'] as const

/**
 * Devices by number, inserted over time: the first insert has their first sessions. Each device
 * has 1 to 30 sessions, or `sessions` when that is set, of two events each.
 */
export type Cohort = {
  firstDevice: number
  devices: number
  /** Inserts, each a part of the time. */
  slices: number
  sessions: number | null
  startMs: number
}

/** Every 30 devices have 465 sessions, which are 930 events. */
const devicesOfCycle = 30
const eventsOfCycle = 930

/** @returns how many devices have at least this number of events */
export const devicesFor = (events: number): number =>
  Math.ceil(events / eventsOfCycle) * devicesOfCycle

export function countEvents({ devices, sessions }: Cohort): number {
  if (sessions !== null) return 2 * devices * sessions
  if (devices % devicesOfCycle !== 0) throw new Error('a cohort is a whole number of cycles')
  return (devices / devicesOfCycle) * eventsOfCycle
}

export const tenantOf = (device: number): string => tenants[device % tenants.length]!

const md5 = (text: string): string => hash('md5', text)

export const deviceIdOf = (device: number): string => md5(`device ${device}`)

const sqlText = (text: string): string => `lower(hex(MD5(${text})))`

/** Inserts one slice of a cohort into `telemetry`: its views fill the derived tables. */
export async function insertSlice(
  clickhouse: Clickhouse,
  cohort: Cohort,
  slice: number,
): Promise<void> {
  const { firstDevice, devices, slices, sessions, startMs } = cohort
  const sliceMs = Math.floor(spanMs / slices)
  const names = tenants.map((tenant) => `'${tenant}'`).join(', ')
  await clickhouse.command({
    query: `
      insert into telemetry (tenant_id, device_id, session_id, event_id, received_at, user_id,
        account_id, sdk_version, platform, batch_type, client_action, rasp_score, rasp_action,
        flags, reasons, policy_version, policy_hash, epoch, signals, body, stream_offset)
      select
        [${names}][d % ${tenants.length} + 1],
        ${sqlText(`concat('device ', toString(d))`)},
        ${sqlText(`concat('session ', toString(d), ' ', toString(s))`)},
        concat('evt_', ${sqlText(
          `concat('event ', toString(d), ' ', toString(s), ' ', toString(e))`,
        )}),
        fromUnixTimestamp64Milli(toInt64(
          ${startMs} + ${slice} * ${sliceMs}
            + (d * 48611377 + s * 27182818) % ${sliceMs} + e * (1000 + (d + s) % 1800000)
        ), 'UTC'),
        if(d % 4 = 0, '', concat('user-', toString(d), '-', toString(s % 3))),
        if(d % 8 = 1, concat('account-', toString(d)), ''),
        '3.2.0', if(d % 3 = 0, 'ios', 'android'), if(e = 0, 'session_start', 'event'), 'ALLOW',
        if((d * 13 + s * 7 + e * 29) % 101 > 60, (d * 13 + s * 7 + e * 29) % 101, 0) as score,
        multiIf(score < 40, 'ALLOW', score < 75, 'REVIEW', 'BLOCK'),
        multiIf(score < 40, [], score < 75, ['ROOTED'], ['ROOTED', 'HOOKING_DETECTED']),
        '[]', 1, 'policy', 1, '{}', '{}',
        (${startMs} + ${slice} * ${sliceMs}) * 1000 + rowNumberInAllBlocks()
      from (
        select d, arrayJoin(range(${slice}, ${sessionsSql(sessions)}, ${slices})) as s,
          arrayJoin([0, 1]) as e
        from (select number as d from numbers(${firstDevice}, ${devices}))
      )
      settings max_threads = 1, max_insert_threads = 1, max_block_size = 65536,
        min_insert_block_size_rows = 262144, min_insert_block_size_bytes = 1000000000`,
  })
}

const sessionsSql = (sessions: number | null): string =>
  sessions === null ? 'toUInt64(1 + (d * 7) % 30)' : String(sessions)

/** The expected body of the API, without sessions older than `sessionsMax`. */
export type ExpectedDevice = {
  device_id: string
  first_seen_at: string
  last_seen_at: string
  peak_rasp_score: number
  risk_score: number
  platform: string
  sdk_version: string
  users_seen_on: string[]
  sessions: {
    session_id: string
    rasp_action: string
    started_at: string
    last_seen_at: string
    rasp_score: number
    flags: string[]
    risk_score: number
    action: string
    risk_flags: string[]
    platform: string
    sdk_version: string
  }[]
  sessions_total: number
}

/** The expected answer of the API for a device once all slices of its cohort are inserted. */
export function expectDevice(cohort: Cohort, d: number, sessionsMax = 10_000): ExpectedDevice {
  const total = cohort.sessions ?? 1 + ((d * 7) % 30)
  const sliceMs = Math.floor(spanMs / cohort.slices)
  const users = new Set<string>()
  const sessions = Array.from({ length: total }, (_, s) => {
    const slice = s % cohort.slices
    const startedMs =
      cohort.startMs + slice * sliceMs + ((d * 48_611_377 + s * 27_182_818) % sliceMs)
    if (d % 4 !== 0) users.add(`user-${d}-${s % 3}`)
    const score = Math.max(...[0, 1].map((e) => scoreOf(d, s, e)))
    return {
      session_id: md5(`session ${d} ${s}`),
      rasp_action: score < 40 ? 'ALLOW' : score < 75 ? 'REVIEW' : 'BLOCK',
      startedMs,
      lastSeenMs: startedMs + 1_000 + ((d + s) % 1_800_000),
      rasp_score: score,
      flags: score < 40 ? [] : score < 75 ? ['ROOTED'] : ['ROOTED', 'HOOKING_DETECTED'],
    }
  })
  if (d % 8 === 1) users.add(`account-${d}`)
  sessions.sort((a, b) => b.startedMs - a.startedMs || (a.session_id < b.session_id ? 1 : -1))
  const iso = (ms: number) => new Date(ms).toISOString()
  // Nothing is decided, so each risk is what the edge made of it.
  const peak = sessions.reduce((most, one) => Math.max(most, one.rasp_score), 0)
  const client = { platform: d % 3 === 0 ? 'ios' : 'android', sdk_version: '3.2.0' }
  return {
    device_id: deviceIdOf(d),
    first_seen_at: iso(sessions.at(-1)!.startedMs),
    last_seen_at: iso(sessions.reduce((last, one) => Math.max(last, one.lastSeenMs), 0)),
    peak_rasp_score: peak,
    risk_score: peak,
    ...client,
    users_seen_on: [...users].sort(),
    sessions: sessions.slice(0, sessionsMax).map((one) => ({
      session_id: one.session_id,
      rasp_action: one.rasp_action,
      started_at: iso(one.startedMs),
      last_seen_at: iso(one.lastSeenMs),
      rasp_score: one.rasp_score,
      flags: one.flags,
      risk_score: one.rasp_score,
      action: one.rasp_action,
      risk_flags: one.flags,
      ...client,
    })),
    sessions_total: total,
  }
}

function scoreOf(d: number, s: number, e: number): number {
  const score = (d * 13 + s * 7 + e * 29) % 101
  return score > 60 ? score : 0
}
