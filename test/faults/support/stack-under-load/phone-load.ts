/**
 * Phones that send at a constant rate, at any speed of the responses. An event is sent again with
 * the same bytes until it gets a 200. Accepted events are kept in a model of each device.
 */
import { Agent } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { DeviceModel, HistoryFact } from '../../../../deploy/fleet/check/device-model.ts'
import type { Random } from '../../../../deploy/fleet/phones/random.ts'
import { startOpenLoop } from '../../../support/http/open-loop.ts'
import { postTelemetry, type SentRequest } from '../../../support/http/send-request.ts'
import { type Tenant, toBody } from '../../../support/http/tenant-client.ts'
import { signalsOf } from '../../../support/telemetry/accepted-events.ts'
import { count } from '../counts.ts'

/** The accepted events of a device, in ms since 1970. */
export type LoadedDevice = DeviceModel<HistoryFact> & {
  tenantId: string
  /** Events in transit; a device is compared when there are none. */
  open: number
}

export type PhoneLoad = {
  /** By tenant and device. */
  devices: Map<string, LoadedDevice>
  /** Ids of every event with a 200. */
  accepted: Set<string>
  /** Tries by status, or by how they ended without a response. */
  outcomes: Map<string, number>
  /** Events accepted after a try with an unknown outcome. */
  resolved: () => number
  /** Events that are not accepted yet. */
  open: () => number
  /** Events that never got a 200. */
  givenUp: string[]
  /** Responses of 200 with a wrong body. */
  wrongAnswers: string[]
  /** Sends nothing new and waits until everything sent is accepted or abandoned. */
  stop: () => Promise<void>
}

export type LoadOptions = {
  ingestUrl: string
  tenants: readonly Tenant[]
  ratePerSecond: number
  /** Approximate number of events of a device before another takes its place. */
  eventsPerDevice: number
  random: Random
}

type Kind = keyof typeof signalsOf

const kinds: readonly (readonly [Kind, number])[] = [
  ['ALLOW', 95],
  ['REVIEW', 3],
  ['BLOCK', 2],
]
const devicesAtOnce = 300
const limitMs = 20_000
const giveUpMs = 180_000
const firstWaitMs = 100
const waitMaxMs = 3_000

type Phone = { tenant: Tenant; device: LoadedDevice; left: number }
type State = PhoneLoad & LoadOptions & { agent: Agent; phones: Phone[]; made: number }

export function startPhoneLoad(options: LoadOptions): PhoneLoad {
  let resolved = 0
  const state: State = {
    ...options,
    agent: new Agent({ keepAlive: true, maxSockets: 1_024 }),
    phones: [],
    made: 0,
    devices: new Map(),
    accepted: new Set(),
    outcomes: new Map(),
    givenUp: [],
    wrongAnswers: [],
    resolved: () => resolved,
    open: () => loop.open(),
    stop: async () => {
      await loop.stop()
      state.agent.destroy()
    },
  }
  const loop = startOpenLoop(options.ratePerSecond, async () => {
    if (await submit(state)) resolved++
  })
  return state
}

/** A random phone of those that currently report. A phone without events left is replaced. */
function choosePhone(state: State): Phone {
  const { random, phones, tenants, eventsPerDevice } = state
  const at = random.int(0, devicesAtOnce - 1)
  const present = phones[at]
  if (present !== undefined && present.left > 0) return present
  const tenant = tenants[state.devices.size % tenants.length]!
  const deviceId = `d-${state.devices.size}`
  const device: LoadedDevice = {
    tenantId: tenant.tenant_id,
    deviceId,
    sessions: [],
    facts: [],
    open: 0,
  }
  state.devices.set(`${tenant.tenant_id} ${deviceId}`, device)
  const phone = { tenant, device, left: random.int(1, 2 * eventsPerDevice - 1) }
  phones[at] = phone
  return phone
}

/** @returns whether it was accepted, or abandoned, after a try with an unknown outcome */
async function submit(state: State): Promise<boolean> {
  const { random } = state
  const phone = choosePhone(state)
  phone.left--
  const { tenant, device } = phone
  const { deviceId } = device
  const sessionId = `${deviceId}-s${random.int(1, 3)}`
  const userId = random.chance(0.6) ? `${deviceId}-u${random.int(1, 2)}` : null
  const body = toBody(tenant.tenant_id, {
    device: deviceId,
    session: sessionId,
    ...(userId === null ? {} : { user: userId }),
    signals: signalsOf[random.weighted(kinds)],
    extra: { nonce: state.made++ },
  })
  const secret = tenant.hmac_secret
  const firstMs = Date.now()
  let wasUnknown = false
  device.open++
  for (let tries = 0; Date.now() - firstMs < giveUpMs; tries++) {
    const sent = await postTelemetry(state.ingestUrl, { agent: state.agent, body, secret, limitMs })
    count(state.outcomes, toOutcome(sent))
    if (sent.status === 200) {
      const answer = readAnswer(sent.text)
      if (answer === null) state.wrongAnswers.push(sent.text.slice(0, 200))
      else {
        state.accepted.add(answer.eventId)
        const okMs = Date.now()
        addAccepted(device, sessionId, {
          userIds: userId === null ? [] : [userId],
          scored: answer.scored,
          outcome: 'accepted',
          sentMs: firstMs,
          acceptedMs: okMs,
          endedMs: okMs,
        })
      }
      device.open--
      return wasUnknown
    }
    // After a 503, or a closed connection, the event may be stored; after every other refusal it is
    // not.
    wasUnknown ||= sent.status === 503 || sent.ended === 'cut' || sent.ended === 'time limit'
    await pause(Math.min(firstWaitMs * 2 ** tries, waitMaxMs) * (0.5 + random.next()))
  }
  state.givenUp.push(body)
  return wasUnknown
}

function addAccepted(device: LoadedDevice, sessionId: string, fact: HistoryFact): void {
  let session = device.sessions.find((one) => one.sessionId === sessionId)
  if (session === undefined) {
    session = { sessionId, facts: [] }
    device.sessions.push(session)
  }
  session.facts.push(fact)
  device.facts.push(fact)
}

function readAnswer(text: string): { eventId: string; scored: HistoryFact['scored'] } | null {
  const answer = JSON.parse(text) as Record<string, unknown>
  const { status, event_id: eventId, rasp_score: score, rasp_action: action, flags } = answer
  if (status !== 'accepted' || typeof eventId !== 'string' || !Array.isArray(flags)) return null
  const reasons = flags.map((code: string) => ({ code }))
  return { eventId, scored: { score: Number(score), action: String(action), reasons } }
}

const toOutcome = ({ ended, status }: SentRequest) =>
  ended === 'response' ? String(status) : ended
