/** More devices of honest people: developers, other stores, calls and custom systems. */
import { type DeviceRow, publishesBy } from './device-row.ts'

export const honestChoices: readonly DeviceRow[] = [
  {
    device: "developer's own phone",
    base: 'android',
    signals: {
      ecosystem: {
        developer_mode: true,
        adb_enabled: true,
        usb_connected: true,
        unknown_sources_enabled: true,
      },
    },
    right: 'AARBA',
    why: 'Circular 77 refuses adb; a strict tenant asks.',
  },
  {
    device: "developer's own phone over Wi-Fi",
    base: 'android',
    signals: {
      ecosystem: {
        developer_mode: true,
        adb_enabled: true,
        wireless_adb: true,
        mock_location_possible: true,
      },
    },
    right: 'AARBA',
    why: 'The same by wireless debugging.',
  },
  {
    device: 'phone with developer mode and nothing else',
    base: 'android',
    signals: { ecosystem: { developer_mode: true } },
    right: 'AAAAA',
    why: 'Many people once changed an animation there.',
  },
  {
    device: "developer's debug build",
    base: 'android',
    signals: {
      debugger: { app_debuggable: true },
      tamper: { untrusted_install_source: true, pi_app_verdict: 'UNRECOGNIZED_VERSION' },
      ecosystem: { adb_enabled: true, developer_mode: true },
    },
    right: 'RBBBB',
    why: 'Google does not know the build, so it is no release; a sandbox is for these.',
  },
  {
    device: 'stock phone with another store and developer mode',
    base: 'android',
    signals: {
      tamper: {
        untrusted_install_source: true,
        pi_licensing: 'UNLICENSED',
        installer_package: 'com.aurora.store',
      },
      ecosystem: { developer_mode: true, unknown_sources_enabled: true },
    },
    right: 'AARAA',
    why: 'A second store is a choice; a strict tenant asks.',
  },
  {
    device: 'the same with adb on',
    base: 'android',
    signals: {
      tamper: {
        untrusted_install_source: true,
        pi_licensing: 'UNLICENSED',
        installer_package: 'com.aurora.store',
      },
      ecosystem: { developer_mode: true, adb_enabled: true, unknown_sources_enabled: true },
    },
    right: 'AARBA',
    why: 'Never BLOCK but where adb is.',
  },
  {
    device: 'Galaxy Store',
    base: 'android',
    signals: {
      tamper: {
        untrusted_install_source: true,
        installer_package: 'com.sec.android.app.samsungapps',
      },
    },
    right: 'AAAAA',
    why: 'The presets trust it.',
  },
  {
    device: 'AppGallery',
    base: 'android',
    signals: {
      tamper: {
        untrusted_install_source: true,
        installer_package: 'com.huawei.appmarket',
        pi_licensing: 'UNLICENSED',
      },
    },
    right: 'AAAAA',
    why: 'The presets trust it, and Google sold no licence.',
  },
  {
    device: 'Amazon tablet',
    base: 'android',
    signals: {
      emulator: { radio_version_suspicious: true },
      tamper: { untrusted_install_source: true, installer_package: 'com.amazon.venezia' },
      ecosystem: { no_sim: true },
    },
    right: 'AAAAA',
    why: 'A Wi-Fi tablet with its own store.',
  },
  {
    device: 'Xiaomi phone with GetApps',
    base: 'android',
    signals: {
      tamper: { untrusted_install_source: true, installer_package: 'com.xiaomi.mipicks' },
    },
    right: 'AAAAA',
    why: 'The presets trust it.',
  },
  {
    device: 'Huawei phone without Google',
    base: 'android',
    signals: {
      tamper: {
        untrusted_install_source: true,
        installer_package: 'com.huawei.appmarket',
        pi_device_verdict: null,
        pi_app_verdict: null,
        pi_licensing: null,
        pi_play_protect: null,
      },
    },
    right: 'AAAAA',
    why: 'Google could not be asked.',
  },
  {
    device: 'build of the Galaxy Store that Google does not know',
    base: 'android',
    signals: {
      tamper: {
        untrusted_install_source: true,
        pi_licensing: 'UNLICENSED',
        pi_app_verdict: 'UNRECOGNIZED_VERSION',
        installer_package: 'com.sec.android.app.samsungapps',
      },
    },
    right: 'AAAAA',
    why: 'The tenant says that it publishes there.',
    policy: publishesBy('com.sec.android.app.samsungapps'),
  },
  {
    device: 'build of AppGallery that Google does not know',
    base: 'android',
    signals: {
      tamper: {
        untrusted_install_source: true,
        pi_licensing: 'UNLICENSED',
        pi_app_verdict: 'UNRECOGNIZED_VERSION',
        installer_package: 'com.huawei.appmarket',
      },
    },
    right: 'AAAAA',
    why: 'The tenant says that it publishes there.',
    policy: publishesBy('com.huawei.appmarket'),
  },
  {
    device: 'the same where the tenant does not publish there',
    base: 'android',
    signals: {
      tamper: {
        untrusted_install_source: true,
        pi_licensing: 'UNLICENSED',
        pi_app_verdict: 'UNRECOGNIZED_VERSION',
        installer_package: 'com.sec.android.app.samsungapps',
      },
    },
    right: 'ARBBR',
    why: 'The installer is what the app says; Google does not know its signature.',
  },
  {
    device: "beta tester of the developer's own store",
    base: 'android',
    signals: {
      tamper: {
        untrusted_install_source: true,
        pi_licensing: 'UNLICENSED',
        pi_app_verdict: 'UNRECOGNIZED_VERSION',
        installer_package: 'com.acme.beta',
      },
    },
    right: 'AAAAA',
    why: 'The tenant trusts its own store.',
    policy: publishesBy('com.acme.beta'),
  },
  {
    device: 'beta tester by Firebase',
    base: 'android',
    signals: {
      tamper: { untrusted_install_source: true, installer_package: 'dev.firebase.appdistribution' },
    },
    right: 'AAAAA',
    why: 'The presets trust it.',
  },
  {
    device: 'sideloaded app',
    base: 'android',
    signals: {
      tamper: {
        untrusted_install_source: true,
        installer_package: 'com.google.android.packageinstaller',
      },
    },
    right: 'AARAA',
    why: 'A file from anywhere; a strict tenant asks.',
  },
  {
    device: 'reinstalled app',
    base: 'android',
    signals: { tamper: { device_binding_changed: true } },
    right: 'AAAAA',
    why: 'A reinstall is no fraud.',
  },
  {
    device: 'new phone from a backup',
    base: 'ios',
    signals: {
      tamper: { device_binding_changed: true },
      ecosystem: { recent_factory_reset: true },
    },
    right: 'AARAA',
    why: 'A restored backup; a strict tenant asks.',
  },
  {
    device: 'phone that was just reset',
    base: 'android',
    signals: { ecosystem: { recent_factory_reset: true, boot_count_low: true, uptime_low: true } },
    right: 'AAAAA',
    why: 'It was sold or repaired.',
  },
  {
    device: 'phone with a wrong clock',
    base: 'android',
    signals: { tamper: { time_spoofed: true } },
    right: 'AAAAA',
    why: 'Children change it for games.',
  },
  {
    device: 'app that is not obfuscated',
    base: 'android',
    signals: { tamper: { obfuscation_missing: true } },
    right: 'AAAAA',
    why: "The tenant's build, not the phone.",
  },
  {
    device: 'phone whose user is in a call',
    base: 'android',
    signals: { ecosystem: { active_call: true } },
    right: 'AAAAA',
    why: 'People call while they pay.',
  },
  {
    device: 'phone that plays on a TV',
    base: 'android',
    signals: { ecosystem: { screen_mirrored: true } },
    right: 'AARAA',
    why: 'A film on a TV; a strict tenant asks.',
  },
  {
    device: 'phone that records its screen',
    base: 'ios',
    signals: { ecosystem: { screen_recording: true } },
    right: 'AARAA',
    why: 'A recording for support; a strict tenant asks.',
  },
  {
    device: 'phone after a screenshot',
    base: 'ios',
    signals: { ecosystem: { screenshot_taken: true } },
    right: 'AAAAA',
    why: 'Receipts are kept so.',
  },
  {
    device: 'remote support',
    base: 'android',
    signals: { ecosystem: { remote_control_active: true, remote_control_provider: 'teamviewer' } },
    right: 'AARAA',
    why: 'Support of a company; with a call it is the scam.',
  },
  {
    device: 'phone with a chat head',
    base: 'android',
    signals: {
      tamper: { pi_app_access_risk: ['KNOWN_OVERLAYS'] },
      ecosystem: { overlay_or_interfering_apps: true },
    },
    right: 'AAAAA',
    why: 'A messenger draws its bubble.',
  },
  {
    device: 'GrapheneOS, locked',
    base: 'android',
    signals: {
      root: { verified_boot_state: 'SELF_SIGNED', custom_rom: true, rom_name: 'GrapheneOS' },
      tamper: { pi_device_verdict: ['MEETS_BASIC_INTEGRITY'] },
    },
    right: 'AARAA',
    why: 'Its owner chose a hardened system, and the bootloader is locked.',
  },
  {
    device: 'phone with a stock ROM that has busybox',
    base: 'android',
    signals: { root: { busybox_binary: true } },
    right: 'AAAAA',
    why: 'Some makers ship it.',
  },
  {
    device: 'phone with test keys of its maker',
    base: 'android',
    signals: { root: { test_keys: true, dangerous_props: true } },
    right: 'AAAAA',
    why: 'Some makers sign carelessly.',
  },
  {
    device: 'phone with OEM unlocking allowed',
    base: 'android',
    signals: { root: { oem_unlock_allowed: true } },
    right: 'AAAAA',
    why: 'A setting that unlocks nothing.',
  },
  {
    device: 'phone with a GLib thread',
    base: 'android',
    signals: { debugger: { frida_threads: true } },
    right: 'AARAA',
    why: 'The name of a thread is shared by GLib.',
  },
  {
    device: 'phone with the port of Frida open',
    base: 'android',
    signals: { debugger: { frida_port_open: true } },
    right: 'AARAA',
    why: 'Another server may have the port.',
  },
]
