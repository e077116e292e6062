/**
 * What each preset makes of the simulated fleet, whose truth is known: the share of the phones that
 * a fraud team looks for that get an alert (recall), the share of those with an alert that it looks
 * for (precision), and the honest phones that are asked or refused. The scorer and the decider
 * run in this process over a planned run, with every velocity rule; there is no server.
 */
import { parseArgs } from 'node:util'
import type { Policy } from '#shared/core/policies/policy.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { actions } from '#shared/core/scoring/score.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { toSignalBits } from '#shared/core/signals/watched-signals.ts'
import {
  type ActivityRow,
  countRule,
  metricSources,
} from '#shared/core/velocity/activity-counts.ts'
import { countKey } from '#shared/core/velocity/correlation.ts'
import { decideRisk, noRiskFeatures, type RiskEvent } from '#shared/core/velocity/risk.ts'
import { honestKinds } from '../../../deploy/fleet/phones/kinds.ts'
import { makePlan, type Plan } from '../../../deploy/fleet/phones/plan.ts'
import { makePopulation, type Phone } from '../../../deploy/fleet/phones/population.ts'
import { prepareEvent } from '../../../deploy/fleet/phones/telemetry-bodies.ts'
import { print } from '../../faults/support/drill.ts'
import { type Figure, publishReport, single } from '../report.ts'

type FleetEvent = { phone: Phone; body: RiskEvent['body']; row: ActivityRow; keys: string[] }

/** The events of a planned run in the order of their arrival, each once. */
function makeEvents(plan: Plan, policy: Policy): FleetEvent[] {
  const startedAtMs = Date.UTC(2026, 5, 1)
  const options = { plan, tenantId: 'fleet', scorer: compilePolicy(policy), startedAtMs }
  const numbers = new Map<string, number>()
  const numberOf = (text: string): number => {
    const known = numbers.get(text)
    if (known !== undefined) return known
    numbers.set(text, numbers.size + 1)
    return numbers.size
  }
  const sent = new Set<number>()
  const events: FleetEvent[] = []
  plan.eventOf.forEach((event, arrival) => {
    if (sent.has(event)) return
    sent.add(event)
    const atMs = plan.atMs[arrival]!
    const prepared = prepareEvent(options, event, atMs)
    const body = JSON.parse(prepared.body.toString()) as RiskEvent['body']
    const { device_id: device, session_id: session, user_id: user, account_id: account } = body
    const subject = (kind: string, id: string | undefined) =>
      id === undefined ? 0 : numberOf(`${kind} ${id}`)
    events.push({
      phone: plan.phones[plan.sessions[prepared.session]!.phone]!,
      body,
      row: {
        ...toSignalBits(body.signals as Signals),
        streamOffset: events.length + 1,
        atMs: startedAtMs + atMs,
        event: event + 1,
        session: subject('session', session),
        user: subject('user', user),
        account: subject('user', account),
        platform: subject('platform', body.sdk_meta.platform),
        userDevice: subject('device', device),
        sessionDevice: subject('device', device),
        networkDevice: 0,
        country: 0,
        network: 0,
        place: [0, 0],
        counter: 0,
        assertedKey: 0,
      },
      keys: [
        `device ${device}`,
        `session ${session}`,
        ...[user, account].flatMap((id) => (id === undefined ? [] : `user ${id}`)),
      ],
    })
  })
  return events
}

/** The counts of every velocity rule, by event. */
function countAll(events: readonly FleetEvent[], policy: Policy): Map<string, number>[] {
  const byKey = new Map<string, number[]>()
  events.forEach(({ keys }, index) => {
    for (const key of keys) byKey.set(key, [...(byKey.get(key) ?? []), index])
  })
  const counts = events.map(() => new Map<string, number>())
  for (const [key, members] of byKey) {
    const rows = members.map((index) => events[index]!.row)
    for (const rule of policy.velocity) {
      if (!key.startsWith(`${metricSources[rule.metric].kind} `)) continue
      countRule(rows, rule, rows).forEach(({ count }, at) => {
        const found = counts[members[at]!]!
        found.set(countKey(rule), Math.max(count, found.get(countKey(rule)) ?? 0))
      })
    }
  }
  return counts
}

/** By phone, the worst action of its events: 0 ALLOW, 1 REVIEW, 2 BLOCK. */
function decidePhones(events: readonly FleetEvent[], policy: Policy): Map<Phone, number> {
  const score = compilePolicy(policy)
  const counts = countAll(events, policy)
  const worst = new Map<Phone, number>()
  events.forEach(({ phone, body, row }, index) => {
    const { sdk_version: sdkVersion, platform } = body.sdk_meta
    const context = { sdkVersion, platform, receivedAtMs: row.atMs }
    const scored = score(body.signals as Signals, context)
    const event = { rasp_score: scored.score, rasp_action: scored.action, reasons: scored.reasons }
    const features = { ...noRiskFeatures, counts: counts[index]! }
    const { action } = decideRisk({ ...event, body, received_at: row.atMs }, policy, features)
    worst.set(phone, Math.max(actions.indexOf(action), worst.get(phone) ?? 0))
  })
  return worst
}

function describe(worst: ReadonlyMap<Phone, number>) {
  const phones = [...worst]
  const count = (isHonest: boolean, from: number) =>
    phones.filter(([{ kind }, at]) => honestKinds.has(kind.name) === isHonest && at >= from).length
  const sought = count(false, 0)
  const honest = count(true, 0)
  const [caught, asked] = [count(false, 1), count(true, 1)]
  return {
    recall: (100 * caught) / sought,
    precision: caught === 0 ? 0 : (100 * caught) / (caught + asked),
    honestAsked: (100 * asked) / honest,
    blocked: (100 * count(false, 2)) / sought,
    honestBlocked: (100 * count(true, 2)) / honest,
  }
}

/** The kinds that a preset gets wrong, each with the share of its phones: missed or asked. */
function listMistakes(worst: ReadonlyMap<Phone, number>): string {
  const kinds = new Map<string, { phones: number; wrong: number }>()
  for (const [{ kind }, at] of worst) {
    const found = kinds.get(kind.name) ?? { phones: 0, wrong: 0 }
    kinds.set(kind.name, found)
    found.phones++
    if (honestKinds.has(kind.name) === at > 0) found.wrong++
  }
  return [...kinds]
    .filter(([, { wrong }]) => wrong > 0)
    .sort(([, a], [, b]) => b.wrong - a.wrong)
    .map(([name, { phones, wrong }]) => `${name} ${wrong} of ${phones}`)
    .join(', ')
}

export function run(args: string[]): void {
  const options = {
    devices: { type: 'string', default: '4000' },
    events: { type: 'string', default: '24000' },
    seed: { type: 'string', default: '7' },
  } as const
  const { values } = parseArgs({ args, options })
  const [seed, devices] = [Number(values.seed), Number(values.devices)]
  const phones = makePopulation(seed, devices)
  const durationMs = 600_000
  const ratePerSecond = (1000 * Number(values.events)) / durationMs
  const plan = makePlan({ seed, phones, ratePerSecond, durationMs })
  const figures: Figure[] = []
  let seen = 0
  for (const [name, policy] of Object.entries<Policy>(presets)) {
    const worst = decidePhones(makeEvents(plan, policy), policy)
    seen = worst.size
    const { recall, precision, honestAsked, blocked, honestBlocked } = describe(worst)
    figures.push(
      single(`${name}: sought phones with an alert`, '%', recall),
      single(`${name}: alerted phones that are sought`, '%', precision),
      single(`${name}: honest phones with an alert`, '%', honestAsked),
      single(`${name}: sought phones blocked`, '%', blocked),
      single(`${name}: honest phones blocked`, '%', honestBlocked),
    )
    print(`${name} gets wrong: ${listMistakes(worst)}`)
  }
  publishReport({
    part: 'presets',
    command: `npm run bench -- presets --devices ${devices} --events ${values.events} --seed ${seed}`,
    versions: {},
    durability: 'no server',
    figures,
    checks: [{ name: 'phones', ok: seen > devices / 2, detail: `${seen} of ${devices} seen` }],
  })
}
