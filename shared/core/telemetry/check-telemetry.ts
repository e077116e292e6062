/** What an edge would say of a body whose signature is right, without sending it. */
import { bodyBytesMax } from '#shared/core/base/limits/http.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { findTenant } from './body-scan.ts'
import { parseTelemetry } from './parse-telemetry.ts'
import type { SignalWarning } from './signal-warnings.ts'
import { findWarnings } from './warnings/find-warnings.ts'

export type TelemetryCheck = {
  /** The status of the answer: 200, 400, 401 without a tenant, 413. */
  status: number
  tenant_id: string | null
  errors: { path: string; message: string }[]
  warnings: SignalWarning[]
  /** Under the default policy; null when it is refused. */
  score: { rasp_score: number; rasp_action: string; flags: string[] } | null
}

/** @param receivedAtMs the wall clock, which suppressions of a policy compare with */
export function checkTelemetry(body: Buffer, receivedAtMs: number): TelemetryCheck {
  const refuse = (status: number, path: string, message: string): TelemetryCheck => {
    return { status, tenant_id: null, errors: [{ path, message }], warnings: [], score: null }
  }
  if (body.length > bodyBytesMax) return refuse(413, '$', 'is larger than 64 KiB')
  const tenantId = findTenant(body)
  if (tenantId === null) {
    return refuse(401, '$.tenant_id', 'is missing or no slug, so no signature can be verified')
  }
  const parsed = parseTelemetry(body, tenantId)
  if (!parsed.ok) {
    return { status: 400, tenant_id: tenantId, errors: parsed.errors, warnings: [], score: null }
  }
  const { sdk_meta: sdk, signals } = parsed.telemetry
  const { sdk_version: sdkVersion, platform } = sdk
  const about = { sdkVersion, platform, receivedAtMs }
  const { score, action, reasons } = compilePolicy(defaultPolicy)(signals as Signals, about)
  return {
    status: 200,
    tenant_id: tenantId,
    errors: [],
    warnings: findWarnings(parsed.telemetry, { raspScore: score, receivedAtMs }),
    score: { rasp_score: score, rasp_action: action, flags: reasons.map(({ code }) => code) },
  }
}
