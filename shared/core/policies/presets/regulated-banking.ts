/**
 * "regulated-banking": "balanced", and BLOCK by any single proof of what Vietnam's Circular 77
 * requires banking apps to refuse: a debugger or a debuggable app, an emulator, hooks and injected
 * code, a repackaged app, root or jailbreak, an unlocked bootloader. Traffic that is intercepted
 * while it is sent is refused as well. USB debugging alone is asked about: many who have it on are
 * customers.
 */
import type { Policy } from '#shared/core/policies/policy.ts'
import { balancedAttestation as attestation } from './attestation.ts'
import { balancedPolicy } from './balanced.ts'

const { root, tamper } = balancedPolicy.categories

/** Signals by the headings of the circular. Hints that can be false alarms keep their weights. */
const circular77 = {
  debugger: [
    'debugger.debugger_attached',
    'debugger.tracer_pid',
    'debugger.ptrace_detected',
    'debugger.waiting_for_debugger',
    'debugger.app_debuggable',
    'debugger.breakpoint_detected',
    'debugger.watchpoint_detected',
    'attestation.debug_build',
  ],
  emulator: ['emulator.is_emulator', 'emulator.is_simulator', 'emulator.cloud_phone'],
  adb: ['root.adb_root'],
  hook: [
    'debugger.hooking_detected',
    'debugger.frida_detected',
    'debugger.frida_maps',
    'debugger.frida_dbus_reply',
    'debugger.xposed_detected',
    'debugger.native_hooks',
    'debugger.memdisk_mismatch',
    'debugger.symbol_or_runtime_hook',
    'debugger.callback_suppressed',
    'tamper.library_injected',
  ],
  repackaging: [
    'tamper.signature_mismatch',
    'tamper.package_name_mismatch',
    'tamper.bundle_id_mismatch',
    'tamper.code_integrity_failed',
    'tamper.pi_app_verdict',
    'attestation.app_unknown',
    'attestation.pi_app',
  ],
  root: [
    'root.rooted',
    'root.su_binary',
    'root.root_management_app',
    'root.magisk_detected',
    'root.kernelsu_detected',
    'root.apatch_detected',
    'root.zygisk_detected',
    'root.root_hiding',
    'root.rw_system_paths',
    'root.selinux_permissive',
    'root.jailbroken',
    'root.jb_files_openable',
    'root.jb_restricted_writable',
    'root.jb_fork_allowed',
    'root.jb_symlinks',
    'root.jb_dylib_injected',
  ],
  bootloader: ['root.bootloader_unlocked', 'attestation.bootloader_unlocked'],
}

/** What Google's scanner found; its highest risk leads to a review. */
const playProtect = { values: { HIGH_RISK: 40, MEDIUM_RISK: 15 } }

/** Weights by value, since SELF_SIGNED is a locked bootloader and the others are unlocked. */
const bootStates = { UNVERIFIED: 80, FAILED: 80, SELF_SIGNED: 12 }

export const regulatedBankingPolicy: Policy = {
  ...balancedPolicy,
  name: 'regulated-banking',
  categories: {
    ...balancedPolicy.categories,
    root: {
      ...root,
      // Above BLOCK, so that the boot state can reach it.
      cap: 85,
      signals: { ...root.signals, verified_boot_state: { values: bootStates } },
      groups: (root.groups ?? []).map((group) => ({
        ...group,
        signals: group.signals.filter((name) => name !== 'verified_boot_state'),
      })),
    },
    tamper: {
      ...tamper,
      signals: { ...tamper.signals, device_info_spoofed: 45, pi_play_protect: playProtect },
    },
  },
  serverCategories: {
    ...balancedPolicy.serverCategories,
    attestation: {
      ...attestation,
      signals: { ...attestation.signals, missing: 5, stale: 5, play_protect: playProtect },
    },
  },
  floors: [
    ...balancedPolicy.floors,
    // A cable for debugging, an exit of Tor: a bank asks.
    {
      score: 45,
      signals: [
        'ecosystem.adb_enabled',
        'ecosystem.wireless_adb',
        'network.tor_ip',
        'connection.tor',
        'network.mitm_detected',
        'ecosystem.virtual_camera',
        'ecosystem.camera_hijack',
      ],
    },
    // An app from another store without a licence, and traffic that can be read on its way. A proxy
    // with its authority and nothing beside it belongs to a company.
    ...[
      ['tamper.untrusted_install_source', 'tamper.pi_licensing'],
      ['tamper.untrusted_install_source', 'attestation.pi_licensing'],
      ['network.user_ca_installed', 'network.vpn_active'],
      ['network.user_ca_installed', 'emulator.work_profile_or_secondary_user'],
    ].map((signals) => ({ score: 45, signals, need: 'all' as const })),
    // A caller steers the phone and watches its screen.
    {
      score: 80,
      signals: [
        'ecosystem.remote_control_active',
        'ecosystem.active_call',
        'ecosystem.screen_mirrored',
      ],
      need: 'all',
      pastSoftLimit: true,
    },
    ...['pinning_failed', 'user_ca_installed'].map((name) => ({
      score: 80,
      signals: ['network.mitm_detected', `network.${name}`],
      need: 'all' as const,
      pastSoftLimit: true,
    })),
    // The app and Google both find malware.
    ...['tamper.pi_play_protect', 'attestation.play_protect'].map((path) => ({
      score: 80,
      signals: ['ecosystem.malware_detected', path],
      need: 'all' as const,
    })),
    { score: 80, signals: Object.values(circular77).flat() },
  ],
}
