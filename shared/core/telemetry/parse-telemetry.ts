/**
 * Parses and validates a body, after `findTenant` found its tenant and the signature was verified
 * over the raw bytes. The parsed tenant must equal the verified one, so no spelling of a body can
 * be verified as one tenant's and stored as another's.
 */
import type { z } from 'zod'
import { categoryKeysMax, jsonDepthMax, membersMax } from '#shared/core/base/limits/telemetry.ts'
import { describeFault } from '#shared/core/http/fault-messages.ts'
import type { ProblemDetail } from '#shared/core/http/problem.ts'
import { categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import { checkKnownSignals } from '#shared/core/signals/signals.ts'
import { type BodyScan, scanBody } from './body-scan.ts'
import { type Findings, findBeyondCatalog, isPlainSubmission } from './fast-path.ts'
import { findDuplicateMember } from './json/duplicate-member.ts'
import { describeJsonFault, findTextFault } from './json/json-syntax.ts'
import {
  isForbiddenKey,
  isObject,
  normalizeOptionals,
  sentTelemetrySchema,
  type Telemetry,
} from './submission.ts'

type ParsedTelemetry =
  | ({ ok: true; telemetry: Telemetry } & Findings)
  | { ok: false; errors: ProblemDetail[] }

/**
 * Parses and validates a body whose signature has been verified for a tenant.
 * @param tenantId `findTenant` of the body
 * @returns the telemetry, or every fault with its JSON path
 */
export function parseTelemetry(body: Buffer, tenantId: string): ParsedTelemetry {
  const scan = scanBody(body)
  if (scan.depth > jsonDepthMax) return refuse('$', `is nested deeper than ${jsonDepthMax} levels`)
  if (scan.members > membersMax) return refuse('$', `has more than ${membersMax} members in all`)
  const textFault = findTextFault(body)
  if (textFault !== null) return refuse('$', textFault)
  const text = body.toString('utf8')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return refuse('$', describeJsonFault(body))
  }
  if (!isObject(value)) return refuse('$', 'must be an object')
  // The verified tenant is the first in the text. Only a duplicate key can have replaced it.
  if (value.tenant_id !== tenantId) return refuse('$.tenant_id', 'is given more than once')
  normalizeOptionals(value)
  return validate(value, text, scan)
}

function validate(value: Record<string, unknown>, text: string, scan: BodyScan): ParsedTelemetry {
  const findings: Findings = { unknownSignals: 0, inexactNumbers: false }
  if (!scan.unicodeEscape && isPlainSubmission(value, scan.members, findings)) {
    return { ok: true, telemetry: value as Telemetry, ...findings }
  }
  const walk: Walk = { members: 0, checkText: scan.unicodeEscape, errors: [] }
  walkValue(value, '$', walk)
  if (walk.errors.length === 0 && walk.members !== scan.members) {
    walk.errors.push({ path: findDuplicateMember(text) ?? '$', message: 'is given more than once' })
  }
  if (walk.errors.length > 0) return { ok: false, errors: walk.errors }
  const parsed = sentTelemetrySchema.safeParse(value, { error: describeFault })
  if (!parsed.success) return { ok: false, errors: toProblemDetails(parsed.error) }
  const errors = checkSignals(value.signals as Signals)
  if (errors.length > 0) return { ok: false, errors }
  return { ok: true, telemetry: value as Telemetry, ...findBeyondCatalog(value) }
}

function refuse(path: string, message: string) {
  return { ok: false as const, errors: [{ path, message }] }
}

function checkSignals(signals: Signals): ProblemDetail[] {
  const errors: ProblemDetail[] = []
  for (const category of categories) {
    if (Object.keys(signals[category]).length > categoryKeysMax) {
      const message = `has more than ${categoryKeysMax} keys`
      errors.push({ path: `$.signals.${category}`, message })
    } else {
      checkKnownSignals(category, signals[category], errors)
    }
  }
  return errors
}

type Walk = { members: number; checkText: boolean; errors: ProblemDetail[] }

/** Most faults that one answer lists. */
const faultsListedMax = 32

// JSON.parse accepts lone surrogates, which no store can hold, and the forbidden keys.
function walkValue(value: unknown, path: string, walk: Walk): void {
  if (typeof value === 'string') {
    if (walk.checkText && !value.isWellFormed()) fault(walk, path, 'contains a lone surrogate')
  } else if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const item: unknown = value[index]
      if (typeof item !== 'boolean' && item !== null) walkValue(item, `${path}[${index}]`, walk)
    }
  } else if (typeof value === 'object' && value !== null) {
    walkObject(value as Record<string, unknown>, path, walk)
  }
}

function walkObject(value: Record<string, unknown>, path: string, walk: Walk): void {
  for (const key of Object.keys(value)) {
    walk.members++
    if (isForbiddenKey(key)) {
      fault(walk, path, `has a key that is not allowed: ${key}`)
    } else if (walk.checkText && !key.isWellFormed()) {
      fault(walk, path, 'has a key with a lone surrogate')
    }
    const item = value[key]
    if (typeof item !== 'boolean' && item !== null) walkValue(item, `${path}.${key}`, walk)
  }
}

function fault(walk: Walk, path: string, message: string): void {
  if (walk.errors.length < faultsListedMax) walk.errors.push({ path, message })
}

/** Zod issues as JSON paths and reasons, at most 32 of them. */
/** The faults that zod found, with their JSON paths. */
export function toProblemDetails(error: z.ZodError): ProblemDetail[] {
  return error.issues.slice(0, faultsListedMax).map((issue) => ({
    path: `$${issue.path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('')}`,
    message: issue.message,
  }))
}
