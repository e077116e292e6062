/**
 * The kinds of phone in the fleet: their shares, their use and their signals. Most are stock
 * phones, some only look suspicious (custom ROMs, tablets without a radio, Chromebooks,
 * developers), and the rest are the targets of a fraud team.
 */
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { paint } from './clean-signals.ts'
import type { Platform } from './hardware.ts'
import type { Random } from './random.ts'

/**
 * How a phone is used: by people; by a farm in bursts; by dozens of accounts one after another; or
 * by a script that starts session after session.
 */
export type Usage = 'person' | 'farm' | 'accounts' | 'script'

export type Kind = {
  name: string
  /** Phones of this kind in a thousand. */
  share: number
  platform: Platform
  usage: Usage
  /** Whether its user forges the verdict of the SDK's own scorer. */
  forges: number
  /** Changes the clean signals of the phone; drawn once per phone. */
  paint: (signals: Signals, random: Random) => void
  /** Changes signals from the second batch of a session on; drawn once per session. */
  later?: (signals: Signals, random: Random) => void
  /** The phone is a Wi-Fi tablet. */
  tablet?: boolean
}

const nothing = () => {}

type Plain = Omit<Kind, 'usage' | 'forges'> & Partial<Pick<Kind, 'usage' | 'forges'>>
const kind = (plain: Plain): Kind => ({ usage: 'person', forges: 0, ...plain })

/** Harmless phones, some of which look suspicious: they should raise no alert. */
const honest: Kind[] = [
  kind({ name: 'stock-android', share: 452, platform: 'android', paint: nothing }),
  kind({ name: 'stock-ios', share: 256, platform: 'ios', paint: nothing }),
  kind({
    name: 'wifi-tablet',
    share: 24,
    platform: 'android',
    tablet: true,
    paint: (signals) => {
      paint(signals, 'emulator', { radio_version_suspicious: true })
      paint(signals, 'ecosystem', { no_sim: true })
    },
  }),
  kind({
    name: 'chromebook',
    share: 8,
    platform: 'android',
    paint: (signals) => {
      const translated = { x86_abi: true, arm_translation: true, radio_version_suspicious: true }
      paint(signals, 'emulator', { ...translated, sensor_count: 3, thermal_missing: true })
      paint(signals, 'ecosystem', { no_sim: true })
    },
  }),
  kind({
    name: 'developer',
    share: 22,
    platform: 'android',
    paint: (signals, random) => {
      const wireless_adb = random.chance(0.4)
      paint(signals, 'ecosystem', { developer_mode: true, adb_enabled: true, wireless_adb })
      paint(signals, 'ecosystem', { usb_connected: !wireless_adb, unknown_sources_enabled: true })
    },
  }),
  kind({
    name: 'busybox-stock-rom',
    share: 12,
    platform: 'android',
    paint: (signals) => paint(signals, 'root', { busybox_binary: true }),
  }),
  kind({
    name: 'work-profile',
    share: 20,
    platform: 'android',
    paint: (signals) => paint(signals, 'emulator', { work_profile_or_secondary_user: true }),
  }),
  kind({
    name: 'lineageos',
    share: 12,
    platform: 'android',
    paint: (signals, random) => {
      const rom_name = random.pick(['LineageOS 22.2', 'LineageOS 21', 'crDroid 11.3'])
      paint(signals, 'root', { bootloader_unlocked: true, custom_rom: true, rom_name })
      paint(signals, 'root', { busybox_binary: true, test_keys: random.chance(0.3) })
      paint(signals, 'root', { verified_boot_state: random.pick(['SELF_SIGNED', 'UNVERIFIED']) })
      paint(signals, 'root', { dangerous_props: random.chance(0.5) })
      paint(signals, 'tamper', { pi_device_verdict: ['MEETS_BASIC_INTEGRITY'] })
      paint(signals, 'ecosystem', { developer_mode: true, adb_enabled: random.chance(0.5) })
    },
  }),
  kind({
    name: 'vpn-android',
    share: 30,
    platform: 'android',
    paint: (signals, random) =>
      paint(signals, 'network', { vpn_active: true, timezone_mismatch: random.chance(0.5) }),
  }),
  kind({
    name: 'vpn-ios',
    share: 22,
    platform: 'ios',
    paint: (signals, random) =>
      paint(signals, 'network', { vpn_active: true, timezone_mismatch: random.chance(0.4) }),
  }),
  kind({
    name: 'company-proxy',
    share: 10,
    platform: 'android',
    paint: (signals, random) => {
      const proxy_address = `10.${random.int(0, 255)}.${random.int(0, 255)}.8:3128`
      paint(signals, 'network', { proxy_configured: true, user_ca_installed: true, proxy_address })
    },
  }),
  kind({
    name: 'ios-app-on-mac',
    share: 6,
    platform: 'ios',
    paint: (signals) => {
      paint(signals, 'emulator', { ios_app_on_mac: true })
      paint(signals, 'ecosystem', { no_sim: true })
    },
  }),
  kind({
    name: 'accessibility-user',
    share: 6,
    platform: 'android',
    paint: (signals) => paint(signals, 'debugger', { accessibility_abuse: true }),
  }),
  kind({
    name: 'sideloaded',
    share: 10,
    platform: 'android',
    paint: (signals) => {
      const installer_package = 'com.google.android.packageinstaller'
      paint(signals, 'tamper', { untrusted_install_source: true, installer_package })
    },
  }),
]

/** Rooted, jailbroken, virtual and duplicated devices. */
const modified: Kind[] = [
  kind({
    name: 'rooted-magisk',
    share: 16,
    platform: 'android',
    forges: 0.1,
    paint: (signals, random) => {
      paint(signals, 'root', { bootloader_unlocked: true, magisk_detected: random.chance(0.8) })
      paint(signals, 'root', { su_binary: random.chance(0.6), root_management_app: true })
      paint(signals, 'root', { dangerous_apps: random.chance(0.2) })
      paint(signals, 'root', { evidence: ['/data/adb/magisk', 'com.topjohnwu.magisk'] })
      if (!random.chance(0.45)) return
      paint(signals, 'root', { root_hiding: true, zygisk_detected: true, su_binary: false })
      paint(signals, 'root', { root_management_app: false, evidence: ['shamiko', 'denylist'] })
    },
  }),
  kind({
    name: 'rooted-kernelsu',
    share: 7,
    platform: 'android',
    paint: (signals, random) => {
      const kernelsu_detected = random.chance(0.75)
      paint(signals, 'root', { kernelsu_detected, apatch_detected: !kernelsu_detected })
      paint(signals, 'root', { bootloader_unlocked: true, selinux_permissive: random.chance(0.2) })
      paint(signals, 'tamper', { pi_device_verdict: [] })
    },
  }),
  kind({
    name: 'jailbroken',
    share: 9,
    platform: 'ios',
    forges: 0.1,
    paint: (signals, random) => {
      const rootless = random.chance(0.7)
      paint(signals, 'root', { jailbroken: true, jb_symlinks: rootless })
      paint(signals, 'root', { jb_url_scheme: random.chance(0.6), jb_suspicious_files: !rootless })
      paint(signals, 'root', {
        jb_files_openable: !rootless,
        jb_dylib_injected: random.chance(0.3),
      })
      paint(signals, 'root', { evidence: rootless ? ['/var/jb', 'palera1n'] : ['/Library/dpkg'] })
    },
  }),
  kind({
    name: 'test-emulator',
    share: 5,
    platform: 'android',
    paint: (signals) => {
      paint(signals, 'emulator', { is_emulator: true, emulator_vendor: 'avd', x86_abi: true })
      paint(signals, 'emulator', { build_fingerprint_suspicious: true, sensor_count: 9 })
      paint(signals, 'emulator', { emulator_network: true, operator_name_android: true })
      paint(signals, 'ecosystem', { developer_mode: true, adb_enabled: true })
    },
  }),
  kind({
    name: 'ios-simulator',
    share: 3,
    platform: 'ios',
    paint: (signals) => {
      paint(signals, 'emulator', { is_simulator: true })
      paint(signals, 'tamper', { app_attest_valid: null, hardware_keystore_missing: true })
    },
  }),
  kind({
    name: 'app-cloner',
    share: 10,
    platform: 'android',
    paint: (signals, random) =>
      paint(signals, 'emulator', { app_cloned: true, multi_instance: random.chance(0.4) }),
  }),
  kind({
    name: 'gps-spoofer',
    share: 9,
    platform: 'android',
    paint: (signals) =>
      paint(signals, 'ecosystem', { location_spoofed: true, developer_mode: true }),
  }),
]

/** Attacks on the app, on its user and on the business behind it. */
const hostile: Kind[] = [
  kind({
    name: 'emulator-farm',
    share: 26,
    platform: 'android',
    usage: 'farm',
    forges: 0.6,
    paint: (signals, random) => {
      const emulator_vendor = random.pick(['ldplayer', 'nox', 'memu', 'bluestacks'])
      paint(signals, 'emulator', { is_emulator: true, emulator_vendor, emulator_files: true })
      paint(signals, 'emulator', { qemu_props: true, qemu_prop_count: random.int(5, 14) })
      paint(signals, 'emulator', { vbox_mounts: true, cpu_hypervisor: true, sensor_count: 4 })
      paint(signals, 'emulator', { battery_anomaly: true, x86_abi: true, arm_translation: true })
      paint(signals, 'emulator', { device_farm_suspected: random.chance(0.5) })
      paint(signals, 'root', { su_binary: true, dangerous_props: true })
      paint(signals, 'tamper', { device_info_spoofed: random.chance(0.5), pi_device_verdict: [] })
      paint(signals, 'network', { proxy_configured: true, timezone_mismatch: true })
    },
  }),
  kind({
    name: 'cloud-phone',
    share: 9,
    platform: 'android',
    usage: 'farm',
    forges: 0.3,
    paint: (signals, random) => {
      paint(signals, 'emulator', { cloud_phone: true, battery_anomaly: true })
      paint(signals, 'emulator', { thermal_missing: true, sensor_count: random.int(0, 5) })
      paint(signals, 'ecosystem', { no_sim: true, adb_enabled: true, boot_count_low: true })
    },
  }),
  kind({
    name: 'frida-android',
    share: 5,
    platform: 'android',
    forges: 0.7,
    paint: (signals) => paint(signals, 'root', { su_binary: true, magisk_detected: true }),
    // The app starts clean and is attached to once it runs.
    later: (signals, random) => {
      const frida_detected = random.chance(0.7)
      paint(signals, 'debugger', { frida_detected, frida_threads: true, frida_port_open: true })
      paint(signals, 'debugger', { native_hooks: random.chance(0.5), hook_framework: 'frida' })
      paint(signals, 'debugger', { evidence: ['gum-js-loop', 'linjector', 'frida-agent-64.so'] })
    },
  }),
  kind({
    name: 'frida-ios',
    share: 3,
    platform: 'ios',
    forges: 0.7,
    paint: (signals) => paint(signals, 'root', { jailbroken: true, jb_dylib_injected: true }),
    later: (signals, random) => {
      paint(signals, 'debugger', { frida_detected: true, symbol_or_runtime_hook: true })
      paint(signals, 'debugger', { breakpoint_detected: random.chance(0.3) })
    },
  }),
  kind({
    name: 'xposed',
    share: 6,
    platform: 'android',
    forges: 0.8,
    paint: (signals, random) => {
      const hook_framework = random.pick(['lsposed', 'edxposed', 'xposed'])
      paint(signals, 'debugger', { xposed_detected: true, hook_framework })
      paint(signals, 'debugger', { callback_suppressed: random.chance(0.25) })
      paint(signals, 'root', { zygisk_detected: true, bootloader_unlocked: true })
    },
  }),
  kind({
    name: 'repackaged',
    share: 8,
    platform: 'android',
    forges: 0.5,
    paint: (signals, random) => {
      const installer_package = random.pick(['com.apkpure.aegon', 'org.telegram.messenger'])
      paint(signals, 'tamper', { signature_mismatch: true, untrusted_install_source: true })
      paint(signals, 'tamper', { pi_app_verdict: 'UNRECOGNIZED_VERSION', installer_package })
      paint(signals, 'tamper', { code_integrity_failed: random.chance(0.4), pi_licensing: null })
      paint(signals, 'debugger', { app_debuggable: random.chance(0.3) })
    },
  }),
  kind({
    name: 'spoofed-identity',
    share: 4,
    platform: 'android',
    forges: 0.4,
    paint: (signals, random) => {
      paint(signals, 'tamper', { device_info_spoofed: true, device_binding_changed: true })
      paint(signals, 'ecosystem', { recent_factory_reset: true, location_spoofed: true })
      paint(signals, 'network', { vpn_active: random.chance(0.7) })
    },
  }),
  kind({
    name: 'traffic-analyst',
    share: 3,
    platform: 'android',
    paint: (signals) => {
      const proxy_address = '192.168.1.20:8080'
      paint(signals, 'network', { proxy_configured: true, user_ca_installed: true, proxy_address })
      paint(signals, 'network', { mitm_detected: true, pinning_failed: true })
      paint(signals, 'ecosystem', { developer_mode: true, adb_enabled: true })
    },
  }),
  kind({
    name: 'malware-victim',
    share: 4,
    platform: 'android',
    paint: (signals, random) => {
      const suspicious_apps_count = random.int(1, 4)
      paint(signals, 'ecosystem', { malware_detected: true, suspicious_apps_count })
      paint(signals, 'ecosystem', { overlay_or_interfering_apps: random.chance(0.6) })
      paint(signals, 'tamper', { pi_play_protect: random.pick(['MEDIUM_RISK', 'HIGH_RISK']) })
      paint(signals, 'debugger', { accessibility_abuse: true })
    },
  }),
  kind({
    name: 'scam-call-victim',
    share: 5,
    platform: 'android',
    paint: nothing,
    // The caller talks the victim into a remote session while the banking app is open.
    later: (signals, random) => {
      const remote_control_provider = random.pick(['anydesk', 'teamviewer', 'rustdesk'])
      paint(signals, 'ecosystem', { remote_control_active: true, remote_control_provider })
      paint(signals, 'ecosystem', { active_call: true, screen_mirrored: random.chance(0.7) })
      paint(signals, 'tamper', { pi_app_access_risk: ['UNKNOWN_CONTROLLING', 'KNOWN_INSTALLED'] })
    },
  }),
  kind({
    name: 'account-farm',
    share: 6,
    platform: 'android',
    usage: 'accounts',
    forges: 0.2,
    paint: (signals, random) => {
      paint(signals, 'emulator', { multi_instance: true, app_cloned: random.chance(0.5) })
      paint(signals, 'network', { vpn_active: random.chance(0.5) })
    },
  }),
  kind({
    name: 'scripted-sessions',
    share: 4,
    platform: 'android',
    usage: 'script',
    forges: 0.2,
    paint: (signals, random) => {
      const scripted = random.chance(0.75)
      paint(signals, 'debugger', { automation_detected: scripted, auto_clicker: !scripted })
      paint(signals, 'ecosystem', { adb_enabled: true })
    },
  }),
  // Fast, but nothing else is wrong: only extreme velocity raises an alert by default.
  kind({
    name: 'restless-app',
    share: 2,
    platform: 'android',
    usage: 'script',
    paint: nothing,
  }),
]

/** The kinds that a fraud team does not look for. */
export const honestKinds: ReadonlySet<string> = new Set(honest.map(({ name }) => name))

/** Every kind; the shares are per thousand and need not add up exactly. */
export const kinds: readonly Kind[] = [...honest, ...modified, ...hostile]
