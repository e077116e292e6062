/**
 * Stops and starts all five processes of a running system repeatedly and independently, while a
 * fleet sends, a backend reads and a receiver responds slowly.
 */

import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { SERVICE_NAMES, type ServiceName } from '../../../deploy/local/stack/settings.ts'
import { startReceiver } from '../../support/deliveries/receiver.ts'
import { type StopsLoad, startStopsLoad } from './load.ts'
import { readBackStops, type StopsFindings } from './read-back.ts'
import { startProcesses } from './rig.ts'
import { type Stop, type StopsDeps, stopOnce } from './stop-once.ts'

export type StopsResult = {
  stops: Stop[]
  findings: StopsFindings
  load: Pick<StopsLoad, 'accepted' | 'outcomes' | 'reads'>
  webhooks: number
  created: number
}

export type StopsOptions = {
  /** Number of stops of each process. */
  each: number
  ratePerSecond: number
  /** The maximum response time of the receiver. */
  receiverMs: number
  /** The share of stops with a request that is never finished, in [0, 1]. */
  silentShare: number
  seed: number
  onStop?: (stop: Stop) => void
}

/** Runs everything on its own servers. */
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
    await Promise.all(SERVICE_NAMES.map(again))
    await load.stop()
    const { created } = deps
    const findings = await readBackStops(processes, { load, receiver, tenantId, created })
    return { stops, findings, load, webhooks: receiver.requests.length, created: created.length }
  } finally {
    await processes.stop()
    await receiver.close()
  }
}

/** The limit of the local stack's supervisor. */
const stopLimitMs = 10_000

/** @returns the guarantees that one stop broke */
export function judgeStop({ name, ended, answers, output }: Stop): string[] {
  const wrong: string[] = []
  const last = output.trim().split('\n').slice(-2).join(' | ')
  if (ended.code !== 0) {
    wrong.push(`${name} ended with ${ended.code ?? ended.signal} after ${ended.tookMs} ms: ${last}`)
  }
  if (ended.tookMs > stopLimitMs) wrong.push(`${name} took ${ended.tookMs} ms to end`)
  for (const { status, body, error } of answers) {
    if (status === 200 || status === 201) continue
    wrong.push(`${name}: an unfinished request got ${status} ${error ?? body.slice(0, 200)}`)
  }
  return wrong
}

/** @returns the broken guarantees about data */
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
    ['tenants missing although their creation was confirmed', findings.tenantsLost.length],
  ]
  return promises.filter(([, times]) => times > 0).map(([what, times]) => `${what}: ${times}`)
}
