/**
 * Rotations of one tenant while clients sign with old and new secrets at three edges with faults.
 * Each step of a plan is one rotation and the fault of one edge before or during it.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { createRandom, type Random } from '../../../deploy/fleet/phones/random.ts'
import {
  checkAttempts,
  type Findings,
  type SeenRotation,
} from '../support/rotations/check-attempts.ts'
import { type RotateRequest, startEdgeProcesses } from '../support/rotations/edge-processes.ts'
import { type SignedLoad, startSignedLoad } from '../support/rotations/signed-load.ts'
import { createEdgeFaults, type FaultKind, faultKinds } from './faults.ts'

export type Step = {
  request: RotateRequest
  /** The time before the rotation. */
  idleMs: number
  /** Whether every fault must have ended before the rotation begins. */
  quiet: boolean
  fault?: {
    edge: number
    kind: FaultKind
    /** From the start of the fault to that of the rotation; negative: into the rotation. */
    leadMs: number
    /** How long it lasts; null: until half a second after the rotation has returned. */
    lastsMs: number | null
  }
}

export type RotationRun = SeenRotation & {
  /** Whether an edge had a fault during the rotation. */
  edges: 'well' | 'one away' | 'one away for a part of it'
  tookMs: number
}

export type UnderLoad = {
  rotations: RotationRun[]
  findings: Findings
  /** Accepted requests whose events are not in the stream. */
  lost: number
  /** Events by how far the clock of their edge was off. */
  clocks: Record<string, number>
}

const nowMs = () => performance.now()

/** A fault without a length ends this long after the rotation has returned. */
const afterReturnMs = 500

/**
 * @param clientPauseMs the pause of each of the fifteen clients between two requests
 * @throws when a rotation fails, or an edge does not recover
 */
export async function rotateUnderLoad(options: {
  plan: Step[]
  seed: number
  clientPauseMs: number
}): Promise<UnderLoad> {
  const rig = await startEdgeProcesses()
  try {
    const random = createRandom(options.seed, 'clients')
    const load = startSignedLoad({
      urls: rig.edges.map(({ url }) => url),
      tenantId: rig.tenantId,
      secret: rig.secret,
      pauseMs: options.clientPauseMs,
      random: random.next,
    })
    const faults = createEdgeFaults(rig.edges)
    const rotations: RotationRun[] = []
    let current = 0
    for (const step of options.plan) {
      if (step.quiet) await faults.over()
      await pause(step.idleMs)
      const run = await rotateOnce({ rig, load, faults, step, current })
      current = run.newSecret
      rotations.push(run)
    }
    await faults.over()
    await pause(afterReturnMs)
    await load.stop()
    const ended = rig.edges.filter((edge) => !edge.isAlive())
    if (ended.length > 0) throw new Error(`ended unrequest: ${ended.map(({ name }) => name)}`)
    const seen = rotations.filter(({ oldSecret, newSecret }) => oldSecret !== newSecret)
    const stored = await rig.readStored()
    return {
      rotations,
      findings: checkAttempts(load.attempts, seen),
      ...compareStored(load, stored),
    }
  } finally {
    await rig.stop()
  }
}

type OneRotation = {
  rig: Awaited<ReturnType<typeof startEdgeProcesses>>
  load: SignedLoad
  faults: ReturnType<typeof createEdgeFaults>
  step: Step
  current: number
}

async function rotateOnce({ rig, load, faults, step, current }: OneRotation): Promise<RotationRun> {
  let returned = () => {}
  const afterReturn = new Promise<void>((resolve) => {
    returned = resolve
  }).then(() => pause(afterReturnMs))
  const { fault } = step
  const injectFault = () => {
    if (fault === undefined) return
    const { edge, kind, lastsMs } = fault
    faults.begin(edge, kind, lastsMs === null ? afterReturn : pause(lastsMs))
  }
  const late = fault !== undefined && fault.leadMs < 0
  if (!late) {
    injectFault()
    await pause(fault?.leadMs ?? 0)
  }
  const atFault = faults.active()
  // The console waits for a killed edge until its lease has ended, although the edge runs again.
  const dead = (await rig.countRegistered()) > rig.edges.length
  const begunMs = nowMs()
  const timer = late ? setTimeout(injectFault, -fault.leadMs) : undefined
  const reading = readAhead(rig.readNewestSecret, load)
  try {
    const answer = await rig.rotate(step.request)
    const returnedMs = nowMs()
    const newSecret =
      answer.hmac_secret === undefined ? current : load.addSecret(answer.hmac_secret)
    load.disclose(newSecret)
    load.burst(2)
    // A fault that has not begun by now is omitted.
    clearTimeout(timer)
    return {
      oldSecret: current,
      newSecret,
      begunMs,
      returnedMs,
      edges: toState(dead || atFault > 0, dead || faults.active() > 0),
      tookMs: returnedMs - begunMs,
    }
  } finally {
    returned()
    await reading.stop()
  }
}

function toState(awayAtBegin: boolean, awayAtEnd: boolean): RotationRun['edges'] {
  if (awayAtBegin && awayAtEnd) return 'one away'
  return awayAtBegin || awayAtEnd ? 'one away for a part of it' : 'well'
}

/** Reads the next secret from Postgres before the rotation returns, to see whether it works early. */
function readAhead(read: () => Promise<string>, load: SignedLoad): { stop: () => Promise<void> } {
  let on = true
  const reading = (async () => {
    while (on) {
      load.addSecret(await read())
      await pause(5)
    }
  })()
  reading.catch(() => undefined)
  return {
    stop: async () => {
      on = false
      await reading
    },
  }
}

function compareStored(load: SignedLoad, stored: Map<string, string>) {
  const clocks: Record<string, number> = {}
  for (const clock of stored.values()) clocks[clock] = (clocks[clock] ?? 0) + 1
  const accepted = load.attempts.flatMap(({ eventId }) => (eventId === null ? [] : [eventId]))
  return { clocks, lost: accepted.filter((eventId) => !stored.has(eventId)).length }
}

const all: RotateRequest = { hmac: true, webhook: true, api_key: true }

/** Blocks of ten rotations: five without faults, five with random faults of up to ten seconds. */
export function planAtRandom(rotations: number, seed: number): Step[] {
  const random = createRandom(seed, 'plan')
  return Array.from({ length: rotations }, (_, at) => {
    const quiet = at % 10 < 5
    const step: Step = {
      request: random.chance(0.25) ? all : { hmac: true },
      idleMs: random.int(20, 150),
      quiet,
    }
    if (quiet || !random.chance(0.7)) return step
    return { ...step, fault: chooseFault(random) }
  })
}

function chooseFault(random: Random): NonNullable<Step['fault']> {
  const leadMs = random.chance(0.6) ? random.int(0, 300) : -random.int(1, 40)
  return {
    edge: random.int(0, 2),
    kind: random.pick(faultKinds),
    leadMs,
    // Most are short, few last ten seconds.
    lastsMs: random.chance(0.5) ? null : Math.round(10_000 * random.next() ** 2),
  }
}
