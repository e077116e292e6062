/**
 * One run: population, plan, tenant, receiver, sending, settling, checking. The caller passes the
 * clocks, the terminal and the seeds.
 */
import { createSecretKey } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { signBody } from '#shared/core/telemetry/signature.ts'
import { type Judgement, judge } from './check/judge.ts'
import { ApiAnswerError } from './check/read-back.ts'
import { type Sent, summarize } from './check/summarize.ts'
import type { Summary } from './check/summary.ts'
import { type FleetContext, FleetError } from './fleet-context.ts'
import { fleetPolicy } from './fleet-policy.ts'
import type { FleetDeps, FleetOptions, Run, Urls } from './fleet-run.ts'
import { openTenant } from './fleet-tenant.ts'
import { addressOf } from './phones/addresses.ts'
import { makePlan, type Plan } from './phones/plan.ts'
import { makePopulation } from './phones/population.ts'
import { createRandom } from './phones/random.ts'
import { prepareEvent } from './phones/telemetry-bodies.ts'
import { type DeliveryReceiver, receiveDeliveries } from './send/deliveries.ts'
import { type Get, openApi, openIngest } from './send/http-calls.ts'
import { createLatencies } from './send/latencies.ts'
import { type LiveLine, startLiveLine } from './send/live-line.ts'
import { createProber, type Prober } from './send/probes.ts'
import { sendPlan } from './send/sender.ts'
import { addMismatch, createSentEvents, type EventFact } from './send/sent-events.ts'

/** Sockets to ingest: enough for 2,000 requests/s of 50 ms each. */
const connections = 128
const probesPerSecond = 2
const webhookPath = 'webhooks/risk'

/** Between the last preparation and the first request: time to make the first bodies. */
const leadMs = 500

/**
 * Runs the fleet.
 * @throws FleetError when there is nothing to run against or the options contradict each other
 */
export async function runFleet(deps: FleetDeps, options: FleetOptions): Promise<Summary> {
  const urls = findUrls(deps.context, options)
  const phones = makePopulation(options.seed, options.devices)
  const { seed, ratePerSecond, durationMs } = options
  const plan = makePlan({ seed, phones, ratePerSecond, durationMs })
  // The run starts when everything is ready; until then its clock is below zero.
  let originMs = Number.POSITIVE_INFINITY
  const sinceStartMs = () => deps.monotonicMs() - originMs
  const receiver = options.receive ? await openReceiver(options, sinceStartMs) : null
  try {
    const tenant = await openTenant(deps.context, {
      ...options,
      webhookUrl: receiver?.urlOf(webhookPath) ?? null,
      suffix: deps.newSuffix(),
    })
    if (tenant.webhookSecret !== null) receiver?.trust(webhookPath, tenant.webhookSecret)
    originMs = deps.monotonicMs() + leadMs
    const run: Run = {
      ...deps,
      urls,
      options,
      plan,
      tenant,
      receiver,
      sentEvents: createSentEvents(plan),
      latencies: createLatencies(),
      visible: createLatencies(),
      live: createLatencies(),
      startedAtMs: deps.nowMs() + leadMs,
      sinceStartMs,
    }
    try {
      return await runOpened(run)
    } finally {
      // Report the result even when the console is unavailable now.
      await tenant.release().catch((error: Error) => deps.screen.write(`${error.message}\n`))
    }
  } finally {
    await receiver?.close()
  }
}

function findUrls({ env, findStack }: FleetContext, options: FleetOptions): Urls {
  const stack = findStack()
  const ingest = options.ingestUrl ?? (env.INGEST_URL || stack?.ingest)
  const api = options.apiUrl ?? (env.API_URL || stack?.api)
  if (ingest && api) return { ingest, api }
  throw new FleetError(
    'There is no running local stack to send to: start one with `npm start`, or give ' +
      '--ingest-url and --api-url.',
  )
}

function openReceiver(
  { seed, receiveFaults: share }: FleetOptions,
  sinceStartMs: () => number,
): Promise<DeliveryReceiver> {
  const random = createRandom(seed, 'receiver')
  const reply = () => (share > 0 && random.chance(share) ? 'refuse' : 'accept')
  return receiveDeliveries({ reply, sinceStartMs })
}

async function runOpened(run: Run): Promise<Summary> {
  const ingest = openIngest(run.urls.ingest, connections, run.nowMs)
  const api =
    run.tenant.apiKey === null ? null : openApi(run.urls.api, run.tenant.apiKey, run.nowMs)
  const liveLine = startLiveLine(run.screen, () => ({
    elapsedMs: run.sinceStartMs(),
    ratePerSecond: run.options.ratePerSecond,
    counters: run.sentEvents.counters,
    mismatches: run.sentEvents.mismatches.total,
    latencies: run.live,
    webhooks: run.receiver?.received.verified ?? null,
  }))
  try {
    const prober =
      api === null
        ? null
        : createProber({
            get: api.get,
            latencies: run.visible,
            perSecond: probesPerSecond,
            sinceStartMs: run.sinceStartMs,
          })
    const sent = await send(run, ingest.post, prober)
    const probed = await prober?.finish()
    const judgement = api === null ? null : await readBack(run, api.get, liveLine)
    return summarize(run, sent, { unseen: probed?.unseen ?? null, judgement })
  } finally {
    liveLine.stop()
    await Promise.all([ingest.close(), api?.close()])
  }
}

async function send(
  run: Run,
  post: Parameters<typeof sendPlan>[0]['post'],
  prober: Prober | null,
): Promise<Sent> {
  const { plan, sentEvents, options, tenant, startedAtMs } = run
  const scorer = compilePolicy(fleetPolicy)
  const key = createSecretKey(Buffer.from(tenant.hmacSecret, 'utf8'))
  const bodies = { plan, tenantId: tenant.tenantId, scorer, startedAtMs, addressOf }
  const { lastDepartureMs } = await sendPlan({
    plan,
    sentEvents,
    latencies: {
      ...run.latencies,
      record: (ms) => {
        run.latencies.record(ms)
        run.live.record(ms)
      },
    },
    post,
    prepare: (event, occurredMs) => prepareEvent(bodies, event, occurredMs),
    sign: (body) => signBody(body, key),
    sinceStartMs: run.sinceStartMs,
    random: createRandom(options.seed, 'retries'),
    stop: run.stop,
    onAccepted: (fact) => offerProbe(plan, fact, prober),
  })
  return { lastDepartureMs, interrupted: run.stop.aborted }
}

/** The first event of a session is what makes it visible. */
function offerProbe(plan: Plan, fact: EventFact, prober: Prober | null): void {
  if (prober === null || plan.batchOf[fact.event] !== 0 || fact.acceptedMs === null) return
  const { phone, sessionId } = plan.sessions[fact.session]!
  const { deviceId } = plan.phones[phone]!
  prober.offer({ deviceId, sessionId, acceptedMs: fact.acceptedMs })
}

/** Checks everything. @returns null when it could not be read, which is a mismatch itself */
async function readBack(run: Run, get: Get, liveLine: LiveLine): Promise<Judgement | null> {
  const { tenant, plan, sentEvents, options, receiver, startedAtMs, sinceStartMs } = run
  try {
    return await judge({
      tenantId: tenant.tenantId,
      ownTenant: tenant.own,
      policy: fleetPolicy,
      plan,
      sentEvents,
      get,
      received: receiver?.received ?? null,
      listDeliveries: (state) => listDeliveries(run.context, tenant.tenantId, state),
      startedAtMs,
      clockToleranceMs: toleranceMs(run),
      sinceStartMs,
      settleMs: options.settleMs,
      pause: (ms) => sleep(ms),
      onProgress: liveLine.showStep,
    })
  } catch (error) {
    if (!(error instanceof ApiAnswerError || error instanceof FleetError)) throw error
    addMismatch(sentEvents.mismatches, { what: 'not_readable', got: error.message })
    return null
  }
}

/**
 * The allowed difference between the service's clock and ours: on one machine the slewing of the
 * wall clock, otherwise the error of two synchronized clocks.
 */
function toleranceMs({ urls, sinceStartMs }: Run): number {
  const { hostname } = new URL(urls.ingest)
  const isLocal = hostname === '127.0.0.1' || hostname === 'localhost' || hostname === '[::1]'
  return isLocal ? 250 + sinceStartMs() * 0.0005 : 5_000
}

async function listDeliveries(
  context: FleetContext,
  tenantId: string,
  state: string,
): Promise<unknown[]> {
  const path = `/tenants/${encodeURIComponent(tenantId)}/deliveries?state=${state}&limit=500`
  const answer = (await context.adminFetch('GET', path)) as { data: unknown[] }
  return answer.data
}
