// Which action is right for what a device, a user or a session did before: the sister table of the
// devices, through the decider.
import { describe, expect, it } from 'vitest'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { decideRisk, noRiskFeatures } from '#shared/core/velocity/risk.ts'
import { context } from '../../support/scoring/any-policy.ts'
import { presetOrder, toSentSignals } from '../../support/scoring/devices/device-row.ts'

type HistoryRow = {
  history: string
  /** Counts by `metric:windowSeconds`. */
  counts: Record<string, number>
  signals?: Partial<Signals>
  /** A, R or B for permissive, balanced, strict, regulated-banking and mobility. */
  right: string
  why: string
}

const month = 2_592_000
const rooted = { root: { su_binary: true, magisk_detected: true, root_management_app: true } }
const remote = { ecosystem: { remote_control_active: true } }

const rows: HistoryRow[] = [
  {
    history: 'a phone that is opened twenty times an hour',
    counts: { 'sessions_per_device:300': 4, 'sessions_per_device:3600': 20 },
    right: 'AAAAA',
    why: 'People open a messenger so often.',
  },
  {
    history: 'an app that crashes and starts again',
    counts: { 'sessions_per_device:300': 21 },
    right: 'AARAA',
    why: 'A bad release does so; a strict tenant asks.',
  },
  {
    history: '30 sessions in seconds',
    counts: { 'sessions_per_device:300': 30, 'sessions_per_device:3600': 30 },
    right: 'ARRRR',
    why: 'No person starts an app every second.',
  },
  {
    history: '150 sessions within an hour',
    counts: { 'sessions_per_device:3600': 150 },
    right: 'ARRRR',
    why: 'A script that paces itself.',
  },
  {
    history: 'a family tablet',
    counts: { 'users_per_device:86400': 3, [`users_per_device:${month}`]: 5 },
    right: 'AAAAA',
    why: 'Five people share it.',
  },
  {
    history: 'a tablet of a small shop',
    counts: { 'users_per_device:86400': 6, [`users_per_device:${month}`]: 9 },
    right: 'AARAA',
    why: 'Its staff signs in; a strict tenant asks.',
  },
  {
    history: '50 users on one device',
    counts: { 'users_per_device:86400': 12, [`users_per_device:${month}`]: 50 },
    right: 'ARRRR',
    why: 'An account farm, or a kiosk that the tenant puts on a list.',
  },
  {
    history: '12 users on one device in a day',
    counts: { 'users_per_device:86400': 12, [`users_per_device:${month}`]: 12 },
    right: 'ARRRR',
    why: 'An account farm that began today.',
  },
  {
    history: 'a user with a phone, a tablet and a laptop',
    counts: { 'devices_per_user:86400': 3, [`devices_per_user:${month}`]: 4 },
    right: 'AAAAA',
    why: 'People own several devices.',
  },
  {
    history: '10 devices of a user',
    counts: { 'devices_per_user:86400': 2, [`devices_per_user:${month}`]: 10 },
    right: 'ARRRR',
    why: 'A password that many share, or an identity that changes.',
  },
  {
    history: '8 devices of a user in a day',
    counts: { 'devices_per_user:86400': 8, [`devices_per_user:${month}`]: 8 },
    right: 'ARRRR',
    why: 'A password that many share.',
  },
  {
    history: 'a session on two devices',
    counts: { 'devices_per_session:86400': 2 },
    right: 'ARRRR',
    why: 'The session was copied.',
  },
  {
    history: 'a device that was another platform before',
    counts: { [`platforms_per_device:${month}`]: 2 },
    right: 'AAAAA',
    why: 'An id that two builds of one app share.',
  },
  {
    history: 'a known user on a new device',
    counts: { [`new_device_of_user:${month}`]: 1 },
    right: 'AAAAA',
    why: 'People buy phones.',
  },
  {
    history: 'a known user on a new device under remote control',
    counts: { [`new_device_of_user:${month}`]: 1 },
    signals: remote,
    right: 'ARRRR',
    why: 'An account that is being taken over.',
  },
  {
    history: 'a known user on the usual device under remote control',
    counts: {},
    signals: remote,
    right: 'AARAA',
    why: 'Support of a company; a strict tenant asks.',
  },
  {
    history: 'a traveller in four countries in a day, or one behind a VPN',
    counts: { 'countries_per_user:86400': 4, 'countries_per_device:86400': 4 },
    right: 'AAAAA',
    why: 'A long journey with a change, or a try of some VPN servers.',
  },
  {
    history: 'a phone that is passed on from mast to mast',
    counts: { 'networks_per_device:86400': 30 },
    right: 'AAAAA',
    why: 'Carriers change the addresses of a phone on a train.',
  },
  {
    history: 'a user in two places at once',
    counts: { 'impossible_travel:86400': 1 },
    right: 'AARAA',
    why: 'Family abroad uses the account too; a strict tenant asks.',
  },
  {
    history: 'a known user in two places at once, one of them a new device',
    counts: { 'impossible_travel:86400': 1, [`new_device_of_user:${month}`]: 1 },
    right: 'ARRRR',
    why: 'Somebody far away has signed in to the account.',
  },
  {
    history: 'a device behind hundreds of proxies',
    counts: {
      'networks_per_device:86400': 300,
      'countries_per_device:86400': 30,
      'countries_per_user:86400': 30,
      'impossible_travel:86400': 1,
    },
    right: 'ARRRR',
    why: 'A script that takes another address for each request.',
  },
  {
    history: 'a rooted phone with 50 users',
    counts: { [`users_per_device:${month}`]: 50 },
    signals: rooted,
    right: 'RBBBB',
    why: 'Both together are a farm.',
  },
  {
    history: 'everything at once, without a signal',
    counts: {
      'sessions_per_device:300': 90,
      'users_per_device:86400': 90,
      'devices_per_user:86400': 90,
      'devices_per_session:86400': 9,
      'countries_per_user:86400': 90,
      'countries_per_device:86400': 90,
      'networks_per_device:86400': 900,
      'impossible_travel:86400': 1,
    },
    right: 'RRRRR',
    why: 'An id may be shared, so counts alone never block.',
  },
]

function toCells({ counts, signals = {} }: HistoryRow): string[] {
  return presetOrder.map((name) => {
    const policy = presets[name]
    const sent = toSentSignals({ base: 'android', signals })
    const { score, action, reasons } = compilePolicy(policy)(sent, context)
    const body = {
      tenant_id: 'acme',
      device_id: 'device-1',
      session_id: 'session-1',
      sdk_meta: { sdk_version: '4.2.0', platform: 'android', batch_type: 'start' },
      scorer: { rasp_score: score, rasp_action: action, rasp_flags: [] },
      signals: sent,
    }
    const event = { rasp_score: score, rasp_action: action, reasons, body, received_at: 0 }
    const risk = decideRisk(event, policy, {
      ...noRiskFeatures,
      counts: new Map(Object.entries(counts)),
    })
    const weights = risk.reasons.reduce((sum, { weight }) => sum + weight, 0)
    expect(weights).toBe(risk.riskScore)
    return `${risk.riskScore}${risk.action[0]}`
  })
}

describe('the table of histories', () => {
  it('has the right action in every cell', () => {
    const matrix = rows.map((row) => ({ row, cells: toCells(row) }))
    const lines = matrix.map(({ row: { history, right }, cells }) => {
      const shown = cells.map((cell) => cell.padStart(5)).join('')
      return `${history.padEnd(58)}${shown}  ${right}`
    })
    process.stdout.write(`${''.padEnd(58)} risk and action: ${presetOrder.join(', ')}; right\n`)
    process.stdout.write(`${lines.join('\n')}\n`)
    const wrong = matrix.filter(
      ({ row, cells }) => cells.map((cell) => cell.at(-1)).join('') !== row.right,
    )
    expect(wrong.map(({ row, cells }) => [row.history, cells.join(' '), row.right])).toEqual([])
  })
})

describe('required and usual signals', () => {
  it('are one reason when both are missing', () => {
    const policy = { ...presets.balanced, requiredSignals: { signals: ['root.*'], weight: 45 } }
    const sent = toSentSignals({ base: 'nothing', signals: {} })
    const { score, action, reasons } = compilePolicy(policy)(sent, context)
    const body = {
      tenant_id: 'acme',
      device_id: 'device-1',
      session_id: 'session-1',
      sdk_meta: { sdk_version: '4.2.0', platform: 'android', batch_type: 'start' },
      scorer: { rasp_score: score, rasp_action: action, rasp_flags: [] },
      signals: sent,
    }
    const evidence = { metric: 'missing_categories', count: 6, threshold: 0, window: '24h' }
    const missing = { code: 'SIGNALS_MISSING' as const, weight: 15, evidence }
    const decide = (known: typeof reasons) =>
      decideRisk(
        { rasp_score: score, rasp_action: action, reasons: known, body, received_at: 0 },
        policy,
        { ...noRiskFeatures, missing },
      )
    expect(decide(reasons)).toMatchObject({ riskScore: 45, action: 'REVIEW' })
    expect(decide(reasons).reasons.map(({ code }) => code)).toEqual(['SIGNALS_MISSING'])
    expect(decide([]).reasons).toHaveLength(1)
  })
})
