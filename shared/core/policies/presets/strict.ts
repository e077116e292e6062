/**
 * "strict": for apps that prefer to refuse a customer over serving a doubtful device. Thresholds
 * are lower, every critical signal blocks by itself, and signs of a weakly protected phone
 * (debugging, another store, an unlocked bootloader) lead to a review, but never further.
 */
import type { Policy } from '#shared/core/policies/policy.ts'
import { balancedAttestation as attestation } from './attestation.ts'
import { balancedPolicy } from './balanced.ts'

const { root, emulator, debugger: debug, tamper, ecosystem, network } = balancedPolicy.categories

export const strictPolicy: Policy = {
  ...balancedPolicy,
  name: 'strict',
  // 60 is the floor of every critical signal, so each of them blocks.
  thresholds: { review: 25, block: 60 },
  categories: {
    root: {
      ...root,
      signals: {
        ...root.signals,
        dangerous_apps: 25,
        bootloader_unlocked: 25,
        system_integrity: { values: { COMPROMISED: 60, POSSIBLY_COMPROMISED: 25 } },
        jb_url_scheme: 30,
        jb_suspicious_files: 30,
      },
      // A custom ROM alone leads to a review and no further.
      groups: (root.groups ?? []).map((group) => ({ ...group, cap: 40 })),
    },
    emulator: {
      ...emulator,
      signals: {
        ...emulator.signals,
        is_emulator: 60,
        is_simulator: 60,
        cloud_phone: 60,
        device_farm_suspected: 45,
        ios_app_on_mac: 20,
        app_cloned: 35,
      },
    },
    debugger: {
      ...debug,
      signals: {
        ...debug.signals,
        debugger_attached: 60,
        tracer_pid: { atLeast: 1, weight: 60 },
        hooking_detected: 60,
        frida_port_open: 30,
        frida_threads: 30,
        automation_detected: 45,
        auto_clicker: 30,
      },
    },
    tamper: {
      ...tamper,
      signals: {
        ...tamper.signals,
        untrusted_install_source: 30,
        device_binding_changed: 20,
        device_info_spoofed: 45,
        time_spoofed: 15,
        hardware_keystore_missing: 8,
        pi_licensing: { values: { UNLICENSED: 25 } },
      },
      groups: (tamper.groups ?? []).map((group) => ({ ...group, cap: 30 })),
    },
    ecosystem: {
      ...ecosystem,
      cap: 50,
      signals: {
        ...ecosystem.signals,
        developer_mode: 10,
        adb_enabled: 15,
        wireless_adb: 20,
        no_passcode: 7,
        malware_detected: 40,
        remote_control_active: 40,
        screen_mirrored: 25,
        screen_recording: 25,
        location_spoofed: 30,
      },
      groups: [
        // However many of these a developer has switched on, they are one choice.
        {
          cap: 25,
          signals: [
            'developer_mode',
            'adb_enabled',
            'wireless_adb',
            'mock_location_possible',
            'unknown_sources_enabled',
          ],
        },
      ],
    },
    network: { ...network, signals: { ...network.signals, user_ca_installed: 14, tor_ip: 30 } },
  },
  serverCategories: {
    ...balancedPolicy.serverCategories,
    attestation: {
      ...attestation,
      // A system of the owner's choice leads to a review and no further.
      groups: (attestation.groups ?? []).map((group) => ({
        ...group,
        cap: Math.max(25, group.cap),
      })),
      signals: {
        ...attestation.signals,
        // A hint beside others: clients of before and phones that were off have these.
        missing: 5,
        stale: 5,
        bootloader_unlocked: 25,
        boot_unverified: 20,
        debug_build: 30,
        pi_licensing: { values: { UNLICENSED: 25 } },
      },
    },
  },
}
