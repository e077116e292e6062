/**
 * The watched signals: boolean signals of grade high or critical. Each is one bit of two 64-bit
 * words, detected and clean, that ClickHouse stores beside every event.
 */
import { type Category, categories, type Signals } from './signal-definition.ts'

/**
 * The watched signals; a signal's bit is its index. Stored bits keep the meaning that they had when
 * they were written, so this list only grows at its end, to at most 64, and a signal that leaves
 * the catalog keeps its place.
 */
export const watchedSignals: readonly string[] = [
  'root.su_binary',
  'root.root_management_app',
  'root.magisk_detected',
  'root.kernelsu_detected',
  'root.apatch_detected',
  'root.zygisk_detected',
  'root.root_hiding',
  'root.rw_system_paths',
  'root.selinux_permissive',
  'root.adb_root',
  'root.jailbroken',
  'root.jb_files_openable',
  'root.jb_restricted_writable',
  'root.jb_fork_allowed',
  'root.jb_symlinks',
  'root.jb_dylib_injected',
  'emulator.is_emulator',
  'emulator.is_simulator',
  'emulator.emulator_packages',
  'emulator.emulator_sensors',
  'emulator.cloud_phone',
  'emulator.device_farm_suspected',
  'debugger.debugger_attached',
  'debugger.ptrace_detected',
  'debugger.frida_detected',
  'debugger.frida_maps',
  'debugger.frida_dbus_reply',
  'debugger.xposed_detected',
  'debugger.native_hooks',
  'debugger.memdisk_mismatch',
  'debugger.symbol_or_runtime_hook',
  'debugger.breakpoint_detected',
  'debugger.watchpoint_detected',
  'debugger.memory_scanned',
  'debugger.automation_detected',
  'debugger.callback_suppressed',
  'tamper.signature_mismatch',
  'tamper.package_name_mismatch',
  'tamper.bundle_id_mismatch',
  'tamper.code_integrity_failed',
  'tamper.library_injected',
  'tamper.device_info_spoofed',
  'tamper.attestation_nonce_mismatch',
  'tamper.attestation_failed',
  'tamper.app_attest_valid',
  'ecosystem.malware_detected',
  'ecosystem.remote_control_active',
  'ecosystem.location_spoofed',
  'ecosystem.camera_hijack',
  'ecosystem.virtual_camera',
  'network.mitm_detected',
  'network.pinning_failed',
  'network.ssl_downgrade',
  'network.forged_request',
  'root.rooted',
  'debugger.hooking_detected',
]

/** Signals that are detected when they are false. */
export const detectedWhenFalse: ReadonlySet<string> = new Set(['tamper.app_attest_valid'])

/** 64 bits as two unsigned halves of 32: bits 0..31, then 32..63. */
type BitHalves = readonly [low: number, high: number]
/** A signal that was not measured is in neither word. */
export type SignalBits = { detected: BitHalves; clean: BitHalves }

type Watched = { name: string; half: 0 | 1; mask: number; detectedValue: boolean }

const watchedOf = categories.map((category) => ({ category, signals: toWatched(category) }))

function toWatched(category: Category): Watched[] {
  return watchedSignals.flatMap((path, bit) => {
    const [owner, name] = path.split('.')
    if (owner !== category) return []
    const detectedValue = !detectedWhenFalse.has(path)
    return [{ name: name!, half: bit < 32 ? 0 : 1, mask: 1 << (bit & 31), detectedValue }]
  })
}

/**
 * Which watched signals of an event are detected, and which are clean. It looks up each watched
 * signal instead of reading each one that was sent, so thousands of keys cost as little as a few.
 */
export function toSignalBits(signals: Signals): SignalBits {
  let detectedLow = 0
  let detectedHigh = 0
  let cleanLow = 0
  let cleanHigh = 0
  for (const { category, signals: watched } of watchedOf) {
    const sent = signals[category] as Signals[Category] | undefined
    if (sent === undefined) continue
    for (const { name, half, mask, detectedValue } of watched) {
      const value = sent[name]
      if (typeof value !== 'boolean') continue
      if (value === detectedValue) {
        if (half === 0) detectedLow |= mask
        else detectedHigh |= mask
      } else if (half === 0) cleanLow |= mask
      else cleanHigh |= mask
    }
  }
  return {
    detected: [detectedLow >>> 0, detectedHigh >>> 0],
    clean: [cleanLow >>> 0, cleanHigh >>> 0],
  }
}
