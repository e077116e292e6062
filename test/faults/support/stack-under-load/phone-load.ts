/**
 * Phones that report as an open loop: every event leaves when its time has come, however slow the
 * answers are, and is sent again with the same bytes until it is answered with a 200. Each try ends
 * ok, refused (certainly not stored) or unknown; what was accepted is kept as the client's model.
 */
import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { signBody } from '#shared/core/telemetry/signature.ts'
import type { Random } from '../../../../services/fleet/phones/random.ts'
import { type Tenant, toBody } from '../../../support/http/tenant-client.ts'
import { signalsOf } from '../../../support/telemetry/accepted-events.ts'
import { addAccepted, type DeviceModel, newDevice, type Verdict } from './device-model.ts'

export type KillsLoad = {
  /** By tenant and device. */
  devices: Map<string, DeviceModel>
  /** Ids of every event that was answered with a 200. */
  accepted: Set<string>
  /** Tries by how they ended: `200`, another status, `no connection`, `cut`, `no answer`. */
  outcomes: Map<string, number>
  /** Events accepted only at a second or later try, after one that ended unknown. */
  resolved: () => number
  /** Events on their way, tries waiting for their turn included. */
  open: () => number
  /** Events given up: never answered with a 200. */
  givenUp: string[]
  /** Answers of 200 that were not those of their event. */
  wrongAnswers: string[]
  /** Ends sending and waits until everything sent is answered. */
  stop: () => Promise<void>
}

export type LoadOptions = {
  ingestUrl: string
  tenants: readonly Tenant[]
  ratePerSecond: number
  /** About how many events a device sends before another takes its place. */
  eventsPerDevice: number
  random: Random
  /** Distinguishes the devices of several loads of one tenant. */
  label?: string
}

type Kind = keyof typeof signalsOf

const kinds: readonly (readonly [Kind, number])[] = [
  ['ALLOW', 95],
  ['REVIEW', 3],
  ['BLOCK', 2],
]
const devicesAtOnce = 300
const answerLimitMs = 20_000
const giveUpMs = 180_000
const firstWaitMs = 100
const waitMaxMs = 3_000

type Phone = { tenant: Tenant; device: DeviceModel; left: number }
type State = KillsLoad &
  LoadOptions & { agent: Agent; phones: Phone[]; made: number; label: string }

export function startKillsLoad(options: LoadOptions): KillsLoad {
  const open = new Set<Promise<void>>()
  let resolved = 0
  let running = true
  const state: State = {
    label: 'd',
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
    open: () => open.size,
    stop: async () => {
      running = false
      clearInterval(timer)
      while (open.size > 0) await Promise.all(open)
      state.agent.destroy()
    },
  }
  const startMs = performance.now()
  let sent = 0
  const timer = setInterval(() => {
    while (running && startMs + (sent * 1_000) / options.ratePerSecond <= performance.now()) {
      sent++
      const submitted: Promise<void> = submit(state)
        .then((wasUnknown) => {
          if (wasUnknown) resolved++
        })
        .finally(() => open.delete(submitted))
      open.add(submitted)
    }
  }, 4)
  return state
}

/** One of the phones that report at the moment; whoever has said all makes room for a new one. */
function choosePhone(state: State): Phone {
  const { random, phones, tenants, eventsPerDevice } = state
  const at = random.int(0, devicesAtOnce - 1)
  const present = phones[at]
  if (present !== undefined && present.left > 0) return present
  const tenant = tenants[state.devices.size % tenants.length]!
  const deviceId = `${state.label}-${state.devices.size}`
  const device = newDevice(tenant.tenant_id, deviceId)
  state.devices.set(`${tenant.tenant_id} ${deviceId}`, device)
  const phone = { tenant, device, left: random.int(1, 2 * eventsPerDevice - 1) }
  phones[at] = phone
  return phone
}

/** @returns whether a try of it had ended unknown */
async function submit(state: State): Promise<boolean> {
  const { random } = state
  const { tenant, device, ...phone } = takeTurn(choosePhone(state))
  const sessionId = `${phone.deviceId}-s${random.int(1, 3)}`
  const userId = random.chance(0.6) ? `${phone.deviceId}-u${random.int(1, 2)}` : null
  const body = toBody(tenant.tenant_id, {
    device: phone.deviceId,
    session: sessionId,
    ...(userId === null ? {} : { user: userId }),
    signals: signalsOf[random.weighted(kinds)],
    extra: { nonce: state.made++ },
  })
  const signature = signBody(body, tenant.hmac_secret)
  const firstMs = Date.now()
  let wasUnknown = false
  device.open++
  for (let tries = 0; Date.now() - firstMs < giveUpMs; tries++) {
    const { outcome, text } = await post(state, body, signature)
    state.outcomes.set(outcome, (state.outcomes.get(outcome) ?? 0) + 1)
    if (outcome === '200') {
      const answer = readAnswer(text)
      if (answer === null) state.wrongAnswers.push(text.slice(0, 200))
      else {
        state.accepted.add(answer.eventId)
        addAccepted(device, { sessionId, userId, ...answer, firstMs, okMs: Date.now() })
      }
      device.open--
      return wasUnknown
    }
    // A 503 says that the edge cannot be sure; a refusal of any other kind was certain.
    wasUnknown ||= outcome === 'cut' || outcome === 'no answer' || outcome === '503'
    await pause(Math.min(firstWaitMs * 2 ** tries, waitMaxMs) * (0.5 + random.next()))
  }
  state.givenUp.push(body)
  return wasUnknown
}

function takeTurn(phone: Phone) {
  phone.left--
  return { tenant: phone.tenant, device: phone.device, deviceId: phone.device.deviceId }
}

function readAnswer(text: string): { eventId: string; verdict: Verdict } | null {
  const answer = JSON.parse(text) as Record<string, unknown>
  const { status, event_id: eventId, rasp_score: score, rasp_action: action, flags } = answer
  if (status !== 'accepted' || typeof eventId !== 'string' || !Array.isArray(flags)) return null
  return { eventId, verdict: { score: Number(score), action: String(action), flags } }
}

type Tried = { outcome: string; text: string }

function post({ ingestUrl, agent }: State, body: string, signature: string): Promise<Tried> {
  return new Promise((resolve) => {
    let connected = false
    const sent = request(`${ingestUrl}/v1/rasp/ingest`, {
      agent,
      method: 'POST',
      timeout: answerLimitMs,
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'x-service-signature': signature,
      },
    })
    const end = (outcome: string, text = '') => resolve({ outcome, text })
    sent.on('socket', (socket) => {
      connected = !socket.connecting
      if (!connected) socket.once('connect', () => (connected = true))
    })
    sent.on('timeout', () => sent.destroy(Object.assign(new Error('late'), { code: 'LATE' })))
    sent.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'LATE') end('no answer')
      else end(connected ? 'cut' : 'no connection')
    })
    sent.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
      })
      response.on('error', () => end('cut'))
      response.on('end', () => {
        if (response.complete) end(String(response.statusCode), text)
        else end('cut')
      })
    })
    sent.end(body)
  })
}
