/**
 * The quick yes for an element of a batch message: it recognises what an edge writes, which is
 * nearly every one, at a fifth of what the schemas cost. It says no to anything it is not sure of,
 * and then the schemas have the last word.
 */
import { tenantIdPattern } from '#shared/core/base/ids.ts'
import { clientFlagsMax } from '#shared/core/base/limits.ts'
import { categories } from './telemetry.ts'
import { isId, isMeta, isObject } from './telemetry-check.ts'

type Fields = Record<string, unknown>

/** Whether an element is beyond doubt an accepted event with its body. */
export function isPlainEvent(value: unknown): boolean {
  if (!isObject(value)) return false
  const { body } = value
  return (
    typeof value.event_id === 'string' &&
    Number.isSafeInteger(value.received_at) &&
    Number.isSafeInteger(value.rasp_score) &&
    isAction(value.rasp_action) &&
    isReasons(value.reasons) &&
    Number.isSafeInteger(value.policy_version) &&
    typeof value.policy_hash === 'string' &&
    Number.isSafeInteger(value.epoch) &&
    (value.inexact_numbers === undefined || value.inexact_numbers === true) &&
    isObject(body) &&
    value.tenant_id === body.tenant_id &&
    isBody(body)
  )
}

function isBody(body: Fields): boolean {
  const { tenant_id: tenantId, sdk_meta: meta, scorer, signals } = body
  return (
    typeof tenantId === 'string' &&
    tenantIdPattern.test(tenantId) &&
    isId(body.device_id) &&
    isId(body.session_id) &&
    (body.user_id === undefined || isId(body.user_id)) &&
    (body.account_id === undefined || isId(body.account_id)) &&
    isObject(meta) &&
    isMeta(meta.sdk_version) &&
    isMeta(meta.platform) &&
    isMeta(meta.batch_type) &&
    isObject(scorer) &&
    Number.isFinite(scorer.rasp_score) &&
    isMeta(scorer.rasp_action) &&
    Array.isArray(scorer.rasp_flags) &&
    scorer.rasp_flags.length <= clientFlagsMax &&
    scorer.rasp_flags.every(isMeta) &&
    isObject(signals) &&
    categories.every((category) => isObject(signals[category]))
  )
}

const isAction = (value: unknown): boolean =>
  value === 'ALLOW' || value === 'REVIEW' || value === 'BLOCK'

const isReasons = (value: unknown): boolean => Array.isArray(value) && value.every(isReason)

const isReason = (value: unknown): boolean =>
  isObject(value) &&
  typeof value.code === 'string' &&
  Number.isSafeInteger(value.weight) &&
  isObject(value.evidence)
