// Watched signals: the list only grows at its end, and bits keep the three states of a signal
// apart.
import { describe, expect, it } from 'vitest'
import { categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'
import { toSignalBits, watchedSignals } from '#shared/core/signals/watched-signals.ts'
import { noSignals } from '../../support/signals/no-signals.ts'

/** The paths whose bits are set in a pair of halves. */
function pathsOf(halves: readonly [number, number]): string[] {
  const word = BigInt(halves[0]) | (BigInt(halves[1]) << 32n)
  return watchedSignals.filter((_, bit) => ((word >> BigInt(bit)) & 1n) === 1n)
}

describe('the watched signals', () => {
  it('keep their bits: the list changes at its end only', () => {
    // Stored bits have the meaning of the list at the time of writing. Add lines, never change one.
    const frozen = `
      root.su_binary root.root_management_app root.magisk_detected root.kernelsu_detected
      root.apatch_detected root.zygisk_detected root.root_hiding root.rw_system_paths
      root.selinux_permissive root.adb_root root.jailbroken root.jb_files_openable
      root.jb_restricted_writable root.jb_fork_allowed root.jb_symlinks root.jb_dylib_injected
      emulator.is_emulator emulator.is_simulator emulator.emulator_packages
      emulator.emulator_sensors emulator.cloud_phone emulator.device_farm_suspected
      debugger.debugger_attached debugger.ptrace_detected debugger.frida_detected
      debugger.frida_maps debugger.frida_dbus_reply debugger.xposed_detected
      debugger.native_hooks debugger.memdisk_mismatch debugger.symbol_or_runtime_hook
      debugger.breakpoint_detected debugger.watchpoint_detected debugger.memory_scanned
      debugger.automation_detected debugger.callback_suppressed tamper.signature_mismatch
      tamper.package_name_mismatch tamper.bundle_id_mismatch tamper.code_integrity_failed
      tamper.library_injected tamper.device_info_spoofed tamper.attestation_nonce_mismatch
      tamper.attestation_failed tamper.app_attest_valid ecosystem.malware_detected
      ecosystem.remote_control_active ecosystem.location_spoofed ecosystem.camera_hijack
      ecosystem.virtual_camera network.mitm_detected network.pinning_failed
      network.ssl_downgrade network.forged_request root.rooted debugger.hooking_detected`
    const paths = frozen.trim().split(/\s+/)
    expect(paths).toHaveLength(56)
    expect(watchedSignals.slice(0, paths.length)).toEqual(paths)
    expect(new Set(watchedSignals).size).toBe(watchedSignals.length)
    expect(watchedSignals.length).toBeLessThanOrEqual(64)
  })

  it('are every boolean of the catalog with grade high or critical', () => {
    const grave = categories.flatMap((category) =>
      Object.entries(signalCatalog[category])
        .filter(([, { type, grade }]) => type === 'boolean' && /^(high|critical)$/.test(grade))
        .map(([name]) => `${category}.${name}`),
    )
    for (const path of grave) expect(watchedSignals).toContain(path)
  })
})

describe('the bits of an event', () => {
  it('distinguish detected, clean and not measured', () => {
    const { detected, clean } = toSignalBits({
      ...noSignals,
      root: { su_binary: true, jailbroken: false, magisk_detected: null, busybox_binary: true },
      network: { forged_request: true, ssl_downgrade: false, unknown: true },
    })
    expect(pathsOf([...detected])).toEqual(['root.su_binary', 'network.forged_request'])
    expect(pathsOf([...clean])).toEqual(['root.jailbroken', 'network.ssl_downgrade'])
  })

  it('are reversed for a signal that is detected when it is false', () => {
    const valid = toSignalBits({ ...noSignals, tamper: { app_attest_valid: true } })
    const invalid = toSignalBits({ ...noSignals, tamper: { app_attest_valid: false } })
    expect(pathsOf([...valid.clean])).toEqual(['tamper.app_attest_valid'])
    expect(pathsOf([...invalid.detected])).toEqual(['tamper.app_attest_valid'])
    expect([valid.detected, invalid.clean]).toEqual([
      [0, 0],
      [0, 0],
    ])
  })

  it('are unsigned halves, one bit for one signal', () => {
    for (const [bit, path] of watchedSignals.entries()) {
      const [category, name] = path.split('.') as [keyof Signals, string]
      const reversed = path === 'tamper.app_attest_valid'
      const { detected, clean } = toSignalBits({ ...noSignals, [category]: { [name]: !reversed } })
      expect(clean).toEqual([0, 0])
      expect(detected).toEqual(bit < 32 ? [2 ** bit, 0] : [0, 2 ** (bit - 32)])
    }
  })

  it('are all zero for values that are not signals', () => {
    const nothing = { detected: [0, 0], clean: [0, 0] }
    expect(toSignalBits(noSignals)).toEqual(nothing)
    expect(toSignalBits('text' as unknown as Signals)).toEqual(nothing)
    const root = { su_binary: 'true', jailbroken: 1, root_hiding: [true] }
    expect(toSignalBits({ ...noSignals, root })).toEqual(nothing)
  })
})
