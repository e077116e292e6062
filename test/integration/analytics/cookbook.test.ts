// Every question of the cookbook, run on the real engine over the simulated fleet. The expected
// answers are computed from the simulator's plan, so that a query with a wrong result fails.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import { readClientScore } from '#shared/core/telemetry/submission.ts'
import { readCookbook } from '#shared/io/analytics/cookbook.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { generatedPages, readGenerated, toStaleText } from '../../generate/files.ts'
import { type Answer, runQuestion } from '../../support/analytics/cookbook.ts'
import {
  cookbookFleet,
  historyEndMs,
  historyStartMs,
} from '../../support/analytics/cookbook-span.ts'
import {
  type FleetHistory,
  fleetTenant,
  insertHistory,
  multiplyHistory,
  planHistory,
} from '../../support/analytics/fleet-history.ts'
import { toDashboard, variable } from '../../support/analytics/grafana-dashboard.ts'
import type { HistoryEvent } from '../../support/analytics/history-alerts.ts'
import {
  leakedIssuer,
  leakedModels,
  makeRegistrations,
} from '../../support/analytics/history-installs.ts'
import { seed } from '../../support/process/seed.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'
import { describeLabels } from './cookbook-labels.ts'
import { describeNetworks } from './cookbook-networks.ts'
import { describePhones } from './cookbook-phones.ts'

/** The fleet of the page; `SEED=N` takes another one for everything but the page. */
const fleetSeed = process.env.SEED === undefined ? cookbookFleet.seed : seed
const { devices } = cookbookFleet
const questions = readCookbook()
let server: TestClickhouse
let clickhouse: Clickhouse
let history: FleetHistory

beforeAll(async () => {
  process.stdout.write(`cookbook seed ${fleetSeed}\n`)
  server = await startClickhouse({ isMigrated: true })
  clickhouse = createClickhouse(server.url, { name: 'test' })
  history = planHistory(fleetSeed, devices)
  await insertHistory(clickhouse, history)
})
afterAll(async () => {
  await clickhouse?.close()
  await server?.stop()
})

/** Calls `render` with the history of the page, which has a server of its own for another seed. */
async function withPageHistory(
  render: (server: { clickhouse: Clickhouse; history: FleetHistory }) => Promise<string>,
): Promise<string> {
  if (fleetSeed === cookbookFleet.seed) return render({ clickhouse, history })
  const own = await startClickhouse({ isMigrated: true })
  const client = createClickhouse(own.url, { name: 'test' })
  try {
    const pageHistory = planHistory(cookbookFleet.seed, devices)
    await insertHistory(client, pageHistory)
    return await render({ clickhouse: client, history: pageHistory })
  } finally {
    await client.close()
    await own.stop()
  }
}

const find = (name: string) => questions.find((one) => one.name.endsWith(name))!
const answer = (name: string, given: Record<string, string> = {}): Promise<Answer> =>
  runQuestion(clickhouse, find(name), { tenant: fleetTenant, ...given })
const toMs = (text: unknown) => Date.parse(`${String(text).replace(' ', 'T')}Z`)

/** Groups, in the order of their first members. */
function group<T>(all: readonly T[], keyOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of all) {
    const key = keyOf(one)
    const own = groups.get(key)
    if (own === undefined) groups.set(key, [one])
    else own.push(one)
  }
  return groups
}
const distinct = (values: readonly string[]) => new Set(values).size
const deviceOf = ({ event }: HistoryEvent) => event.body.device_id
const usersOf = ({ event: { body } }: HistoryEvent) =>
  [body.user_id, body.account_id].filter((one) => one !== undefined)
const byDevice = () => group(history.events, deviceOf)
const versionOf = ({ event: { body } }: HistoryEvent) =>
  `${body.sdk_meta.platform} ${body.sdk_meta.sdk_version}`

/** When each user was first and last seen on each device. */
function pairsOf() {
  const pairs = history.events.flatMap((one) =>
    [...new Set(usersOf(one))].map((user) => ({
      user,
      device: deviceOf(one),
      at: one.event.received_at,
    })),
  )
  return [...group(pairs, ({ user, device }) => JSON.stringify([user, device])).values()].map(
    (some) => ({ ...some[0]!, firstMs: some[0]!.at, lastMs: some.at(-1)!.at }),
  )
}

/** When the first alert of each device was confirmed. */
function confirmedMs(): Map<string, number> {
  const confirmed = history.alerts.filter((one) => one.disposition === 'CONFIRMED')
  return new Map(
    [...group(confirmed, (one) => one.deviceId)].map(([device, some]) => [
      device,
      Math.min(...some.map((one) => one.judgedAtMs!)),
    ]),
  )
}

const pick = (rows: Answer['rows'], ...columns: string[]) =>
  rows.map((row) => columns.map((column) => row[column]))
const sorted = <T>(rows: readonly T[]): T[] =>
  [...rows].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
const round = (value: number, digits: number) => Number(value.toFixed(digits))

describe('a question about farms', () => {
  it('finds every phone of a farm by its findings, and no honest phone', async () => {
    const placeless = (one: HistoryEvent) =>
      one.detected.filter((path) => !/^(network|ecosystem)/.test(path))
    const farms = group(
      history.events.filter((one) => one.phone.kind.name === 'emulator-farm'),
      (one) => [versionOf(one), String(placeless(one))].join(' '),
    )
    const sizes = [...farms].map(([key, some]) => [key, distinct(some.map(deviceOf))] as const)
    // Farms are smaller or larger by seed. No honest phone has as many findings.
    const least = Math.ceil(Math.max(...sizes.map(([, size]) => size)) / 2)
    const limits = { devices_min: String(least), findings_min: '8' }
    const { rows } = await answer('device-farms', limits)
    const large = sizes.filter(([, size]) => size >= least)
    expect(least).toBeGreaterThan(3)
    expect(
      sorted(
        rows.map((row) => [`${row.platform} ${row.sdk_version} ${row.findings}`, row.devices]),
      ),
    ).toEqual(sorted(large))
  })

  it('finds every device with more users than a household', async () => {
    const { rows } = await answer('many-users-on-a-device')
    const expected = [...byDevice()]
      .map(([device, some]) => [device, distinct(some.flatMap(usersOf))] as const)
      .filter(([, users]) => users >= 6)
    expect(expected.length).toBeGreaterThan(3)
    expect(sorted(pick(rows, 'device_id', 'users_seen'))).toEqual(sorted(expected))
    const confirmed = history.alerts.filter((one) => one.disposition === 'CONFIRMED')
    for (const row of rows) {
      expect(row.confirmed).toBe(confirmed.filter((one) => one.deviceId === row.device_id).length)
    }
  })

  it('finds every account on more devices than a person owns', async () => {
    const { rows } = await answer('many-devices-of-a-user')
    const expected = [...group(pairsOf(), ({ user }) => user)]
      .map(([user, pairs]) => [user, pairs.length] as const)
      .filter(([, count]) => count >= 3)
    expect(expected.length).toBeGreaterThan(3)
    expect(sorted(pick(rows, 'user_id', 'devices'))).toEqual(sorted(expected))
  })

  it('shows the versions of the emulators', async () => {
    const { rows } = await answer('emulators-by-version')
    const virtual = /^emulator\.(is_emulator|is_simulator|cloud_phone)$/
    const expected = [...group(history.events, versionOf)]
      .map(([version, some]) => {
        const found = some.filter(({ detected }) => detected.some((path) => virtual.test(path)))
        return [version, distinct(some.map(deviceOf)), distinct(found.map(deviceOf))] as const
      })
      .filter(([, count]) => count >= 5)
    expect(
      sorted(rows.map((row) => [`${row.platform} ${row.sdk_version}`, row.devices, row.emulators])),
    ).toEqual(sorted(expected))
  })
})

describe('a question about signals', () => {
  it('names the release that caused a prevalence spike before any other new version', async () => {
    const { release } = history.stories
    const { rows } = await answer('signal-jumped-with-a-release')
    const planted = rows.find((row) => row.signal === release.signal)
    expect(planted).toMatchObject({ platform: release.platform, sdk_version: release.sdkVersion })
    const onIt = history.events.filter((one) => versionOf(one) === `android ${release.sdkVersion}`)
    const hit = onIt.filter(({ detected }) => detected.includes(release.signal))
    expect(planted).toMatchObject({
      devices: distinct(hit.map(deviceOf)),
      fleet: distinct(onIt.map(deviceOf)),
    })
    expect(Number(planted?.share)).toBeGreaterThan(5 * Number(planted?.share_elsewhere))
    // Before the release the signal was not detected.
    const before = await answer('signal-jumped-with-a-release', {
      to: new Date(release.fromMs).toISOString().replace('T', ' ').replace('Z', ''),
    })
    expect(before.rows.filter((row) => row.signal === release.signal)).toEqual([])
  })

  it('shows the day on which the prevalence of a signal rose', async () => {
    const { release } = history.stories
    const { rows } = await answer('signal-share-by-day')
    const own = rows.filter((row) => row.sdk_version === release.sdkVersion)
    expect(own.length).toBeGreaterThan(5)
    expect(toMs(`${own[0]?.day} 00:00:00`)).toBeGreaterThanOrEqual(release.fromMs)
    const [day, some] = [
      ...group(
        history.events.filter(({ detected }) => detected.includes(release.signal)),
        ({ event }) => new Date(event.received_at).toISOString().slice(0, 10),
      ),
    ].at(-1)!
    expect(
      rows.filter((row) => row.day === day).reduce((sum, row) => sum + Number(row.devices), 0),
    ).toBe(distinct(some.map(deviceOf)))
  })

  it('finds the devices that became rooted, and when', async () => {
    const { rows } = await answer('became-rooted')
    const expected = history.stories.rooted.map(({ deviceId, rootedAtMs }) => [
      deviceId,
      rootedAtMs,
    ])
    const flapping = new Set(
      history.events
        .filter(({ event }) => history.stories.flapping.includes(event.body.session_id))
        .map(deviceOf),
    )
    const found = rows
      .filter((row) => !flapping.has(String(row.device_id)))
      .map((row) => [row.device_id, toMs(row.first_rooted_at)])
    expect(sorted(found)).toEqual(sorted(expected))
    expect(rows.length - found.length).toBe(flapping.size)
    expect(rows[0]?.found).toContain('root.su_binary')
  })

  it('counts the prevalence of VPNs by the hour, with its peak at night', async () => {
    const { rows } = await answer('vpn-share-by-hour')
    const dayOf = (one: HistoryEvent) =>
      `${deviceOf(one)} ${Math.floor(one.event.received_at / dayMs)}`
    const byHour = group(history.events, ({ event }) =>
      String(new Date(event.received_at).getUTCHours()),
    )
    const expected = rows.map(({ hour }) => {
      const some = byHour.get(String(hour)) ?? []
      const on = some.filter(({ detected }) => detected.includes('network.vpn_active'))
      return [hour, distinct(some.map(dayOf)), distinct(on.map(dayOf))]
    })
    expect(rows).toHaveLength(byHour.size)
    expect(pick(rows, 'hour', 'devices', 'devices_with_vpn')).toEqual(expected)
    const share = (from: number, to: number) =>
      Math.min(...rows.slice(from, to).map((row) => Number(row.share)))
    expect(share(0, 5)).toBeGreaterThan(2 * share(8, 20))
  })

  it('finds the sessions with flipping findings', async () => {
    const { rows } = await answer('flapping-sessions')
    const sessions = group(history.events, (one) => `${deviceOf(one)} ${one.event.body.session_id}`)
    const expected = [...sessions.values()].flatMap((some) => {
      const steps = some.toSorted(
        ({ event: a }, { event: b }) =>
          a.received_at - b.received_at || (a.event_id < b.event_id ? -1 : 1),
      )
      const findings = [...new Set(steps.flatMap(({ detected }) => detected))].filter((path) => {
        const has = steps.map(({ detected }) => detected.includes(path))
        return has.filter((now, at) => at > 0 && now !== has[at - 1]).length >= 3
      })
      return findings.length === 0 ? [] : [[some[0]!.event.body.session_id, findings.sort()]]
    })
    expect(sorted(pick(rows, 'session_id', 'findings'))).toEqual(sorted(expected))
    // Phones flap by chance as well; those of the story flap every time.
    const told = rows.filter((row) => history.stories.flapping.includes(String(row.session_id)))
    expect(told).toHaveLength(history.stories.flapping.length)
    for (const row of told) {
      expect(row).toMatchObject({ changes: 5, events: 6, findings: ['root.su_binary'] })
    }
  })

  it('lists signals outside the catalog', async () => {
    const { rows } = await answer('unknown-signals')
    const ahead = history.events.filter((one) => versionOf(one) === 'android 3.1.0')
    const planted = rows.find(
      (row) => row.signal === 'root.zygisk_companion_detected' && row.sdk_version === '3.1.0',
    )
    expect(planted).toMatchObject({ events: ahead.length, devices: distinct(ahead.map(deviceOf)) })
  })
})

describe('a question about users', () => {
  it('finds the known users who moved to a device after its confirmed case', async () => {
    const { rows } = await answer('moved-to-a-confirmed-device')
    const caseMs = confirmedMs()
    const pairs = pairsOf()
    const since = new Map<string, number>()
    for (const { user, firstMs } of pairs) {
      since.set(user, Math.min(firstMs, since.get(user) ?? firstMs))
    }
    const expected = pairs
      .filter(
        ({ device, user, firstMs }) =>
          firstMs > (caseMs.get(device) ?? Infinity) && since.get(user)! < firstMs,
      )
      .map(({ user, device }) => [user, device])
    expect(sorted(pick(rows, 'user_id', 'device_id'))).toEqual(sorted(expected))
    const { deviceId, users } = history.stories.movedTo
    expect(users).toHaveLength(3)
    for (const user of users) expect(expected).toContainEqual([user, deviceId])
  })

  it('finds the accounts that became active again on a new device', async () => {
    const { rows } = await answer('dormant-accounts')
    const pairs = pairsOf()
    const expected = pairs.flatMap(({ user, device, firstMs }) => {
      const older = pairs.filter(
        (one) => one.user === user && one.device !== device && one.firstMs < firstMs,
      )
      const lastMs = Math.max(...older.map((one) => one.lastMs))
      return older.length > 0 && lastMs < firstMs - 30 * dayMs ? [[user, device]] : []
    })
    expect(sorted(pick(rows, 'user_id', 'device_id'))).toEqual(sorted(expected))
    for (const { userId, deviceId } of history.stories.woken) {
      expect(expected).toContainEqual([userId, deviceId])
    }
  })

  it('finds the sessions that continued on another device, in order', async () => {
    const { rows } = await answer('shared-sessions')
    expect(sorted(pick(rows, 'session_id').flat())).toEqual(sorted(history.stories.shared))
    for (const row of rows) {
      const own = history.events.filter(({ event }) => event.body.session_id === row.session_id)
      expect(row.in_order_of_arrival).toEqual([...new Set(own.map(deviceOf))])
    }
  })

  it('finds the devices that start too many sessions in an hour', async () => {
    const { rows } = await answer('velocity-outliers')
    const sessions = [
      ...group(history.events, (one) => `${deviceOf(one)} ${one.event.body.session_id}`).values(),
    ]
    const hours = group(
      sessions.map(([first]) => first!),
      (one) => `${deviceOf(one)} ${Math.floor(one.event.received_at / hourMs)}`,
    )
    const expected = [...hours.values()]
      .filter((some) => some.length >= 20)
      .map((some) => [deviceOf(some[0]!), some.length])
    expect(expected.length).toBeGreaterThan(2)
    expect(sorted(pick(rows, 'device_id', 'sessions'))).toEqual(sorted(expected))
  })

  it('finds every device whose client score is far below its signals', async () => {
    const { rows } = await answer('forged-verdicts')
    const expected = [...byDevice()].flatMap(([device, some]) => {
      const apart = some.filter(
        ({ event }) => event.rasp_score - readClientScore(event.body.scorer) >= 30,
      ).length
      return apart >= 2 ? [[device, apart]] : []
    })
    expect(expected.length).toBeGreaterThan(10)
    expect(sorted(pick(rows, 'device_id', 'events_apart'))).toEqual(sorted(expected))
    // The same events of clients that compute no score.
    const copies = { silent: `' ' as client_action`, unscored: '-1 as client_score' }
    for (const [tenant, replaced] of Object.entries(copies)) {
      await clickhouse.command({
        query: `insert into telemetry (* except row_version)
          select * except row_version replace ('${tenant}' as tenant_id, ${replaced})
          from telemetry where tenant_id = '${fleetTenant}'`,
      })
      expect((await answer('forged-verdicts', { tenant })).rows).toEqual([])
    }
  })
})

describe('a question about alerts', () => {
  it('counts the precision of every flag, with its confidence interval', async () => {
    const { rows } = await answer('precision-per-flag')
    const judged = new Map<string, [number, number]>()
    for (const { codes, disposition } of history.alerts) {
      for (const code of codes) {
        const [confirmed, refuted] = judged.get(code) ?? [0, 0]
        judged.set(code, [
          confirmed + Number(disposition === 'CONFIRMED'),
          refuted + Number(disposition === 'FALSE_POSITIVE'),
        ])
      }
    }
    const expected = [...judged]
      .filter(([, [confirmed, refuted]]) => confirmed + refuted > 0)
      .map(([code, [confirmed, refuted]]) => [
        ...[code, confirmed, refuted],
        round(confirmed / (confirmed + refuted), 3),
      ])
    expect(sorted(pick(rows, 'flag', 'confirmed', 'false_positive', 'precision'))).toEqual(
      sorted(expected),
    )
    for (const row of rows) {
      expect(Number(row.low)).toBeLessThanOrEqual(Number(row.precision))
      expect(Number(row.high)).toBeGreaterThanOrEqual(Number(row.precision))
      // The interval of few dispositions never claims certainty.
      expect(Number(row.high) - Number(row.low)).toBeGreaterThan(0)
      expect(Number(row.high) - Number(row.low)).toBeLessThan(1)
    }
  })

  it('counts the alerts that a lower threshold would have blocked, by disposition', async () => {
    const { rows } = await answer('lower-block-threshold')
    const keyOf = (one: { deviceId: string; sessionId: string }) =>
      `${one.deviceId} ${one.sessionId}`
    const blocked = new Set(history.alerts.filter((one) => one.action === 'BLOCK').map(keyOf))
    const moved = history.alerts.filter((one) => one.action === 'REVIEW' && one.riskScore >= 70)
    const expected = [...group(moved, (one) => one.disposition)].map(([disposition, some]) => {
      const fresh = some.filter((one) => !blocked.has(keyOf(one)))
      return [
        disposition,
        fresh.length,
        distinct(fresh.map((one) => one.deviceId)),
        some.length - fresh.length,
      ]
    })
    expect(expected.length).toBeGreaterThan(2)
    expect(
      sorted(pick(rows, 'disposition', 'newly_blocked', 'devices', 'blocked_anyway_alerts')),
    ).toEqual(sorted(expected))
  })

  it('counts reasons, and their dispositions in the later half', async () => {
    const { rows } = await answer('top-reasons')
    const middleMs = toMs('2026-07-01 00:00:00') + 45 * dayMs
    const all = history.alerts.flatMap(({ codes, createdAtMs }) =>
      codes.map((code) => ({ code, createdAtMs })),
    )
    const expected = [...group(all, ({ code }) => code)].map(([code, some]) => [
      ...[code, some.length],
      some.filter((one) => one.createdAtMs >= middleMs).length,
    ])
    expect(sorted(pick(rows, 'reason', 'alerts', 'later'))).toEqual(sorted(expected))
  })

  it('lists exactly the failed and late deliveries', async () => {
    const { rows } = await answer('late-deliveries')
    const expected = history.deliveries
      .filter((one) => one.state !== 'delivered' || one.endedAtMs! - one.createdAtMs > 62_000)
      .map((one) => [one.alertId, one.state])
    expect(expected.length).toBeGreaterThan(10)
    expect(sorted(pick(rows, 'alert_id', 'state'))).toEqual(sorted(expected))
  })

  it('finds the devices that continued after they had been confirmed', async () => {
    const { rows } = await answer('repeat-offenders')
    const caseMs = confirmedMs()
    const expected = [...group(history.alerts, (one) => one.deviceId)].flatMap(([device, some]) => {
      const confirmedAtMs = caseMs.get(device) ?? Infinity
      const since = some.filter((one) => one.createdAtMs > confirmedAtMs).length
      return since >= 2 ? [[device, since]] : []
    })
    expect(expected.length).toBeGreaterThan(5)
    expect(sorted(pick(rows, 'device_id', 'alerts_since'))).toEqual(sorted(expected))
  })

  it('counts the age of devices at their first alert', async () => {
    const { rows } = await answer('time-to-first-alert')
    const firstSeen = new Map(
      [...byDevice()].map(([device, some]) => [device, some[0]!.event.received_at]),
    )
    const limits = [60, 3_600, 86_400, 604_800]
    const counts = new Map<string, number>()
    for (const [device, some] of group(history.alerts, (one) => one.deviceId)) {
      const ms = Math.min(...some.map((one) => one.createdAtMs))
      const seconds = Math.floor(ms / 1000) - Math.floor(firstSeen.get(device)! / 1000)
      const at = limits.findIndex((limit) => seconds < limit)
      const bucket = String(at === -1 ? 5 : at + 1)
      counts.set(bucket, (counts.get(bucket) ?? 0) + 1)
    }
    expect(rows.map((row) => [String(row.time_to_first_alert)[0], row.devices])).toEqual(
      sorted([...counts]),
    )
  })

  it('names the hour of an alert wave, and its main reason', async () => {
    const { rows } = await answer('noisy-hours')
    const burst = rows.find((row) => toMs(row.hour) === history.stories.burstHourMs)
    expect(burst).toMatchObject({ leading_reason: 'HOOKING_DETECTED' })
    expect(Number(burst?.devices)).toBeGreaterThanOrEqual(25)
    const hours = group(history.alerts, (one) =>
      String(Math.floor(one.createdAtMs / hourMs) * hourMs),
    )
    const usual = history.alerts.length / (90 * 24)
    const expected = [...hours].filter(([, some]) => some.length >= 10 && some.length >= 5 * usual)
    expect(sorted(rows.map((row) => [toMs(row.hour), row.alerts]))).toEqual(
      sorted(expected.map(([hour, some]) => [Number(hour), some.length])),
    )
  })
})

describe('a question about work', () => {
  it('shows the open alerts of each assignee, and how long the oldest waits', async () => {
    const { rows } = await answer('open-alerts-by-assignee')
    const open = history.alerts.filter((one) => one.disposition === 'OPEN')
    const expected = [...group(open, (one) => one.assignee)].map(([assignee, some]) => {
      const oldest = some.toSorted((a, b) => a.createdAtMs - b.createdAtMs)[0]!
      return [
        ...[assignee, some.length],
        some.filter((one) => one.createdAtMs < historyEndMs - dayMs).length,
        ...[oldest.createdAtMs, oldest.alertId, Math.max(...some.map((one) => one.riskScore))],
      ]
    })
    expect(expected.length).toBeGreaterThan(3)
    const found = rows.map((row) => [
      ...[row.assignee, row.open_alerts, row.older],
      ...[toMs(row.oldest_at), row.oldest_alert, row.peak_risk],
    ])
    expect(found).toEqual(expected.toSorted((a, b) => Number(a[3]) - Number(b[3])))
  })
})

describe('over time', () => {
  const bySession = () => [
    ...group(history.events, (one) => `${deviceOf(one)} ${one.event.body.session_id}`).values(),
  ]
  const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)
  /** The Monday of an instant, in UTC. */
  const weekOf = (ms: number) => {
    const day = Math.floor(ms / dayMs)
    return dayOf((day - ((day + 3) % 7)) * dayMs)
  }

  const rank = ({ rasp_action: action }: HistoryEvent['event']) =>
    ['ALLOW', 'REVIEW', 'BLOCK'].indexOf(action)

  it('counts the sessions of each day by their action', async () => {
    const { rows } = await answer('hit-rate-by-day')
    const days = group(bySession(), ([first]) => dayOf(first!.event.received_at)) as Map<
      string,
      HistoryEvent[][]
    >
    const expected = [...days].map(([day, sessions]) => {
      const actions = sessions.map(
        (some) =>
          some
            .map(({ event }) => event)
            .toSorted((a, b) => b.rasp_score - a.rasp_score || rank(b) - rank(a))[0]!.rasp_action,
      )
      const count = (action: string) => actions.filter((one) => one === action).length
      return [
        ...[day, sessions.length, count('REVIEW'), count('BLOCK')],
        distinct(sessions.map(([one]) => deviceOf(one!))),
      ]
    })
    expect(expected.length).toBeGreaterThan(80)
    expect(pick(rows, 'day', 'sessions', 'reviewed', 'blocked', 'devices')).toEqual(
      sorted(expected),
    )
    for (const { sessions, reviewed, blocked, hit_rate: rate } of rows) {
      expect(rate).toBeCloseTo((Number(reviewed) + Number(blocked)) / Number(sessions), 3)
    }
  })

  it('follows the devices of each week: who stays, and who alerts', async () => {
    const { rows } = await answer('cohorts-by-first-week')
    const firstAlert = new Map<string, number>()
    for (const { deviceId, createdAtMs } of history.alerts) {
      firstAlert.set(deviceId, Math.min(createdAtMs, firstAlert.get(deviceId) ?? Infinity))
    }
    const devices = [...byDevice()].map(([device, some]) => ({
      firstMs: some[0]!.event.received_at,
      lastMs: some.at(-1)!.event.received_at,
      alertMs: firstAlert.get(device) ?? Infinity,
    }))
    const expected = [...group(devices, ({ firstMs }) => weekOf(firstMs))].map(([week, some]) => {
      const count = (is: (one: (typeof some)[number]) => boolean) => some.filter(is).length
      return [
        ...[week, some.length],
        ...[7, 28].map((days) => count((one) => one.lastMs >= one.firstMs + days * dayMs)),
        ...[1, 7].map((days) => count((one) => one.alertMs < one.firstMs + days * dayMs)),
        count((one) => one.alertMs !== Infinity),
      ]
    })
    expect(expected.length).toBeGreaterThan(10)
    expect(rows.map((row) => Object.values(row))).toEqual(sorted(expected))
    for (const column of Object.keys(rows[0]!)) {
      const isSome = rows.some((row) => row[column] !== 0)
      expect([column, isSome]).toEqual([column, true])
    }
  })

  it('follows the sessions of each week down to confirmed alerts', async () => {
    const { rows } = await answer('funnel-to-confirmed')
    const delivered = new Set(
      history.deliveries.filter((one) => one.state === 'delivered').map((one) => one.alertId),
    )
    const sessions = group(bySession(), ([first]) => weekOf(first!.event.received_at))
    const expected = [...sessions].map(([week, own]) => {
      const alerts = history.alerts.filter((one) => weekOf(one.createdAtMs) === week)
      return [
        ...[week, own.length, distinct(alerts.map((one) => `${one.deviceId} ${one.sessionId}`))],
        ...[alerts.length, alerts.filter((one) => delivered.has(one.alertId)).length],
        alerts.filter((one) => one.disposition !== 'OPEN').length,
        alerts.filter((one) => one.disposition === 'CONFIRMED').length,
      ]
    })
    expect(expected.length).toBeGreaterThan(10)
    expect(rows.map((row) => Object.values(row))).toEqual(sorted(expected))
  })

  it('measures who judges alerts, and how fast', async () => {
    const { rows } = await answer('judging-speed')
    type Judged = Record<`disposition_${'at' | 'actor' | 'to'}`, string[]> & { created_at: string }
    const judged = (history.alertRows as unknown as Judged[]).filter(
      (one) => one.disposition_at.length > 0,
    )
    const byActor = group(judged, (one) => one.disposition_actor[0]!)
    const at = (values: number[], share: number) =>
      values.toSorted((a, b) => a - b)[
        Math.min(values.length - 1, Math.floor(values.length * share))
      ]!
    const expected = [...byActor].map(([actor, some]) => {
      const seconds = some.map(
        (one) => (toMs(one.disposition_at[0]) - toMs(one.created_at)) / 1_000,
      )
      const confirmed = some.filter((one) => one.disposition_to[0] === 'CONFIRMED').length
      return [
        ...[actor, some.length, round(at(seconds, 0.5) / 3_600, 2)],
        ...[round(at(seconds, 0.9) / 3_600, 2), confirmed, round(confirmed / some.length, 3)],
      ]
    })
    expect(expected.length).toBeGreaterThan(1)
    const columns = ['actor', 'judged', 'median_hours', 'slowest_tenth_hours', 'confirmed']
    expect(sorted(pick(rows, ...columns, 'confirmed_share'))).toEqual(sorted(expected))
  })
})

describe('a question about attestation', () => {
  type Counts = [version: string, all: number, valid: number, verified: number, inHardware: number]
  const registrations = () => makeRegistrations(history.events)

  it('shows the share of devices with verified evidence by SDK version and platform', async () => {
    const { rows } = await answer('attestation-coverage')
    const bodies = new Map(registrations().map(({ body }) => [body.device_id, body]))
    const devices = [...byDevice()].map(([device, some]) => {
      const { event } = some.at(-1)!
      const { sdk_version, platform } = event.body.sdk_meta
      const body = bodies.get(device)
      const isValid = body !== undefined && body.expires_at > event.received_at
      return { key: `${sdk_version} ${platform}`, valid: isValid ? body : null }
    })
    const expected = [...group(devices, ({ key }) => key)].map(([key, some]): Counts => {
      const valid = some.flatMap((one) => one.valid ?? [])
      const verified = valid.filter((one) => one.verdict === 'verified').length
      const inHardware = valid.filter((one) => one.level === 'hardware').length
      return [key, some.length, valid.length, verified, inHardware]
    })
    expect(expected.some(([, all, valid]) => valid > 10 && valid < all)).toBe(true)
    const columns = ['devices', 'registered', 'verified', 'in_hardware']
    const found = rows.map((row) => [
      `${row.sdk_version} ${row.platform}`,
      ...columns.map((column) => row[column]),
    ])
    expect(sorted(found)).toEqual(sorted(expected))
  })

  it('says why attestations fail, and on how many devices and models', async () => {
    const { rows } = await answer('why-attestations-fail')
    const rejected = registrations().filter(({ body }) => body.verdict === 'rejected')
    const models = distinct(rejected.map(({ body }) => body.device_model))
    expect(rejected.length).toBeGreaterThan(5)
    expect(pick(rows, 'provider', 'reason', 'devices', 'models')).toEqual([
      ['key_attestation', 'bootloader_unlocked', rejected.length, models],
    ])
  })

  it('finds the certificate that leaked, and no other key', async () => {
    const { rows } = await answer('leaked-keyboxes')
    const leaked = registrations().filter(({ body }) => body.issuers[0] === leakedIssuer)
    expect(pick(rows, 'kind', 'certificate_or_key', 'devices', 'models')).toEqual([
      ['certificate of a batch', leakedIssuer, leaked.length, leakedModels],
    ])
  })
})

describeNetworks({ answer, findHistory: () => history })
describePhones({ answer, findHistory: () => history })
describeLabels({ answer, findHistory: () => history, findClickhouse: () => clickhouse })

describe('the cookbook', () => {
  it('queries only the views, by tenant and time, within the limits of an analyst', () => {
    expect(questions.length).toBeGreaterThanOrEqual(40)
    for (const { name, sql } of questions) {
      const own = [...sql.matchAll(/^\s*(\w+) as \($/gm)].map((found) => found[1]!)
      const read = [...sql.matchAll(/(?<!array )\b(?:from|join)\s+([\w.]+)/gi)].map(
        (found) => found[1]!,
      )
      const foreign = read.filter((one) => !one.startsWith('analytics.') && !own.includes(one))
      expect([name, ...foreign]).toEqual([name])
      expect(sql).toContain('{tenant:String}')
      expect(sql).not.toMatch(/;|\bsystem\b|\b(url|file|remote|s3|merge)\s*\(/i)
    }
  })

  it('returns nothing for a tenant without data', async () => {
    for (const question of questions) {
      const { rows } = await runQuestion(clickhouse, question, { tenant: 'nobody' })
      expect([question.name, rows]).toEqual([question.name, []])
    }
  })

  it.each(Object.entries(generatedPages))('%s is not stale', async (path, render) => {
    const made = await withPageHistory(render)
    expect(readGenerated(path) === made, toStaleText(path)).toBe(true)
  })

  it('has the queries of Grafana', async () => {
    const text = toDashboard(questions)
    const { panels, templating } = JSON.parse(text) as {
      panels: { targets: { rawSql: string }[] }[]
      templating: { list: { name: string; query: string }[] }
    }
    const tenants = templating.list.find(({ name }) => name === 'tenant')!
    const offered = await clickhouse.query({ query: tenants.query, format: 'JSONCompactEachRow' })
    expect(await offered.json()).toEqual([[fleetTenant]])
    expect(panels.length).toBeGreaterThanOrEqual(5)
    const { release } = history.stories
    for (const { targets } of panels) {
      const query = targets[0]!.rawSql
        .replaceAll(variable('tenant:singlequote'), `'${fleetTenant}'`)
        .replaceAll(variable('signal:singlequote'), `'${release.signal}'`)
        .replaceAll(variable('__from'), String(historyStartMs))
        .replaceAll(variable('__to'), String(historyEndMs))
      expect(query).not.toMatch(/[$][{]/)
      const result = await clickhouse.query({ query, format: 'JSON' })
      expect((await result.json<Record<string, unknown>>()).data.length).toBeGreaterThan(0)
    }
  })
})

// The last test, because it changes the history.
it('the benchmark of the cookbook copies this history with its alerts and deliveries', async () => {
  const count = async (table: string) => {
    const query = `select count() from ${table} final`
    const result = await clickhouse.query({ query, format: 'JSONCompactEachRow' })
    return Number((await result.json<[string]>())[0]![0])
  }
  const tables = ['telemetry', 'alerts_replica', 'deliveries_replica']
  const before = await Promise.all(tables.map(count))
  await multiplyHistory(clickhouse, history, 2 * history.events.length)
  expect(await Promise.all(tables.map(count))).toEqual(before.map((rows) => 2 * rows))
})
