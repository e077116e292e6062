/**
 * Explains a stored event: scores the stored body again with the stored policy that scored it,
 * lists every step, and compares the result with the response of that time. It reads stored data
 * only, so the result changes only with the code.
 */
import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { Problem } from '#shared/core/http/problem.ts'
import { isSignedBody } from '#shared/core/identity/sent-identifiers.ts'
import { applyListReasons, findListReasons } from '#shared/core/lists/lists.ts'
import { toShownConnection } from '#shared/core/network/connection-answer.ts'
import { seesTenant, type TenantScope } from '#shared/core/operators/roles.ts'
import { type Policy, policySchema } from '#shared/core/policies/policy.ts'
import type { Reason, Score } from '#shared/core/scoring/score.ts'
import { explainScore } from '#shared/core/scoring/score-explanation.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { findForcedScore, sandboxForced } from '#shared/core/telemetry/sandbox.ts'
import {
  isObject,
  normalizeOptionals,
  type Telemetry,
  telemetrySchema,
} from '#shared/core/telemetry/submission.ts'
import { listSessionAlerts, type SessionAlert } from '#shared/io/alerts/list-session-alerts.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import { createPolicyStore, type PolicyVersion } from '#shared/io/policies/policy-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { type DecisionRow, toDecidedRisk } from '#shared/io/telemetry/decision-store.ts'
import type { EventStore, StoredEvent } from '#shared/io/telemetry/event-store.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { type CorrelationDeps, explainCorrelation } from './explain-correlation.ts'
import type { EventExplanation, ExplainedAlert } from './explanation-schemas.ts'

export type ExplainDeps = CorrelationDeps & {
  postgres: Queryable
  findEvent: EventStore['findEvent']
  findDecision: EventStore['findDecision']
}

/**
 * @param wanted.scope the tenants that the caller may see; an event of another is not found
 * @throws Problem event_not_found; event_not_explainable, which names what is missing; unavailable
 */
export async function explainEvent(
  deps: ExplainDeps,
  wanted: { eventId: string; scope: TenantScope },
): Promise<EventExplanation> {
  const event = await findEventOfScope(deps, wanted)
  const store = createPolicyStore(deps.postgres)
  const { tenantId, policyVersion: version } = event
  const [text, stored, tenant, alerts, decision] = await Promise.all([
    store.findDocument(event.policyHash),
    store.findVersion({ tenantId, version }),
    createTenantStore(deps.postgres).findTenant(tenantId),
    listSessionAlerts(deps.postgres, event),
    deps.findDecision(event).catch(rejectUnread),
  ])
  const policy = readPolicy(event, text)
  const body = readBody(event)
  const context = {
    sdkVersion: body.sdk_meta.sdk_version,
    platform: body.sdk_meta.platform,
    receivedAtMs: event.receivedAtMs,
  }
  const steps = explainScore(policy, body.signals as Signals, context, event.serverSignals)
  // The flags of the event show whether a removed tenant was a sandbox.
  const sandbox =
    tenant === null ? event.flags.includes(sandboxForced) : tenant.environment === 'sandbox'
  const forced = sandbox ? findForcedScore(body.device_id, policy.thresholds) : null
  // Entries come and go: the list decision of that time is part of the event.
  const listed = findListReasons(event.reasons ?? [])
  const again = applyListReasons(forced ?? steps, listed)
  const comparison = compare(event, again, stored)
  return {
    event: toShownEvent(event),
    policy: {
      version,
      policy_hash: event.policyHash,
      name: policy.name,
      created_at: stored?.created_at ?? null,
      created_by: stored?.created_by ?? null,
      document_intact: hash('sha256', text ?? '', 'hex').startsWith(event.policyHash),
    },
    decided: toShownDecision(event, decision),
    ...comparison,
    body_intact: isSignedBody(event.body, event.eventId),
    forced:
      forced === null
        ? null
        : { device_id: body.device_id, rasp_score: forced.score, rasp_action: forced.action },
    steps,
    correlation: await explainCorrelation(deps, event, { policy, body, alerts }),
    alerts: alerts.map((one) => toExplainedAlert(one, event)),
  }
}

/** @throws Problem event_not_found, also for an event of a tenant that the caller may not see */
export async function findEventOfScope(
  { findEvent }: Pick<ExplainDeps, 'findEvent'>,
  { eventId, scope }: { eventId: string; scope: TenantScope },
): Promise<StoredEvent> {
  const event = await findEvent(eventId).catch(rejectUnread)
  if (event !== null && seesTenant(scope, event.tenantId)) return event
  throw new Problem('event_not_found', `There is no event ${eventId}.`)
}

const rejectUnread = rejectUnavailable('The stored events cannot be read at the moment.')

function toShownDecision(
  event: StoredEvent,
  decision: DecisionRow | undefined,
): EventExplanation['decided'] {
  const { riskScore, action, reasons } = toDecidedRisk(event, decision)
  const flags = reasons.map(({ code }) => code)
  return { risk_score: riskScore, action, flags, reasons }
}

function readPolicy({ eventId, policyHash }: StoredEvent, text: string | null): Policy {
  const fail = (why: string) =>
    new Problem(
      'event_not_explainable',
      `Event ${eventId} was scored by the policy document ${policyHash}, ${why}.`,
    )
  if (text === null) throw fail('which is not stored here')
  const parsed = policySchema.safeParse(parseJson(text))
  if (!parsed.success) throw fail('which this release cannot read')
  return parsed.data
}

/** @returns undefined for invalid JSON; no schema accepts it */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** @throws Problem event_not_explainable when the stored body is no valid telemetry */
export function readBody({ eventId, body }: StoredEvent): Telemetry {
  const value = parseJson(body)
  if (isObject(value)) normalizeOptionals(value)
  const parsed = telemetrySchema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new Problem(
    'event_not_explainable',
    `The stored body of event ${eventId} is not valid telemetry: it was changed or damaged.`,
  )
}

function compare(
  event: StoredEvent,
  again: Pick<Score, 'score' | 'action' | 'reasons'>,
  version: PolicyVersion | null,
): Pick<
  EventExplanation,
  'answered' | 'recomputed' | 'matches' | 'evidence_differs' | 'differences'
> {
  const answered = {
    rasp_score: event.raspScore,
    rasp_action: event.raspAction,
    flags: event.flags,
    reasons: event.reasons,
  }
  const recomputed = {
    rasp_score: again.score,
    rasp_action: again.action,
    flags: again.reasons.map(({ code }) => code),
    reasons: again.reasons,
  }
  const differences: EventExplanation['differences'] = []
  for (const field of ['rasp_score', 'rasp_action', 'flags'] as const) {
    if (isDeepStrictEqual(answered[field], recomputed[field])) continue
    differences.push({ field, answered: answered[field], recomputed: recomputed[field] })
  }
  const weights = toWeights(answered.reasons)
  if (!isDeepStrictEqual(weights, toWeights(recomputed.reasons))) {
    differences.push({
      field: 'reasons',
      answered: answered.reasons,
      recomputed: recomputed.reasons,
    })
  }
  if (version !== null && version.policy_hash !== event.policyHash) {
    differences.push({
      field: 'policy_hash',
      answered: event.policyHash,
      recomputed: version.policy_hash,
    })
  }
  const matches = differences.length === 0
  return {
    answered,
    recomputed,
    matches,
    evidence_differs:
      matches && !isDeepStrictEqual(toPlain(answered.reasons), toPlain(again.reasons)),
    differences,
  }
}

/** The parts of reasons that every release computes alike: code and weight. */
const toWeights = (reasons: Reason[] | null): [string, number][] | null =>
  reasons === null ? null : reasons.map(({ code, weight }) => [code, weight])

/** The value after a round trip through JSON. */
const toPlain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

function toShownEvent(event: StoredEvent): EventExplanation['event'] {
  return {
    event_id: event.eventId,
    tenant_id: event.tenantId,
    device_id: event.deviceId,
    session_id: event.sessionId,
    user_id: event.userId,
    account_id: event.accountId,
    received_at: new Date(event.receivedAtMs).toISOString(),
    sdk_version: event.sdkVersion,
    platform: event.platform,
    epoch: event.epoch,
    connection: toShownConnection(event.connection),
  }
}

function toExplainedAlert(
  { alert, eventId, policyVersion }: SessionAlert,
  event: StoredEvent,
): ExplainedAlert {
  return {
    alert_id: alert.alert_id,
    event_id: eventId,
    raised_by_this_event: eventId === event.eventId,
    ...alert.decision,
    rasp_score: alert.rasp_score,
    policy_version: policyVersion,
    disposition: alert.disposition,
    created_at: alert.created_at,
    reasons: alert.reasons,
    correlation_reasons: alert.reasons.filter(({ evidence }) => Object.hasOwn(evidence, 'metric')),
  }
}
