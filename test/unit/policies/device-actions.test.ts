// Which action is right for which device, under each preset: the whole matrix of score and action.
import { describe, expect, it } from 'vitest'
import { policySchema } from '#shared/core/policies/policy.ts'
import { checkPolicy } from '#shared/core/policies/policy-check.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { context } from '../../support/scoring/any-policy.ts'
import { attacks } from '../../support/scoring/devices/attacks.ts'
import { addressedDevices, attestedDevices } from '../../support/scoring/devices/attested.ts'
import {
  type DeviceRow,
  presetOrder,
  toSentSignals,
} from '../../support/scoring/devices/device-row.ts'
import { frauds } from '../../support/scoring/devices/frauds.ts'
import { honestDevices } from '../../support/scoring/devices/honest.ts'
import { honestChoices } from '../../support/scoring/devices/honest-choices.ts'
import { modifiedDevices } from '../../support/scoring/devices/modified.ts'

const rows: readonly DeviceRow[] = [
  ...honestDevices,
  ...honestChoices,
  ...modifiedDevices,
  ...attacks,
  ...frauds,
  ...attestedDevices,
  ...addressedDevices,
]

/** Score and action by preset, as in `40R`. */
function toCells({ policy, ...row }: DeviceRow): string[] {
  const signals = toSentSignals(row)
  return presetOrder.map((name) => {
    const score = compilePolicy(policySchema.parse({ ...presets[name], ...policy }))
    const { score: points, action } = score(signals, context, row.server)
    return `${points}${action[0]}`
  })
}

const matrix = rows.map((row) => ({ row, cells: toCells(row) }))

describe('the table of devices', () => {
  it('has at least a hundred, each once, with a reason and an action for every preset', () => {
    expect(rows.length).toBeGreaterThanOrEqual(100)
    expect(new Set(rows.map(({ device }) => device)).size).toBe(rows.length)
    expect([...presetOrder].sort()).toEqual(Object.keys(presets).sort())
    for (const { right, why } of rows) {
      expect(right).toMatch(/^[ARB]{5}$/)
      expect(why).not.toBe('')
    }
  })

  it('adds to presets only what an operator may set', () => {
    for (const { device, policy } of rows) {
      const checked = checkPolicy({ ...presets.balanced, ...policy })
      expect([device, checked.ok]).toEqual([device, true])
    }
  })

  it('has no preset below a weaker one, in score and in action', () => {
    const wrong = matrix.flatMap(({ row, cells }) =>
      stronger.flatMap(([strong, weak]) => {
        const [high, low] = [strong, weak].map((name) => cells[presetOrder.indexOf(name)]!)
        const isOrdered =
          Number.parseInt(high!, 10) >= Number.parseInt(low!, 10) &&
          'ARB'.indexOf(high!.at(-1)!) >= 'ARB'.indexOf(low!.at(-1)!)
        return isOrdered ? [] : [`${row.device}: ${strong} ${high}, ${weak} ${low}`]
      }),
    )
    expect(wrong).toEqual([])
  })

  it('has the right action in every cell', () => {
    const lines = matrix.map(({ row: { device, right }, cells }) => {
      const shown = cells.map((cell) => cell.padStart(5)).join('')
      return `${device.padEnd(58)}${shown}  ${right}`
    })
    process.stdout.write(`${''.padEnd(58)} score and action: ${presetOrder.join(', ')}; right\n`)
    process.stdout.write(`${lines.join('\n')}\n`)
    const wrong = matrix.filter(
      ({ row, cells }) => cells.map((cell) => cell.at(-1)).join('') !== row.right,
    )
    expect(wrong.map(({ row, cells }) => [row.device, cells.join(' '), row.right])).toEqual([])
  })
})

/** Of each pair the first never says less of a device than the second. */
const stronger = [
  ['balanced', 'permissive'],
  ['strict', 'balanced'],
  ['regulated-banking', 'balanced'],
  ['mobility', 'balanced'],
] as const

/** The flags of the devices that flags once said too much about. */
const flagsOf: [device: string, flags: string[]][] = [
  ['GrapheneOS, locked', ['ATTESTATION_FAILED', 'CUSTOM_OS', 'SYSTEM_MODIFIED']],
  ['unverified boot', ['BOOTLOADER_UNLOCKED']],
  ['traveller with roaming', ['TIMEZONE_MISMATCH']],
  ['phone whose requests leave Tor', ['TOR_EXIT']],
  ['phone whose user is in a call', ['ACTIVE_CALL']],
  ['remote support', ['REMOTE_CONTROL']],
  ['unknown app that captures the screen', ['SCREEN_CAPTURE']],
  ['unknown app that controls the screen', ['REMOTE_CONTROL']],
  ['reinstalled app', ['DEVICE_BINDING_CHANGED']],
  ['Secure Folder', ['SECOND_SPACE']],
  ['dual app of the system', ['SECOND_SPACE']],
  ['app cloner', ['APP_CLONED']],
  ['user of TalkBack', ['ACCESSIBILITY_SERVICE', 'SCREEN_CAPTURE']],
  ['auto clicker', ['AUTOMATION_LIKELY']],
  ['Chromebook', ['UNUSUAL_HARDWARE']],
  ['Wi-Fi tablet', ['UNUSUAL_HARDWARE']],
  ['iPhone app on a Mac', ['UNUSUAL_HARDWARE']],
  ['emulator seen only by its sensors', ['EMULATOR']],
  ['app that is not obfuscated', ['APP_UNPROTECTED']],
  ['crowd of integrity tokens', ['UNUSUAL_ACTIVITY']],
  ['phone that repeats requests', ['REQUEST_REPLAYED']],
  ['attested phone', []],
  ['evidence without a genuine chain', ['ATTESTATION_FAILED']],
  ['keybox that leaked', ['ATTESTATION_KEY_SHARED']],
  [
    'GrapheneOS, locked and attested',
    ['ATTESTATION_FAILED', 'BOOT_UNVERIFIED', 'CUSTOM_OS', 'SYSTEM_MODIFIED'],
  ],
  ['everything stripped, where the tenant requires signals', ['SIGNALS_MISSING']],
]

describe('a flag is raised by what its sentence claims:', () => {
  it.each(flagsOf)('%s', (device, flags) => {
    const { policy, ...row } = rows.find((one) => one.device === device)!
    const score = compilePolicy(policySchema.parse({ ...presets.balanced, ...policy }))
    const { reasons } = score(toSentSignals(row), context, row.server)
    expect(reasons.map(({ code }) => code).sort()).toEqual(flags)
  })
})
