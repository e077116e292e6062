/**
 * Bounds of registrations: how many an edge takes in a second, and how many wait for their
 * evidence, of one tenant and of all. They are counted apart from telemetry, which none delays.
 */
import {
  registrationsBurst,
  registrationsPerSecond,
  registrationsVerifyingMax,
  tenantRegistrationsBurst,
  tenantRegistrationsPerSecond,
  tenantRegistrationsVerifyingMax,
} from '#shared/core/base/limits/installs.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { type Bucket, fullBucket, takeToken } from '#shared/core/http/rate-limit.ts'
import { type Refusal, refusals } from '../refusals.ts'

export type RegistrationBounds = {
  /**
   * Begins a registration of a verified tenant.
   * @returns what ends it, to be called once; or why it is refused
   */
  begin: (tenantId: string) => (() => void) | Refusal
  /** Registrations that have begun and not ended. */
  count: () => number
  /** Resolves when there is none. */
  drained: () => Promise<void>
}

const tenantRate = { perSecond: tenantRegistrationsPerSecond, burst: tenantRegistrationsBurst }
const allRate = { perSecond: registrationsPerSecond, burst: registrationsBurst }

/** One for each tenant that has registered an install since the start. */
type Use = { bucket: Bucket; verifying: number }

/** @param nowMs the monotonic clock */
export function createRegistrationBounds(nowMs: () => number): RegistrationBounds {
  const uses = new Map<string, Use>()
  const all = fullBucket(allRate, nowMs())
  let verifying = 0
  let drains: (() => void)[] = []
  const useOf = (tenantId: string): Use => {
    const use = uses.get(tenantId) ?? { bucket: fullBucket(tenantRate, nowMs()), verifying: 0 }
    uses.set(tenantId, use)
    return use
  }
  const end = (use: Use) => {
    use.verifying--
    verifying--
    if (verifying > 0) return
    const resolves = drains
    drains = []
    for (const resolve of resolves) resolve()
  }
  return {
    begin: (tenantId) => {
      const use = useOf(tenantId)
      if (use.verifying >= tenantRegistrationsVerifyingMax) return refuseTenant(tenantId, 1)
      const own = takeToken(use.bucket, tenantRate, nowMs())
      if (!own.allowed) return refuseTenant(tenantId, own.retryAfterSeconds)
      const isFull = verifying >= registrationsVerifyingMax
      if (isFull || !takeToken(all, allRate, nowMs()).allowed) return refusals.registrations
      use.verifying++
      verifying++
      return () => end(use)
    },
    count: () => verifying,
    drained: () =>
      new Promise((resolve) => {
        if (verifying === 0) resolve()
        else drains.push(resolve)
      }),
  }
}

function refuseTenant(tenantId: string, retryAfterSeconds: number): Refusal {
  const detail = 'More installs of the tenant register than an edge takes.'
  const problem = new Problem('rate_limited', detail, { retryAfterSeconds })
  return { kind: 'refused', reason: 'registration_rate', problem, limitedTenantId: tenantId }
}
