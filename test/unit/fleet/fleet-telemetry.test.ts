/** What the fleet sends: reproducible to the byte, valid, and with the mix of real fleets. */

import { describe, expect, it } from 'vitest'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { categories } from '#shared/core/signals/signal-definition.ts'
import { parseTelemetry } from '#shared/core/telemetry/parse-telemetry.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import { readClientVerdict } from '#shared/core/telemetry/submission.ts'
import { kinds } from '../../../deploy/fleet/phones/kinds.ts'
import { makePlan, type PlanOptions } from '../../../deploy/fleet/phones/plan.ts'
import { makePopulation } from '../../../deploy/fleet/phones/population.ts'
import { prepareEvent } from '../../../deploy/fleet/phones/telemetry-bodies.ts'
import { findTenant } from '../../../shared/core/telemetry/body-scan.ts'
import { findUnknownSignals } from '../../../shared/core/telemetry/unknown-signals.ts'

const startedAtMs = Date.UTC(2026, 0, 15, 12)
const scorer = compilePolicy(defaultPolicy)
const scoreOf = ({ signals, sdk_meta }: Telemetry) => {
  const { sdk_version: sdkVersion, platform } = sdk_meta
  return scorer(signals, { sdkVersion, platform, receivedAtMs: startedAtMs })
}

function planOf(seed: number, devices: number, more: Partial<PlanOptions> = {}) {
  const phones = makePopulation(seed, devices)
  return makePlan({ seed, phones, ratePerSecond: 100, durationMs: 30_000, ...more })
}

type Plan = ReturnType<typeof planOf>

function bodiesOf(plan: Plan): Buffer[] {
  const options = { plan, tenantId: 'fleet-unit', scorer, startedAtMs }
  return Array.from(plan.sessionOf, (_, event) => prepareEvent(options, event, event).body)
}

const plan = planOf(7, 500)
const bodies = bodiesOf(plan)
const parsed = bodies.map((body) => parseTelemetry(body, findTenant(body) ?? ''))

describe('the generator', () => {
  it('makes the same bytes and the same schedule from the same seed', () => {
    const again = planOf(7, 500)
    expect(again.atMs).toEqual(plan.atMs)
    expect(again.eventOf).toEqual(plan.eventOf)
    expect(Buffer.concat(bodiesOf(again)).equals(Buffer.concat(bodies))).toBe(true)
  })

  it('makes a single event exactly as among all others', () => {
    const options = { plan, tenantId: 'fleet-unit', scorer, startedAtMs }
    for (const event of [0, 17, 1_234]) {
      expect(prepareEvent(options, event, event).body.equals(bodies[event]!)).toBe(true)
    }
  })

  it('makes another fleet from another seed', () => {
    const ids = (seed: number) => new Set(makePopulation(seed, 300).map((one) => one.deviceId))
    const other = ids(2)
    expect([...ids(1)].filter((id) => other.has(id))).toEqual([])
  })
})

describe('bodies', () => {
  it('are all valid telemetry, with no event twice', () => {
    expect(parsed.filter((one) => !one.ok)).toEqual([])
    expect(new Set(bodies.map((body) => body.toString())).size).toBe(bodies.length)
  })

  it('are 1 to 5 KB', () => {
    const sizes = bodies.map((body) => body.length).sort((a, b) => a - b)
    expect(sizes[0]).toBeGreaterThan(900)
    expect(sizes[Math.floor(sizes.length / 2)]).toBeGreaterThan(1_500)
    expect(sizes.at(-1)).toBeLessThan(5_000)
  })

  it('score by their content, in any order, spacing and escaping of the text', () => {
    const options = { plan, tenantId: 'fleet-unit', scorer, startedAtMs }
    parsed.forEach((one, event) => {
      if (!one.ok) throw new Error('not valid')
      expect(scoreOf(one.telemetry)).toEqual(prepareEvent(options, event, event).scored)
    })
  })

  it('use the spellings of different encoders', () => {
    const texts = bodies.map((body) => body.toString())
    const share = (test: RegExp) => texts.filter((text) => test.test(text)).length / texts.length
    expect(share(/^\{"tenant_id"/)).toBeGreaterThan(0.5)
    expect(share(/^\{"(?!tenant_id)/)).toBeGreaterThan(0.1)
    expect(share(/\\\//)).toBeGreaterThan(0.1)
    expect(share(/": "/)).toBeGreaterThan(0)
    expect(share(/\n {2}"/)).toBeGreaterThan(0)
  })

  it('sometimes have the optional fields, and unknown signals', () => {
    const all = parsed.flatMap((one) => (one.ok ? [one.telemetry] : []))
    const share = (test: (one: Telemetry) => boolean) => all.filter(test).length / all.length
    expect(share((one) => one.user_id !== undefined)).toBeGreaterThan(0.6)
    expect(share((one) => one.account_id !== undefined)).toBeGreaterThan(0.02)
    expect(
      share((one) => one.user_id !== undefined && one.account_id !== undefined),
    ).toBeGreaterThan(0)
    expect(share((one) => one.user_id === undefined)).toBeGreaterThan(0.1)
    expect(share((one) => one.occurred_at === undefined)).toBeGreaterThan(0.05)
    expect(share((one) => 'susfs_detected' in one.signals.root)).toBeGreaterThan(0)
    expect(share((one) => findUnknownSignals(one.signals).length === 0)).toBeGreaterThan(0.8)
    expect(share((one) => Object.values(one.signals.debugger).includes(null))).toBeGreaterThan(0)
  })

  it('have an unknown signal in every event of one SDK version', () => {
    const ahead = parsed.flatMap((one) => {
      if (!one.ok) return []
      const { sdk_version, framework } = one.telemetry.sdk_meta
      const isAhead = sdk_version === '3.1.0' && framework === undefined
      return isAhead && one.telemetry.sdk_meta.platform === 'android' ? [one.telemetry] : []
    })
    expect(ahead.length).toBeGreaterThan(50)
    for (const { signals } of ahead) {
      expect(findUnknownSignals(signals)).toContain('root.zygisk_companion_detected')
    }
  })

  it('have a measured signal in every category, so that no signals are ever missing', () => {
    const phones = makePopulation(5, 3_000).map((phone) => phone.signals)
    const sent = parsed.flatMap((one) => (one.ok ? [one.telemetry.signals] : []))
    for (const signals of [...phones, ...sent]) {
      const empty = categories.filter((category) =>
        Object.values(signals[category]).every((value) => value === null),
      )
      expect(empty).toEqual([])
    }
  })

  it('have a client verdict near ours, and forged ones on hostile phones', () => {
    const forged = parsed.filter(
      (one) => one.ok && one.telemetry.scorer.rasp_score === 0 && scoreOf(one.telemetry).score > 74,
    )
    expect(forged.length).toBeGreaterThan(10)
    const far = parsed.filter((one) => {
      if (!one.ok) return true
      const { rasp_score } = readClientVerdict(one.telemetry.scorer)
      return rasp_score > 0 && Math.abs(rasp_score - scoreOf(one.telemetry).score) > 7
    })
    expect(far).toEqual([])
  })
})

describe('the mix', () => {
  it('has every kind in its proportion; most phones are stock', () => {
    const phones = makePopulation(3, 2_000)
    const all = kinds.reduce((sum, kind) => sum + kind.share, 0)
    for (const kind of kinds) {
      const count = phones.filter((phone) => phone.kind === kind).length
      expect(Math.abs(count - (kind.share / all) * 2_000)).toBeLessThanOrEqual(1)
    }
    const stock = phones.filter((phone) => phone.kind.name.startsWith('stock'))
    expect(stock.length / phones.length).toBeGreaterThan(0.6)
  })

  it('passes nearly all honest phones and blocks or reviews the hostile ones', () => {
    const actions = new Map<string, Set<string>>()
    parsed.forEach((one, event) => {
      if (!one.ok) return
      const { kind } = plan.phones[plan.sessions[plan.sessionOf[event]!]!.phone]!
      const seen = actions.get(kind.name) ?? new Set()
      actions.set(kind.name, seen.add(scoreOf(one.telemetry).action))
    })
    for (const name of ['stock-android', 'stock-ios', 'wifi-tablet', 'chromebook', 'developer']) {
      expect([name, [...(actions.get(name) ?? [])]]).toEqual([name, ['ALLOW']])
    }
    for (const name of ['emulator-farm', 'repackaged', 'xposed']) {
      expect([name, [...(actions.get(name) ?? [])]]).toEqual([name, ['BLOCK']])
    }
    expect([...(actions.get('scam-call-victim') ?? [])].sort()).toEqual(['ALLOW', 'REVIEW'])
  })

  it('has households, phones of one owner, farms with shared accounts and account farms', () => {
    const phones = makePopulation(3, 2_000)
    const people = phones.filter((phone) => phone.kind.usage === 'person')
    const households = people.filter((phone) => phone.users.length > 1)
    expect(households.length / people.length).toBeGreaterThan(0.03)
    expect(Math.max(...households.map((phone) => phone.users.length))).toBeLessThanOrEqual(3)
    const owners = people.flatMap((phone) => phone.users)
    expect(new Set(owners).size).toBeLessThan(owners.length)
    const accounts = phones.filter((phone) => phone.kind.usage === 'accounts')
    expect(Math.min(...accounts.map((phone) => phone.users.length))).toBeGreaterThan(10)
    const farm = phones.filter((phone) => phone.kind.name === 'emulator-farm').slice(0, 20)
    const { hardware, signals } = farm[0]!
    for (const phone of farm) expect(phone).toMatchObject({ hardware, signals })
  })

  it('has SDKs of all platforms in several versions', () => {
    const phones = makePopulation(3, 2_000)
    const versions = new Set(phones.map(({ sdk }) => `${sdk.name} ${sdk.version}`))
    expect(versions.size).toBeGreaterThan(15)
  })
})

describe('the plan', () => {
  it('has exactly the required requests, evenly spaced, repeats included', () => {
    expect(plan.eventOf.length).toBe(3_000)
    plan.atMs.forEach((atMs, slot) => {
      expect(Math.floor(atMs / 10)).toBe(slot)
    })
  })

  it('repeats about two in a hundred requests, always after the first request', () => {
    const repeats = plan.isRepeat.reduce((sum, one) => sum + one, 0)
    expect(repeats).toBe(60)
    const seen = new Set<number>()
    plan.eventOf.forEach((event, arrival) => {
      expect(seen.has(event)).toBe(plan.isRepeat[arrival] === 1)
      seen.add(event)
    })
    expect(seen.size).toBe(plan.sessionOf.length)
  })

  it('sends the batches of a phone in order', () => {
    const last = new Map<number, number>()
    plan.eventOf.forEach((event, arrival) => {
      if (plan.isRepeat[arrival] === 1) return
      const { phone } = plan.sessions[plan.sessionOf[event]!]!
      expect(event).toBeGreaterThan(last.get(phone) ?? -1)
      last.set(phone, event)
    })
  })

  it('uses every phone, and no person starts sessions like a script', () => {
    const counts = new Map<number, number>()
    for (const { phone } of plan.sessions) counts.set(phone, (counts.get(phone) ?? 0) + 1)
    expect(counts.size).toBe(500)
    for (const [phone, count] of counts) {
      const { usage } = plan.phones[phone]!.kind
      if (usage === 'person') expect(count).toBeLessThanOrEqual(20)
      if (usage === 'script') expect(count).toBeGreaterThan(20)
    }
  })

  it.each([
    [1, 0.5, 1],
    [1, 200, 5],
    [3, 20, 3],
    [2_000, 10, 2],
    [40, 300, 10],
  ])('is valid for %i devices at %d/s for %d s', (devices, ratePerSecond, seconds) => {
    const other = planOf(11, devices, { ratePerSecond, durationMs: seconds * 1000 })
    expect(other.eventOf.length).toBe(Math.max(1, Math.round(ratePerSecond * seconds)))
    const invalid = bodiesOf(other).filter(
      (body) => !parseTelemetry(body, findTenant(body) ?? '').ok,
    )
    expect(invalid).toEqual([])
    expect(new Set(other.sessions.map((one) => one.sessionId)).size).toBe(other.sessions.length)
  })
})
