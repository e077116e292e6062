/**
 * `npm run faults -- overload [--share 0.05] [--seconds 20] [--times 10]`: an edge with a part of a
 * core gets many times what it can take, over thousands of connections. Meanwhile it must accept
 * nearly what it can, and afterwards carry what it carried before. Prints goodput, the work of a
 * refusal beside that of an acceptance, and the time to recover. It needs root.
 */
import { randomUUID } from 'node:crypto'
import { Agent } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { startOpenLoop } from '../../support/http/open-loop.ts'
import { postTelemetry, type SentRequest } from '../../support/http/send-request.ts'
import { createTenant, type Tenant } from '../../support/http/tenant-client.ts'
import { percentile } from '../../support/process/percentile.ts'
import { startStack } from '../../support/process/stack.ts'
import { count, describeCounts } from '../support/counts.ts'
import { limitCpu, readCpuMs } from '../support/cpu-limit.ts'
import { print, readOptions, reportBroken } from '../support/drill.ts'
import { toSteadyBody } from '../support/steady-load.ts'

export type OverloadOptions = {
  /** Part of a core that the edge gets. */
  share: number
  /** How long it is overloaded. */
  seconds: number
  /** How many times its capacity it gets. */
  times: number
}

/** One request, on the monotonic clock. */
type Seen = Pick<SentRequest, 'ended' | 'status' | 'tookMs'> & { sentMs: number }

/** Sends a request; null where each of its connections waits for an answer. */
type Send = () => Promise<Seen | null>

/** What an edge did in a phase. */
type Phase = { seen: Seen[]; seconds: number; cpuMs: number }

export type OverloadResult = {
  /** As many clients as keep it busy, each with one request at a time. */
  full: Phase
  overloaded: Phase
  /** What `/readyz` said in it. */
  warned: boolean
  /** The rate carried before, in requests per second, and the phase after the burst. */
  carriedPerSecond: number
  after: Phase
}

/** Clients that keep an edge busy without overloading it. */
const busyClients = 32
const warmSeconds = 5
/** The part of its capacity that an edge carries before and after. */
const carried = 0.5
const afterSeconds = 15
/** An edge accepts 256 connections of one address before the first signature. */
const addresses = 8
const socketsPerAddress = 250
/** Clients wait this long for an answer. */
const limitMs = 10_000

export const goodputMin = 0.8
export const recoversWithinMs = 5_000
export const refusalCostMax = 0.1

/** Runs on its own stack. */
export async function runOverload(options: OverloadOptions): Promise<OverloadResult> {
  const running = await startStack()
  try {
    const { stack } = running
    const tenant = await createTenant(stack, 'overload')
    const pid = stack.pids.ingest
    const steady = createSender(stack.ingest, tenant)
    // Those of the burst wait for their answers to its end, and after it.
    const burst = createSender(stack.ingest, tenant)
    await keepBusy(steady, pid, warmSeconds)
    const unlimit = limitCpu(pid, options.share)
    try {
      await keepBusy(steady, pid, warmSeconds)
      const full = await keepBusy(steady, pid, options.seconds / 2)
      const capacity = countAccepted(full) / full.seconds
      let warned = false
      const [overloaded] = await Promise.all([
        sendAtRate(burst, pid, options.times * capacity, options.seconds),
        pause(500 * options.seconds).then(async () => {
          const answer = await fetch(`${stack.internal.ingest}/readyz`, {
            signal: AbortSignal.timeout(limitMs),
          })
          warned = (await answer.text()).includes('overloaded')
        }),
      ])
      const carriedPerSecond = carried * capacity
      const after = await sendAtRate(steady, pid, carriedPerSecond, afterSeconds)
      return { full, overloaded, warned, carriedPerSecond, after }
    } finally {
      unlimit()
      steady.close()
      burst.close()
    }
  } finally {
    await running.discard()
  }
}

type Sender = { send: Send; close: () => void }

/** Clients with a connection each, which they keep. */
function createSender(ingestUrl: string, { tenant_id, hmac_secret: secret }: Tenant): Sender {
  const agents = Array.from({ length: addresses }, (_, at) => {
    const localAddress = `127.0.0.${at + 2}`
    return new Agent({ keepAlive: true, maxSockets: socketsPerAddress, localAddress })
  })
  let made = 0
  let open = 0
  return {
    send: async () => {
      if (open === addresses * socketsPerAddress) return null
      open++
      const agent = agents[made % addresses]!
      const body = toSteadyBody(tenant_id, `${randomUUID()}-${++made}`)
      const sent = await postTelemetry(ingestUrl, { agent, body, secret, limitMs })
      open--
      const { begunMs: sentMs, ended, status, tookMs } = sent
      return { sentMs, ended, status, tookMs }
    },
    close: () => {
      for (const agent of agents) agent.destroy()
    },
  }
}

async function measure(pid: number, run: (seen: Seen[]) => Promise<void>): Promise<Phase> {
  const seen: Seen[] = []
  const [begunMs, cpuBefore] = [performance.now(), readCpuMs(pid)]
  await run(seen)
  const seconds = (performance.now() - begunMs) / 1_000
  return { seen, seconds, cpuMs: readCpuMs(pid) - cpuBefore }
}

function keepBusy({ send }: Sender, pid: number, seconds: number): Promise<Phase> {
  return measure(pid, async (seen) => {
    const endMs = performance.now() + 1_000 * seconds
    const client = async () => {
      while (performance.now() < endMs) seen.push((await send())!)
    }
    await Promise.all(Array.from({ length: busyClients }, client))
  })
}

/** What is under way at the end is not waited for: the next phase meets it. */
function sendAtRate(
  { send }: Sender,
  pid: number,
  ratePerSecond: number,
  seconds: number,
): Promise<Phase> {
  return measure(pid, async (seen) => {
    let ended = false
    const loop = startOpenLoop(ratePerSecond, async () => {
      const one = await send()
      if (!ended && one !== null) seen.push(one)
    })
    await pause(1_000 * seconds)
    ended = true
    void loop.stop()
  })
}

const countAccepted = ({ seen }: Phase): number =>
  seen.filter(({ status }) => status === 200).length

/** The measures that are judged. */
export function toOverloadFigures(result: OverloadResult) {
  const { full, overloaded, after, carriedPerSecond } = result
  const capacity = countAccepted(full) / full.seconds
  const acceptanceMs = full.cpuMs / countAccepted(full)
  const accepted = countAccepted(overloaded)
  const refused = overloaded.seen.length - accepted
  return {
    capacity,
    acceptanceMs,
    goodput: accepted / overloaded.seconds / capacity,
    refusalMs: (overloaded.cpuMs - accepted * acceptanceMs) / refused,
    recoveredMs: toRecoveredMs(after, carriedPerSecond),
  }
}

/** @returns when the last second began in which less than nine in ten were accepted; null for none */
function toRecoveredMs({ seen, seconds }: Phase, ratePerSecond: number): number {
  const startMs = Math.min(...seen.map(({ sentMs }) => sentMs))
  const bySecond = Array.from({ length: Math.floor(seconds) - 1 }, (_, second) => {
    return seen.filter(({ sentMs, status }) => {
      return status === 200 && Math.floor((sentMs - startMs) / 1_000) === second
    }).length
  })
  return 1_000 * (bySecond.findLastIndex((accepted) => accepted < 0.9 * ratePerSecond) + 1)
}

/** @returns the broken guarantees */
export function judgeOverload(result: OverloadResult): string[] {
  const { goodput, refusalMs, acceptanceMs, recoveredMs } = toOverloadFigures(result)
  const { overloaded, warned } = result
  const wrong: string[] = []
  const odd = overloaded.seen.filter(({ status }) => status !== 200 && status !== 503).length
  if (odd > 0) wrong.push(`answers under overload: ${describePhase(overloaded)}`)
  if (!warned) wrong.push('/readyz did not say that the edge is overloaded')
  if (goodput < goodputMin) wrong.push(`goodput under overload is ${goodput.toFixed(2)}`)
  if (recoveredMs > recoversWithinMs) wrong.push(`it recovered after ${recoveredMs} ms`)
  const cost = refusalMs / acceptanceMs
  if (cost > refusalCostMax) wrong.push(`a refusal costs ${cost.toFixed(2)} of an acceptance`)
  return wrong
}

function describePhase({ seen }: Phase): string {
  const ends = new Map<number | string, number>()
  for (const { ended, status } of seen) count(ends, status === 0 ? ended : status)
  const tookMs = seen.map(({ tookMs: took }) => took)
  return `${describeCounts(ends)}; p50 ${percentile(tookMs, 0.5).toFixed(0)} ms`
}

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const options = readOptions(args, { share: 0.05, seconds: 20, times: 10 })
  print(`an edge with ${options.share} of a core gets ${options.times} times what it takes`)
  const result = await runOverload(options)
  const { capacity, acceptanceMs, goodput, refusalMs, recoveredMs } = toOverloadFigures(result)
  print(`capacity: ${capacity.toFixed(0)}/s, ${acceptanceMs.toFixed(2)} ms of CPU each`)
  print(`  ${describePhase(result.full)}`)
  print(`overloaded: goodput ${goodput.toFixed(2)}, ${refusalMs.toFixed(3)} ms of CPU a refusal`)
  print(`  ${describePhase(result.overloaded)}`)
  print(`after it: ${result.carriedPerSecond.toFixed(0)}/s carried after ${recoveredMs} ms`)
  print(`  ${describePhase(result.after)}`)
  reportBroken(judgeOverload(result))
}
