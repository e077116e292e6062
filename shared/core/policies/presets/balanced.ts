/**
 * "balanced", the default policy. Weights follow the grades of public sources (see the catalog's
 * `sources`); a weight of 0 is context that never scores.
 */

import type { Policy } from '#shared/core/policies/policy.ts'
import { otherAppStores } from '#shared/core/signals/catalog/app-stores.ts'
import { balancedAttestation } from './attestation.ts'
import { connectionWeights } from './connection.ts'
import { balancedFloors } from './floors.ts'

export const balancedPolicy: Policy = {
  schema: 1,
  name: 'balanced',
  thresholds: { review: 40, block: 75 },
  categories: {
    root: {
      cap: 70,
      signals: {
        // As much as one strong check. The cap of root keeps it and all details below BLOCK.
        rooted: 40,
        su_binary: 40,
        root_management_app: 35,
        magisk_detected: 45,
        kernelsu_detected: 45,
        apatch_detected: 45,
        zygisk_detected: 45,
        root_hiding: 55,
        dangerous_apps: 15,
        dangerous_props: 15,
        test_keys: 8,
        eng_build: 15,
        rw_system_paths: 30,
        selinux_permissive: 25,
        busybox_binary: 2,
        adb_root: 30,
        bootloader_unlocked: 10,
        verified_boot_state: { values: { UNVERIFIED: 30, FAILED: 30, SELF_SIGNED: 12 } },
        system_integrity: { values: { COMPROMISED: 40, POSSIBLY_COMPROMISED: 12 } },
        custom_rom: 8,
        rom_name: 0,
        oem_unlock_allowed: 2,
        jailbroken: 45,
        jb_url_scheme: 20,
        jb_suspicious_files: 20,
        jb_files_openable: 30,
        jb_restricted_writable: 40,
        jb_fork_allowed: 40,
        jb_symlinks: 30,
        // All that a hidden jailbreak shows, so it is enough for a review.
        jb_dylib_injected: 45,
      },
      groups: [
        // What a custom ROM is: unlocked, signed by its maker, a debuggable build. However many of
        // these a phone shows, they are one choice of its owner and do not say that it is rooted.
        // Together they weigh what the worst of them does, so a LineageOS phone is never blocked
        // for them, with a basic verdict of Play Integrity and adb on top neither.
        {
          cap: 30,
          signals: [
            'bootloader_unlocked',
            'oem_unlock_allowed',
            'verified_boot_state',
            'custom_rom',
            'test_keys',
            'dangerous_props',
            'eng_build',
            'busybox_binary',
          ],
        },
      ],
    },
    emulator: {
      cap: 75,
      signals: {
        is_emulator: 45,
        is_simulator: 45,
        emulator_vendor: 0,
        build_fingerprint_suspicious: 6,
        qemu_props: 12,
        qemu_prop_count: { atLeast: 5, weight: 12 },
        emulator_files: 20,
        emulator_packages: 25,
        emulator_sensors: 30,
        sensor_count: 0,
        radio_version_suspicious: 10,
        operator_name_android: 5,
        telephony_defaults: 15,
        emulator_network: 10,
        vbox_mounts: 10,
        cpu_hypervisor: 10,
        suspicious_kernel_modules: 10,
        arm_translation: 5,
        x86_abi: 5,
        cloud_phone: 40,
        device_farm_suspected: 35,
        ios_app_on_mac: 15,
        app_cloned: 20,
        multi_instance: 20,
        work_profile_or_secondary_user: 3,
        battery_anomaly: 4,
        thermal_missing: 4,
      },
      groups: [
        // What a device lacks that is no phone: a Chromebook and a Wi-Fi tablet show several, and
        // emulators show more than these.
        {
          cap: 15,
          signals: [
            'radio_version_suspicious',
            'operator_name_android',
            'cpu_hypervisor',
            'arm_translation',
            'x86_abi',
            'battery_anomaly',
            'thermal_missing',
          ],
        },
      ],
    },
    debugger: {
      cap: 85,
      signals: {
        debugger_attached: 45,
        tracer_pid: { atLeast: 1, weight: 45 },
        ptrace_detected: 35,
        waiting_for_debugger: 20,
        app_debuggable: 20,
        ida_or_gdb_port: 20,
        // Below what a named framework weighs, and no floor: it can be one weak check.
        hooking_detected: 50,
        frida_detected: 75,
        frida_port_open: 20,
        frida_threads: 25,
        frida_maps: 60,
        frida_dbus_reply: 60,
        xposed_detected: 60,
        hook_framework: 0,
        native_hooks: 60,
        memdisk_mismatch: 60,
        symbol_or_runtime_hook: 60,
        breakpoint_detected: 35,
        watchpoint_detected: 35,
        memory_scanned: 40,
        automation_detected: 35,
        accessibility_abuse: 5,
        auto_clicker: 20,
        callback_suppressed: 60,
      },
    },
    tamper: {
      cap: 90,
      signals: {
        signature_mismatch: 80,
        package_name_mismatch: 70,
        bundle_id_mismatch: 70,
        code_integrity_failed: 70,
        library_injected: 55,
        untrusted_install_source: 20,
        installer_package: 0,
        obfuscation_missing: 2,
        device_binding_changed: 10,
        device_info_spoofed: 35,
        time_spoofed: 8,
        hardware_keystore_missing: 6,
        attestation_provider: 0,
        pi_device_verdict: {
          values: { MEETS_VIRTUAL_INTEGRITY: 30, MEETS_BASIC_INTEGRITY: 15, '(empty)': 35 },
          // Google returns every level that is met. Only the highest describes the device.
          unless: ['MEETS_DEVICE_INTEGRITY', 'MEETS_STRONG_INTEGRITY'],
        },
        pi_app_verdict: { values: { UNRECOGNIZED_VERSION: 60 } },
        pi_licensing: { values: { UNLICENSED: 15 } },
        pi_play_protect: { values: { HIGH_RISK: 30, MEDIUM_RISK: 15 } },
        pi_app_access_risk: {
          values: { UNKNOWN_CONTROLLING: 30, UNKNOWN_CAPTURING: 15, UNKNOWN_OVERLAYS: 15 },
        },
        pi_recent_activity: { values: { LEVEL_4: 25, LEVEL_3: 12 } },
        pi_device_recall_bits: 0,
        pi_account_activity: { values: { UNUSUAL: 12 } },
        attestation_nonce_mismatch: 60,
        attestation_failed: 60,
        // A signature that does not verify is no matter of opinion.
        app_attest_valid: { whenFalse: 45 },
      },
      groups: [
        // An app from another store is not licensed by Google's: one fact.
        { cap: 20, signals: ['untrusted_install_source', 'pi_licensing'] },
      ],
    },
    ecosystem: {
      cap: 40,
      signals: {
        developer_mode: 4,
        adb_enabled: 4,
        wireless_adb: 8,
        usb_connected: 0,
        no_passcode: 4,
        passcode_changed: 0,
        malware_detected: 30,
        suspicious_apps_count: 0,
        remote_control_active: 30,
        remote_control_provider: 0,
        screen_mirrored: 15,
        screen_recording: 12,
        screenshot_taken: 0,
        active_call: 5,
        overlay_or_interfering_apps: 12,
        location_spoofed: 20,
        mock_location_possible: 4,
        // A face or a document is injected, which does not happen by accident.
        camera_hijack: 40,
        virtual_camera: 40,
        factory_reset_at: 0,
        recent_factory_reset: 12,
        no_sim: 2,
        boot_count_low: 4,
        uptime_low: 4,
        os_outdated: 2,
        patch_age_days: 0,
        unknown_sources_enabled: 2,
        // Context: people at risk use Lockdown Mode, and a carrier or a permission accuses no one.
        carrier: 0,
        sim_country: 0,
        time_zone: 0,
        location_permission: 0,
        lockdown_mode: 0,
      },
    },
    network: {
      // Above a review: interception, or Tor, a proxy and a VPN together.
      cap: 50,
      signals: {
        vpn_active: 8,
        proxy_configured: 10,
        proxy_address: 0,
        mitm_detected: 30,
        pinning_failed: 30,
        user_ca_installed: 12,
        unsecure_wifi: 3,
        ssl_downgrade: 25,
        timezone_mismatch: 8,
        public_vpn_ip: 8,
        relay_ip: 3,
        datacenter_ip: 12,
        tor_ip: 20,
        proxy_ip: 15,
        vpn_confidence: 0,
        proxy_type: 0,
        forged_request: 60,
        // Below a review: honest clients repeat a request whose answer was lost.
        replayed_request: 30,
        ip_country: 0,
        asn: 0,
        asn_type: 0,
      },
      groups: [
        // A VPN or a relay leaves from a data centre in another time zone: one fact of the address.
        {
          cap: 12,
          signals: ['public_vpn_ip', 'relay_ip', 'datacenter_ip', 'timezone_mismatch'],
        },
        // What a company sets up on its phones.
        { cap: 15, signals: ['proxy_configured', 'user_ca_installed'] },
      ],
    },
  },
  // What the service verified and saw itself. Clients without install tokens score as they would
  // without it.
  serverCategories: {
    attestation: balancedAttestation,
    connection: connectionWeights,
  },
  // Emulators normally look rooted, so a confirmed emulator halves the root category.
  halving: [
    {
      category: 'root',
      confirmedBy: ['emulator.is_emulator', 'emulator.is_simulator'],
    },
  ],
  // Two independent critical signals of one category fill it.
  strongEvidence: { signals: 2 },
  floors: balancedFloors,
  // Posture, network and address describe a device's surroundings, not an attack on the app: their
  // points together stay one below BLOCK.
  softCategories: ['ecosystem', 'network', 'connection'],
  // Stores that sell apps as the platform's own store does. Google does not know their licences.
  trustedInstallers: {
    packages: otherAppStores,
    silences: [
      'tamper.untrusted_install_source',
      'tamper.pi_licensing',
      'attestation.pi_licensing',
    ],
  },
  suppressions: [],
  // Steps at counts that no household, shop or bad network explains: alone they lead to a review.
  velocity: [
    {
      metric: 'sessions_per_device',
      windowSeconds: 300,
      threshold: 20,
      weight: 30,
      steps: [{ above: 29, weight: 45 }],
    },
    {
      metric: 'sessions_per_device',
      windowSeconds: 3600,
      threshold: 60,
      weight: 30,
      steps: [{ above: 119, weight: 45 }],
    },
    {
      metric: 'users_per_device',
      windowSeconds: 86400,
      threshold: 3,
      weight: 20,
      steps: [{ above: 9, weight: 45 }],
    },
    {
      metric: 'users_per_device',
      windowSeconds: 2592000,
      threshold: 5,
      weight: 30,
      steps: [
        { above: 19, weight: 45 },
        { above: 49, weight: 60 },
      ],
    },
    {
      metric: 'devices_per_user',
      windowSeconds: 86400,
      threshold: 4,
      weight: 15,
      steps: [{ above: 7, weight: 45 }],
    },
    {
      metric: 'devices_per_user',
      windowSeconds: 2592000,
      threshold: 8,
      weight: 20,
      steps: [{ above: 9, weight: 45 }],
    },
    // Every launch has a new session id, so one on two devices was copied.
    { metric: 'devices_per_session', windowSeconds: 86400, threshold: 1, weight: 45 },
    { metric: 'platforms_per_device', windowSeconds: 2592000, threshold: 1, weight: 15 },
    { metric: 'signal_flips', windowSeconds: 86400, threshold: 3, weight: 10 },
    // People buy phones. With a remote control session beside it, it leads to a review.
    { metric: 'new_device_of_user', windowSeconds: 2592000, threshold: 0, weight: 10 },
    // A long journey has three countries in a day, and a VPN any number: hints, and one together.
    // Networks have no rule on their devices or users, because carriers put thousands behind one.
    { metric: 'countries_per_user', windowSeconds: 86400, threshold: 3, weight: 15 },
    { metric: 'countries_per_device', windowSeconds: 86400, threshold: 3, weight: 15 },
    { metric: 'networks_per_device', windowSeconds: 86400, threshold: 40, weight: 15 },
    // Who lends an account to family abroad does so too: it takes a new device to be a review.
    { metric: 'impossible_travel', windowSeconds: 86400, threshold: 0, weight: 30 },
  ],
  // A device without signals may share its id, user or address with many others.
  correlationAloneMax: 'REVIEW',
  // An honest client can be old and score by other weights. So a mismatch is a hint: it raises no
  // alert by itself and does not turn root alone, 70 at most, to BLOCK.
  scoreMismatch: { threshold: 30, weight: 4 },
  signalsMissing: { threshold: 0, usualShare: 0.95, devicesMin: 100, weight: 15 },
}
