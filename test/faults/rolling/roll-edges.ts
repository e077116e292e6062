/**
 * Two edges behind a balancer are restarted one by one under a constant load, as in an upgrade.
 * Meanwhile a client calls each edge that starts directly, until it answers.
 */
import { Agent } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { startOpenLoop } from '../../support/http/open-loop.ts'
import { postTelemetry, type SentTelemetry } from '../../support/http/send-request.ts'
import { createServiceProcess, type ServiceProcess } from '../../support/process/service-process.ts'
import { until } from '../../support/process/until.ts'
import { startEdgeRig } from '../../support/telemetry/edge-rig.ts'
import { validBody } from '../../support/telemetry/raw-submissions.ts'
import { count } from '../support/counts.ts'
import { startBalancer } from './balancer.ts'

export type RollOptions = {
  /** Restarts of each edge. */
  rounds: number
  ratePerSecond: number
  onRestart?: (restart: Restart) => void
}

export type Restart = {
  exitCode: number | null
  stopMs: number
  /** The status of the first response on the edge's own address after its start. */
  firstStatus: number
}

export type RollResult = {
  restarts: Restart[]
  /** Submissions through the balancer by status, or by how they ended without a response. */
  outcomes: ReadonlyMap<string, number>
  accepted: number
  /** Accepted events that are not in the stream. */
  lost: number
  /** Connections that the balancer gave each edge. */
  connections: number[]
}

/** Longer than a balancer needs to see that an edge is not ready any more. */
const stopDelayMs = 2_000
const pollMs = 500
/** On a busy machine an answer may be slow: only a refusal counts. */
const limitMs = 30_000

/** Runs on its own nats-server. */
export async function rollEdges(options: RollOptions): Promise<RollResult> {
  const rig = await startEdgeRig()
  const edges: ServiceProcess[] = []
  try {
    const { tenantId, secret } = await rig.projectTenant('rolled')
    const env = {
      NATS_URL: rig.server.urlOf('ingest'),
      MASTER_KEY: rig.masterKey,
      STOP_DELAY_MS: String(stopDelayMs),
      LOG_LEVEL: 'warn',
    }
    edges.push(await createServiceProcess('ingest', env), await createServiceProcess('ingest', env))
    await Promise.all(edges.map((edge) => edge.start()))
    const balancer = await startBalancer(edges, pollMs)
    const kept = new Agent({ keepAlive: true, scheduling: 'fifo' })
    const single = new Agent({ keepAlive: false })
    const outcomes = new Map<string, number>()
    const accepted = new Set<string>()
    const post = (url: string, agent: Agent) => {
      const body = JSON.stringify(validBody(tenantId))
      return postTelemetry(url, { agent, body, secret, limitMs })
    }
    let sent = 0
    const load = startOpenLoop(options.ratePerSecond, async () => {
      const answer = await post(balancer.url, sent++ % 2 === 0 ? kept : single)
      count(outcomes, toOutcome(answer))
      if (answer.eventId !== null) accepted.add(answer.eventId)
    })
    const restarts: Restart[] = []
    for (let round = 0; round < options.rounds; round++) {
      for (const edge of edges) {
        const { code, tookMs } = await edge.terminate()
        const firstStatus = await startAndCall(edge, () => post(edge.url, single))
        await until('the balancer serves it', () => balancer.serves(edge))
        await pause(pollMs)
        restarts.push({ exitCode: code, stopMs: tookMs, firstStatus })
        options.onRestart?.(restarts.at(-1)!)
      }
    }
    await load.stop()
    const connections = edges.map(balancer.connections)
    for (const agent of [kept, single]) agent.destroy()
    await balancer.close()
    const stored = new Set((await rig.readStored()).map((event) => event.event_id))
    const lost = [...accepted].filter((eventId) => !stored.has(eventId)).length
    return { restarts, outcomes, accepted: accepted.size, lost, connections }
  } finally {
    await Promise.all(edges.map((edge) => edge.kill()))
    await rig.stop()
  }
}

/** @returns the status of the first response */
async function startAndCall(
  edge: ServiceProcess,
  call: () => Promise<SentTelemetry>,
): Promise<number> {
  edge.launch()
  return until('the edge answers', async () => {
    if (!edge.isAlive()) throw new Error(`the edge ended at its start: ${edge.output()}`)
    return (await call()).status
  })
}

const toOutcome = ({ status, ended }: SentTelemetry) => (status === 0 ? ended : String(status))

/** @returns the broken guarantees */
export function judgeRoll({ restarts, outcomes, lost }: RollResult): string[] {
  const wrong = restarts.flatMap(({ exitCode, firstStatus }, at) => [
    ...(exitCode === 0 ? [] : [`restart ${at + 1} ended with ${exitCode}`]),
    ...(firstStatus === 200 ? [] : [`the first response after restart ${at + 1}: ${firstStatus}`]),
  ])
  for (const [outcome, times] of outcomes) {
    if (outcome !== '200') wrong.push(`submissions that got ${outcome}: ${times}`)
  }
  return lost === 0 ? wrong : [...wrong, `accepted events that are not stored: ${lost}`]
}
