// Which action is right for what a device, a user or a session did before: the sister table of the
// devices, through the decider.
import { describe, expect, it } from 'vitest'
import { presets } from '#shared/core/policies/presets/presets.ts'
import type { Action } from '#shared/core/scoring/score.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { decideRisk, noRiskFeatures } from '#shared/core/velocity/risk.ts'
import { readRows } from '../../support/process/text-tables.ts'
import { context } from '../../support/scoring/any-policy.ts'
import {
  presetOrder,
  readSignals,
  toSentSignals,
} from '../../support/scoring/devices/device-row.ts'

type HistoryRow = {
  history: string
  counts: Map<string, number>
  signals: Partial<Signals>
  right: string
  why: string
}

/**
 * A, R or B for permissive, balanced, strict, regulated-banking and mobility, the history, the
 * reason, and counts by `metric:windowSeconds` with signals where any differ.
 */
const table = `
AAAAA a phone that is opened twenty times an hour | People open a messenger so often.
  | sessions_per_device:300=4 sessions_per_device:3600=20
AARAA an app that crashes and starts again | A bad release does so; a strict tenant asks.
  | sessions_per_device:300=21
ARRRR 30 sessions in seconds | No person starts an app every second.
  | sessions_per_device:300=30 sessions_per_device:3600=30
ARRRR 150 sessions within an hour | A script that paces itself.
  | sessions_per_device:3600=150
AAAAA a family tablet | Five people share it.
  | users_per_device:86400=3 users_per_device:2592000=5
AARAA a tablet of a small shop | Its staff signs in; a strict tenant asks.
  | users_per_device:86400=6 users_per_device:2592000=9
ARRRR 50 users on one device | An account farm, or a kiosk that the tenant puts on a list.
  | users_per_device:86400=12 users_per_device:2592000=50
ARRRR 12 users on one device in a day | An account farm that began today.
  | users_per_device:86400=12 users_per_device:2592000=12
AAAAA a user with a phone, a tablet and a laptop | People own several devices.
  | devices_per_user:86400=3 devices_per_user:2592000=4
ARRRR 10 devices of a user | A password that many share, or an identity that changes.
  | devices_per_user:86400=2 devices_per_user:2592000=10
ARRRR 8 devices of a user in a day | A password that many share.
  | devices_per_user:86400=8 devices_per_user:2592000=8
ARRRR a session on two devices | The session was copied.
  | devices_per_session:86400=2
AAAAA a device that was another platform before | An id that two builds of one app share.
  | platforms_per_device:2592000=2
AAAAA a known user on a new device | People buy phones.
  | new_device_of_user:2592000=1
ARRRR a known user on a new device under remote control | An account that is being taken over.
  | new_device_of_user:2592000=1
  ecosystem.remote_control_active
ARRRR a known user on the usual device under remote control | Someone else can pay from it.
  | ecosystem.remote_control_active
AAAAA a traveller in four countries in a day, or one behind a VPN | A long journey with a change,
  or a try of some VPN servers.
  | countries_per_user:86400=4 countries_per_device:86400=4
AAAAA a phone that is passed on from mast to mast | Carriers change the addresses of a phone on a
  train.
  | networks_per_device:86400=30
AARAA a user in two places at once | Family abroad uses the account too; a strict tenant asks.
  | impossible_travel:86400=1
ARRRR a known user in two places at once, one of them a new device | Somebody far away has signed
  in to the account.
  | impossible_travel:86400=1 new_device_of_user:2592000=1
ARRRR a device behind hundreds of proxies | A script that takes another address for each request.
  | networks_per_device:86400=300 countries_per_device:86400=30 countries_per_user:86400=30
  impossible_travel:86400=1
RBBBB a rooted phone with 50 users | Both together are a farm.
  | users_per_device:2592000=50
  root.su_binary root.magisk_detected root.root_management_app
RRRRR everything at once, without a signal | An id may be shared, so counts alone never block.
  | sessions_per_device:300=90 users_per_device:86400=90 devices_per_user:86400=90
  devices_per_session:86400=9 countries_per_user:86400=90 countries_per_device:86400=90
  networks_per_device:86400=900 impossible_travel:86400=1
`

const rows: HistoryRow[] = readRows(table).map(([head, why, facts = '']) => {
  const words = facts.split(' ').filter((word) => word !== '')
  const counts = words.filter((word) => word.includes(':')).map((word) => word.split('='))
  return {
    history: head!.slice(6),
    right: head!.slice(0, 5),
    why: why!,
    counts: new Map(counts.map(([metric, count]) => [metric!, Number(count)])),
    signals: readSignals(words.filter((word) => !word.includes(':')).join(' ')).signals,
  }
})

const bodyOf = (signals: Signals, { score, action }: { score: number; action: Action }) => ({
  tenant_id: 'acme',
  device_id: 'device-1',
  session_id: 'session-1',
  sdk_meta: { sdk_version: '4.2.0', platform: 'android', batch_type: 'start' },
  scorer: { rasp_score: score, rasp_action: action, rasp_flags: [] },
  signals,
})

function toCells({ counts, signals }: HistoryRow): string[] {
  return presetOrder.map((name) => {
    const policy = presets[name]
    const sent = toSentSignals({ base: 'android', signals })
    const { score, action, reasons } = compilePolicy(policy)(sent, context)
    const body = bodyOf(sent, { score, action })
    const event = { rasp_score: score, rasp_action: action, reasons, body, received_at: 0 }
    const risk = decideRisk(event, policy, {
      ...noRiskFeatures,
      counts,
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
    const body = bodyOf(sent, { score, action })
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
