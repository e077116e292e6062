/** Submissions of 1.75 KB as an honest phone sends them, all different. */

import { categories } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'

export const submissionBytes = 1_750

/** Seven signals a category, all clean. */
function cleanSignals(): Record<string, Record<string, boolean>> {
  return Object.fromEntries(
    categories.map((category) => {
      const booleans = Object.entries(signalCatalog[category])
        .filter(([name, { type }]) => type === 'boolean' && name !== 'app_attest_valid')
        .slice(0, 7)
      return [category, Object.fromEntries(booleans.map(([name]) => [name, false]))]
    }),
  )
}

/**
 * @param run makes the ids of one run differ from those of any other
 * @returns makes the next submission's body, of `submissionBytes` ASCII characters
 */
export function createSubmissions(tenantId: string, run: string): () => string {
  const signals = JSON.stringify(cleanSignals())
  let count = 0
  return () => {
    const n = ++count
    const start =
      `{"tenant_id":"${tenantId}","device_id":"device-${run}-${n % 20_011}",` +
      `"session_id":"session-${run}-${n}","user_id":"user-${run}-${n % 20_011}",` +
      `"sdk_meta":{"sdk_version":"4.2.0","platform":"${n % 3 === 0 ? 'ios' : 'android'}",` +
      `"batch_type":"periodic"},"scorer":{"rasp_score":0,"rasp_action":"ALLOW","rasp_flags":[]},` +
      `"signals":${signals},"app":{"trace":"`
    return `${start}${'x'.repeat(submissionBytes - start.length - 3)}"}}`
  }
}
