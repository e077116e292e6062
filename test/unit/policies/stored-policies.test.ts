// Policies that tenants stored under the recorded release: read without a change of a byte, and every
// event scores as it did then. What presets are now is another matter.
import { describe, expect, it } from 'vitest'
import { type Policy, policySchema, toPolicyHash } from '#shared/core/policies/policy.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import policies from '../../releases/recorded/policies.json' with { type: 'json' }
import scores from '../../releases/recorded/scores.json' with { type: 'json' }
import { signalsOf } from '../../support/scoring/any-policy.ts'

type Reason = { code: string; weight: number; evidence: { signals: string[] } }
type Vector = {
  name: string
  policy: keyof typeof policies
  suppressions?: Policy['suppressions']
  sdk_meta?: { sdk_version: string; platform: string }
  received_at?: string
  signals: Partial<Signals>
  rasp_score: number
  rasp_action: string
  reasons: Reason[]
}

const vectors = scores.vectors as unknown as Vector[]

function scoreVector(vector: Vector) {
  const { sdk_version: sdkVersion, platform } = vector.sdk_meta ?? scores.defaults.sdk_meta
  const receivedAtMs = Date.parse(vector.received_at ?? scores.defaults.received_at)
  const { suppressions = [] } = vector
  const policy = policySchema.parse({ ...policies[vector.policy], suppressions })
  return compilePolicy(policy)(signalsOf(vector.signals), { sdkVersion, platform, receivedAtMs })
}

/** Signals whose flag says something else now than the recorded one. */
const moved: Record<string, [before: string, now: string]> = {
  'root.verified_boot_state': ['BOOTLOADER_UNLOCKED', 'CUSTOM_OS'],
  'emulator.radio_version_suspicious': ['EMULATOR', 'UNUSUAL_HARDWARE'],
  'emulator.operator_name_android': ['EMULATOR', 'UNUSUAL_HARDWARE'],
  'emulator.cpu_hypervisor': ['EMULATOR', 'UNUSUAL_HARDWARE'],
  'emulator.arm_translation': ['EMULATOR', 'UNUSUAL_HARDWARE'],
  'emulator.x86_abi': ['EMULATOR', 'UNUSUAL_HARDWARE'],
  'emulator.battery_anomaly': ['EMULATOR', 'UNUSUAL_HARDWARE'],
  'emulator.thermal_missing': ['EMULATOR', 'UNUSUAL_HARDWARE'],
  'emulator.ios_app_on_mac': ['EMULATOR', 'UNUSUAL_HARDWARE'],
  'emulator.multi_instance': ['APP_CLONED', 'SECOND_SPACE'],
  'emulator.work_profile_or_secondary_user': ['APP_CLONED', 'SECOND_SPACE'],
  'debugger.accessibility_abuse': ['AUTOMATION_LIKELY', 'ACCESSIBILITY_SERVICE'],
  'tamper.obfuscation_missing': ['APP_TAMPERED', 'APP_UNPROTECTED'],
  'tamper.device_binding_changed': ['DEVICE_SPOOFED', 'DEVICE_BINDING_CHANGED'],
  'tamper.hardware_keystore_missing': ['DEVICE_POSTURE', 'UNUSUAL_HARDWARE'],
  'tamper.pi_recent_activity': ['AUTOMATION_LIKELY', 'UNUSUAL_ACTIVITY'],
  'tamper.pi_app_access_risk': ['REMOTE_CONTROL', 'SCREEN_CAPTURE'],
  'ecosystem.active_call': ['REMOTE_CONTROL', 'ACTIVE_CALL'],
  'network.timezone_mismatch': ['VPN_SUSPECTED', 'TIMEZONE_MISMATCH'],
  'ecosystem.no_sim': ['DEVICE_POSTURE', 'UNUSUAL_HARDWARE'],
}

/** Each detected signal with its flag, as `signal flag`. */
const toPairs = (reasons: readonly Reason[]) =>
  reasons.flatMap(({ code, evidence }) => evidence.signals.map((one) => `${one} ${code}`)).sort()

describe('a policy of the recorded release', () => {
  it.each(Object.entries(policies))('%s is read without a change', (_, document) => {
    const parsed = policySchema.parse(document)
    expect(JSON.stringify(parsed)).toBe(JSON.stringify(document))
    expect(toPolicyHash(parsed)).toBe(toPolicyHash(document as Policy))
  })

  it.each(vectors)('scores as before: $name', (vector) => {
    const { score, action, reasons } = scoreVector(vector)
    expect([score, action]).toEqual([vector.rasp_score, vector.rasp_action])
    const now = toPairs(reasons as Reason[])
    const before = toPairs(vector.reasons).map((pair) => {
      const [signal, flag] = pair.split(' ') as [string, string]
      const [from, to] = moved[signal] ?? []
      return now.includes(pair) || flag !== from ? pair : `${signal} ${to}`
    })
    expect(now).toEqual(before.sort())
  })
})
