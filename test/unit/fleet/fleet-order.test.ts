/**
 * The fleet's expectations under chance: requests overtake one another, answers are lost, messages
 * are stored late. A correct service never counts as wrong, in any order of the stream; the fleet
 * knows only when it sent a request and when it got the answer.
 */
import { expect, it } from 'vitest'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { checkAlerts, toAlertModel } from '../../../deploy/fleet/check/check-alerts.ts'
import { toDeviceModels } from '../../../deploy/fleet/check/device-model.ts'
import { kinds } from '../../../deploy/fleet/phones/kinds.ts'
import { makePlan } from '../../../deploy/fleet/phones/plan.ts'
import { makePopulation } from '../../../deploy/fleet/phones/population.ts'
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { prepareEvent } from '../../../deploy/fleet/phones/telemetry-bodies.ts'
import {
  createSentEvents,
  type EventFact,
  noteEnded,
  noteSent,
} from '../../../deploy/fleet/send/sent-events.ts'
import { seed } from '../../support/process/seed.ts'
import { createModelService } from '../../support/telemetry/model-service.ts'

const tenantId = 'fleet-order'
const startedAtMs = Date.UTC(2026, 0, 15, 12)
const scorer = compilePolicy(defaultPolicy)

/** Two phones of every kind and a farm, all within 15 s. */
function planOf(of: number) {
  const all = makePopulation(of, 1_500)
  const chosen = kinds.flatMap((kind) =>
    all.filter((phone) => phone.kind === kind).slice(0, kind.name === 'cloud-phone' ? 10 : 2),
  )
  const phones = chosen.map((phone, index) => ({ ...phone, index }))
  return makePlan({ seed: of, phones, ratePerSecond: 60, durationMs: 15_000 })
}

/** Sends a plan; a request takes up to twice `slowMs`, and `lostShare` of them get no answer. */
function play(of: number, slowMs: number, lostShare: number) {
  const plan = planOf(of)
  const random = createRandom(of, 'fate')
  const service = createModelService(tenantId)
  const sentEvents = createSentEvents(plan)
  const prepared = Array.from(plan.sessionOf, (_, event) =>
    prepareEvent({ plan, tenantId, scorer, startedAtMs }, event, event),
  )
  const happenings: { atMs: number; run: () => void }[] = []
  plan.eventOf.forEach((event, arrival) => {
    const sentMs = plan.atMs[arrival]!
    const { body, ...content } = prepared[event]!
    let fact: EventFact
    const at = (atMs: number, run: () => void) => happenings.push({ atMs, run })
    const store = (atMs: number) => at(atMs, () => service.accept(body, startedAtMs + atMs))
    const end = (atMs: number, outcome: 'accepted' | 'unknown') =>
      at(atMs, () => noteEnded(sentEvents, fact, outcome, atMs))
    at(sentMs, () => {
      fact = noteSent(sentEvents, content, sentMs, plan.isRepeat[arrival] === 1)
    })
    const storedMs = sentMs + random.next() * slowMs
    if (random.chance(lostShare)) {
      // Never stored, or stored long after the client stopped waiting.
      if (random.chance(0.6)) store(sentMs + random.next() * 9_000)
      end(sentMs + 0.1, 'unknown')
    } else {
      store(storedMs)
      end(storedMs + 0.1 + random.next() * slowMs, 'accepted')
    }
  })
  happenings.sort((a, b) => a.atMs - b.atMs)
  for (const { run } of happenings) run()
  const model = toAlertModel(toDeviceModels(plan, sentEvents.facts), defaultPolicy)
  const alerts = JSON.parse(JSON.stringify(service.alerts.toReversed()))
  const list = { alerts, total: alerts.length }
  return checkAlerts({ tenantId, model, policy: defaultPolicy, list, ownTenant: true })
}

it.each([
  ['one by one', 1, 0],
  ['with requests overtaking one another', 2_000, 0],
  ['with answers lost', 20, 0.2],
  ['with both', 1_000, 0.2],
])(`expects only what is certain, ${'%s'} (seed ${seed})`, (_, slowMs, lostShare) => {
  expect(play(seed, slowMs, lostShare)).toEqual([])
})
