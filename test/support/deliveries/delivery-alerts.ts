/**
 * Alerts as the scorer raises them: signals of tampered phones, scored under the default policy, so
 * that bodies have realistic sizes and shapes.
 */
import type { AlertCandidate } from '#shared/core/alerts/decide-alert.ts'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import type { Score } from '#shared/core/scoring/score.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { makeAlertCandidate } from '../alerts/alert-candidates.ts'

const phones: string[][] = [
  ['root.su_binary', 'root.magisk_detected', 'ecosystem.developer_mode'],
  ['emulator.is_emulator', 'emulator.emulator_files'],
  ['emulator.is_emulator', 'emulator.emulator_files', 'root.su_binary', 'root.magisk_detected'],
  ['root.su_binary', 'root.magisk_detected', 'debugger.debugger_attached', 'tamper.frida_detected'],
]

/** The scores of all kinds of phones that raise an alert. */
function scorePhones(): Score[] {
  const score = compilePolicy(balancedPolicy)
  const context = { sdkVersion: '4.2.0', platform: 'android', receivedAtMs: 1_790_000_000_000 }
  const scores = phones.map((paths) => {
    const signals = Object.fromEntries(categories.map((name) => [name, {}])) as Signals
    for (const path of paths) {
      const [category, name] = path.split('.') as [keyof Signals, string]
      signals[category][name] = true
    }
    return score(signals, context)
  })
  return scores.filter(({ action }) => action !== 'ALLOW')
}

/** @returns `count` candidates of different alerts, in rotation over the tenants */
export function makeAlertCandidates(tenantIds: readonly string[], count: number, seed: number) {
  const random = createRandom(seed, 'alerts')
  const scores = scorePhones()
  return Array.from({ length: count }, (_, at): AlertCandidate => {
    const { score, action, reasons } = random.pick(scores)
    return makeAlertCandidate({
      tenantId: tenantIds[at % tenantIds.length]!,
      deviceId: random.uuid(),
      sessionId: `session-${at}-${random.hex(16)}`,
      userId: random.chance(0.7) ? `user-${random.hex(12)}` : null,
      eventId: `evt_${random.hex(22)}`,
      action: action === 'BLOCK' ? 'BLOCK' : 'REVIEW',
      riskScore: score,
      raspScore: score,
      reasons,
    })
  })
}
