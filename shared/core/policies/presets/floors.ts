/** The floors of "balanced": what is a reason to look, or to refuse, by itself or in company. */
import type { Policy } from '#shared/core/policies/policy.ts'

export const balancedFloors: Policy['floors'] = [
  {
    score: 60,
    signals: [
      'root.root_hiding',
      'debugger.xposed_detected',
      'debugger.memdisk_mismatch',
      'debugger.symbol_or_runtime_hook',
      'debugger.callback_suppressed',
      'tamper.code_integrity_failed',
      'tamper.library_injected',
      'tamper.pi_app_verdict',
      'tamper.attestation_nonce_mismatch',
      'tamper.attestation_failed',
      'attestation.app_unknown',
      'attestation.shared_key',
      'attestation.pi_app',
    ],
  },
  // Evidence that was made up: an unlocked phone has at least its key in hardware.
  {
    score: 45,
    signals: ['attestation.rejected', 'attestation.hardware_backed'],
    need: 'all',
  },
  // BLOCK by a single signal: Frida, native hooks and a repackaged app. An open Frida port or a
  // thread with its name is not enough. An app with another name is as repackaged as one with
  // another signature.
  {
    score: 80,
    signals: [
      'debugger.frida_detected',
      'debugger.frida_maps',
      'debugger.frida_dbus_reply',
      'debugger.native_hooks',
      'tamper.signature_mismatch',
      'tamper.package_name_mismatch',
      'tamper.bundle_id_mismatch',
    ],
  },
  // The service saw itself that no SDK made the request.
  { score: 80, signals: ['network.forged_request'], pastSoftLimit: true },
  // A trojan that acts for its user: malware draws over the app and presses its buttons.
  {
    score: 80,
    signals: [
      'ecosystem.malware_detected',
      'ecosystem.overlay_or_interfering_apps',
      'debugger.accessibility_abuse',
    ],
    need: 'all',
  },
  // One sign of what a person should look at, and few honest people have it while they pay.
  {
    score: 45,
    signals: [
      'ecosystem.malware_detected',
      'ecosystem.remote_control_active',
      'debugger.frida_port_open',
    ],
  },
  // Google knows the device and does not vouch for it. An empty verdict can also be one that it
  // did not evaluate.
  {
    score: 45,
    signals: ['tamper.pi_device_verdict', 'attestation.pi_device'],
    values: ['MEETS_BASIC_INTEGRITY', 'MEETS_VIRTUAL_INTEGRITY'],
  },
  // Nothing vouches for the system, whatever the SDK calls its boot state.
  ...[
    ['root.bootloader_unlocked', 'tamper.pi_device_verdict'],
    ['root.bootloader_unlocked', 'attestation.pi_device'],
    ['attestation.bootloader_unlocked', 'tamper.pi_device_verdict'],
    ['attestation.bootloader_unlocked', 'attestation.pi_device'],
  ].map((signals) => ({ score: 45, signals, need: 'all' as const })),
  // A false place whose requests leave by a data centre.
  ...['network.datacenter_ip', 'connection.hosting'].map((path) => ({
    score: 45,
    signals: ['ecosystem.location_spoofed', path],
    need: 'all' as const,
  })),
  // The usual scam: a caller sees or steers the screen. Each alone is what many people do.
  ...['screen_mirrored', 'screen_recording'].map((name) => ({
    score: 45,
    signals: [`ecosystem.${name}`, 'ecosystem.active_call'],
    need: 'all' as const,
  })),
  ...['tamper.pi_app_access_risk', 'attestation.app_access_risk'].map((path) => ({
    score: 45,
    signals: [path, 'ecosystem.active_call'],
    need: 'all' as const,
  })),
]
