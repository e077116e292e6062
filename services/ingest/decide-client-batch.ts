/**
 * Decides on a signed body with many submissions. The whole is verified once, before anything of it
 * is parsed, and counts in its tenant's limits as all its events. Then each event is decided as if
 * it was sent alone: its bytes are its raw body.
 */
import { bodyBytesMax } from '#shared/core/base/limits/http.ts'
import { ingestBytesMin } from '#shared/core/base/limits/ingest.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { RateLimitFields } from '#shared/core/http/rate-limit.ts'
import { findTenant } from '#shared/core/telemetry/body-scan.ts'
import { splitBatch } from '#shared/core/telemetry/json/split-batch.ts'
import { type Acceptance, type DecideDeps, decideVerified, takeQuota } from './decide-submission.ts'
import { type MeasureEvent, measureRequest } from './network/measure-request.ts'
import { type Refusal, refusals, refuse, toVerified } from './refusals.ts'
import { type Credentials, findSender, type Sender } from './verify-sender.ts'

/**
 * One event of a batch with what was decided on it. A refusal is of its body; the body of an
 * accepted one is that to store.
 */
export type DecidedEvent = { body: Buffer; decision: Acceptance | Refusal }

export type DecidedBatch = {
  kind: 'decided'
  tenantId: string
  /** In the order of the batch. */
  events: DecidedEvent[]
  rateLimit: RateLimitFields | null
}

/**
 * @param request the tenant that the body names, undefined when it was not looked for yet; and the
 *   client's address, without which none is measured
 * @returns the refusal of the whole, or a decision on each event
 */
export function decideClientBatch(
  body: Buffer,
  { signature, install }: Credentials,
  deps: DecideDeps,
  { named, readAddress }: { named?: string | null | undefined; readAddress?: () => string } = {},
): DecidedBatch | Refusal {
  if (install !== undefined) return refusals.installBatch
  const sender = findSender(body, { signature }, deps, named)
  if ('kind' in sender) return sender
  const { tenant } = sender
  const split = splitBatch(body, tenant.tenantId)
  const events = split.ok ? split.events : []
  const bytes = events.reduce((sum, { length }) => sum + Math.max(ingestBytesMin, length), 0)
  const cost = { events: Math.max(1, events.length), bytes: Math.max(bytes, body.length) }
  const { refusal, rateLimit } = takeQuota(tenant, cost, deps)
  if (refusal !== null) return toVerified(refusal, tenant.tenantId, rateLimit)
  if (!split.ok) {
    const detail = 'The body is not a valid batch of telemetry submissions.'
    const problem = new Problem('invalid_body', detail, { errors: [...split.errors] })
    return toVerified(refuse('body', problem), tenant.tenantId, rateLimit)
  }
  const measure = measureRequest(deps.network?.() ?? null, sender, readAddress)
  const decided: DecidedEvent[] = []
  for (const event of events) {
    const decision = decideEvent(event, { sender, measure, deps })
    // Nothing of this edge's state differs by event, so none is stored.
    if (decision.kind === 'refused' && decision.reason !== 'body' && decision !== tooLarge) {
      return toVerified(decision, tenant.tenantId, rateLimit)
    }
    const stored = decision.kind === 'accepted' ? decision.hashedBody?.body : undefined
    decided.push({ body: stored ?? event, decision })
  }
  return {
    kind: 'decided',
    tenantId: tenant.tenantId,
    events: keepLittle(decided, body),
    rateLimit,
  }
}

const tooLarge: Refusal = refusals.tooLarge

function decideEvent(
  event: Buffer,
  { sender, measure, deps }: { sender: Sender; measure: MeasureEvent; deps: DecideDeps },
): Acceptance | Refusal {
  if (event.length > bodyBytesMax) return tooLarge
  const { tenant } = sender
  const tenantId = findTenant(event)
  if (tenantId !== null && tenantId !== tenant.tenantId) {
    return refuseEvent('$.tenant_id', 'must be the tenant of the batch')
  }
  if (tenantId === null && event[0] === openBrace) {
    return refuseEvent('$.tenant_id', 'is missing or no slug; each event names the tenant')
  }
  return decideVerified(event, { sender, deps, rateLimit: null, measure })
}

const openBrace = 0x7b

const refuseEvent = (path: string, message: string): Refusal =>
  refuse(
    'body',
    new Problem('invalid_body', 'The event is not valid.', { errors: [{ path, message }] }),
  )

/**
 * Events are views into the body of the batch, which stays in memory as long as one of them waits.
 * Where the accepted ones are less than half of it, they are copied.
 */
function keepLittle(events: DecidedEvent[], body: Buffer): DecidedEvent[] {
  let accepted = 0
  for (const { body: own, decision } of events) {
    if (decision.kind === 'accepted') accepted += own.length
  }
  if (2 * accepted >= body.length) return events
  return events.map(({ body: own, decision }) => ({
    body: decision.kind === 'accepted' ? Buffer.from(own) : own,
    decision,
  }))
}
