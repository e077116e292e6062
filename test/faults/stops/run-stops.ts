/**
 * All five processes of a running system stopped and started again and again, each in its own time,
 * while a fleet sends, a backend reads and a receiver takes its time.
 */
import { createRandom } from '../../../services/fleet/phones/random.ts'
import { startReceiver } from '../../support/deliveries/receiver.ts'
import { type StopsLoad, startStopsLoad } from './load.ts'
import { checkStops, type StopsFindings } from './read-back.ts'
import { type ServiceName, serviceNames, startProcesses } from './rig.ts'
import { type Stop, type StopsDeps, stopOnce } from './stop-once.ts'

export type StopsResult = {
  stops: Stop[]
  findings: StopsFindings
  load: Pick<StopsLoad, 'accepted' | 'outcomes' | 'reads'>
  webhooks: number
  created: number
}

export type StopsOptions = {
  /** Stops of each process. */
  each: number
  names?: readonly ServiceName[]
  ratePerSecond: number
  /** The longest that the receiver takes to answer. */
  receiverMs: number
  /** In how many stops somebody begins a request and never ends it, in [0, 1]. */
  silentShare: number
  seed: number
  onStop?: (stop: Stop) => void
}

/** Runs it all, on servers of its own. */
export async function stopUnderLoad(options: StopsOptions): Promise<StopsResult> {
  const { next: random } = createRandom(options.seed, 'stops')
  const processes = await startProcesses()
  const receiver = await startReceiver((response) => {
    setTimeout(() => response.writeHead(200).end(), options.receiverMs * random())
  })
  try {
    const tenantId = 'stopped'
    const tenant = await processes.admin('/tenants', {
      tenant_id: tenantId,
      environment: 'sandbox',
      webhook_url: receiver.url,
    })
    const apiKey = String(tenant.public_api_key)
    const load = startStopsLoad({
      ingestUrl: processes.services.ingest.url,
      apiUrl: processes.services.api.url,
      apiKey,
      signer: { tenantId, secret: String(tenant.hmac_secret) },
      ratePerSecond: options.ratePerSecond,
    })
    const { silentShare } = options
    const deps: StopsDeps = { processes, load, apiKey, random, silentShare, created: [] }
    const stops: Stop[] = []
    const again = async (name: ServiceName) => {
      for (let n = 0; n < options.each; n++) {
        const stop = await stopOnce(deps, name)
        stops.push(stop)
        options.onStop?.(stop)
      }
    }
    await Promise.all((options.names ?? serviceNames).map(again))
    await load.stop()
    const { created } = deps
    const findings = await checkStops(processes, { load, receiver, tenantId, created })
    return { stops, findings, load, webhooks: receiver.requests.length, created: created.length }
  } finally {
    await processes.stop()
    await receiver.close()
  }
}

/** The supervisor's limit. */
export const stopLimitMs = 10_000

/** @returns what is wrong with how a process ended, in words */
export function judgeStop({ name, ended, answers, output }: Stop): string[] {
  const wrong: string[] = []
  const last = output.trim().split('\n').slice(-2).join(' | ')
  if (ended.code !== 0) {
    wrong.push(`${name} ended with ${ended.code ?? ended.signal} after ${ended.tookMs} ms: ${last}`)
  }
  if (ended.tookMs > stopLimitMs) wrong.push(`${name} took ${ended.tookMs} ms to end`)
  for (const { status, body, error } of answers) {
    if (status === 200 || status === 201) continue
    wrong.push(`${name}: a request that was begun got ${status} ${error ?? body.slice(0, 200)}`)
  }
  return wrong
}

/** @returns the promises about data that were broken, in words */
export function judgeFindings(findings: StopsFindings): string[] {
  const { notStored, withoutAlert, withTwoAlerts, seqGaps, notDelivered, deliveredTwice } = findings
  const promises: [string, number][] = [
    ['accepted events that are not stored', notStored.length],
    ['sessions without their alert', withoutAlert.length],
    ['sessions with two alerts', withTwoAlerts.length],
    ['gaps in seq', seqGaps],
    ['alerts without a webhook', notDelivered.length],
    ['webhooks sent twice', deliveredTwice.length],
    ['deliveries not done at the first attempt', findings.retried],
    ['tenants whose creation was answered and that are not there', findings.tenantsLost.length],
  ]
  return promises.filter(([, times]) => times > 0).map(([what, times]) => `${what}: ${times}`)
}
