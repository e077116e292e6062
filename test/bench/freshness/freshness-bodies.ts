/**
 * The submissions of the freshness benchmark: each the first of its own session, from honest phones
 * except every thirty-third, whose phone is rooted and hooked for certain. A device has too few
 * sessions for a velocity rule, so the alerts are known beforehand.
 */

import { categories } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'
import { submissionBytes } from '../edge/submissions.ts'

/** Three in a hundred raise an alert. */
export const alertEvery = 33
/** One session per device every 50 s at 2,000/s: the velocity rule needs twenty within 300 s. */
const devices = 100_003
const alertingDevices = 4_999

/** Seven signals per category; those of the two that prove an attack are all raised or none. */
function toSignals(attacked: boolean): string {
  return JSON.stringify(
    Object.fromEntries(
      categories.map((category) => {
        const raised = attacked && (category === 'root' || category === 'tamper')
        const booleans = Object.entries(signalCatalog[category])
          .filter(([name, { type }]) => type === 'boolean' && name !== 'app_attest_valid')
          .slice(0, 7)
        return [category, Object.fromEntries(booleans.map(([name]) => [name, raised]))]
      }),
    ),
  )
}

const clean = toSignals(false)
const attacked = toSignals(true)

export const deservesAlert = (n: number): boolean => n % alertEvery === 0

/** The session of the n-th submission of a run, and the reverse. */
const toSessionId = (run: string, n: number): string => `session-${run}-${n}`
export const fromSessionId = (sessionId: string): number =>
  Number(sessionId.slice(sessionId.lastIndexOf('-') + 1))

/** @returns the n-th body, ASCII, of 1.75 KB */
export function toSubmission(tenantId: string, run: string, n: number): string {
  const alerting = deservesAlert(n)
  const device = alerting ? `bad-${(n / alertEvery) % alertingDevices}` : `${n % devices}`
  const start =
    `{"tenant_id":"${tenantId}","device_id":"device-${run}-${device}",` +
    `"session_id":"${toSessionId(run, n)}","user_id":"user-${run}-${device}",` +
    `"sdk_meta":{"sdk_version":"4.2.0","platform":"android","batch_type":"session_start"},` +
    `"scorer":{"rasp_score":0,"rasp_action":"ALLOW","rasp_flags":[]},` +
    `"signals":${alerting ? attacked : clean},"app":{"trace":"`
  return `${start}${'x'.repeat(Math.max(0, submissionBytes - start.length - 3))}"}}`
}
