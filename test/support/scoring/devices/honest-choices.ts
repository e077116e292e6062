/** More devices of honest people: developers, other stores, calls and custom systems. */
import { publishesBy, readDevices } from './device-row.ts'

export const honestChoices = readDevices(
  `
AARRA android | developer's own phone | Who debugs is a customer too; a strict tenant and a bank ask.
  | ecosystem.developer_mode ecosystem.adb_enabled ecosystem.usb_connected
  ecosystem.unknown_sources_enabled
AARRA android | developer's own phone over Wi-Fi | The same by wireless debugging.
  | ecosystem.developer_mode ecosystem.adb_enabled ecosystem.wireless_adb
  ecosystem.mock_location_possible
AAARA android | phone with USB debugging and nothing else | Half of its owners forgot it; a bank
  asks.
  | ecosystem.adb_enabled
AAAAA android | phone with developer mode and nothing else | Many people once changed an animation
  there.
  | ecosystem.developer_mode
RBBBB android | developer's debug build | Google does not know the build, so it is no release; a
  sandbox is for these.
  | debugger.app_debuggable tamper.untrusted_install_source
  tamper.pi_app_verdict="UNRECOGNIZED_VERSION" ecosystem.adb_enabled ecosystem.developer_mode
AARRA android | stock phone with another store and developer mode | A second store is a choice; a
  strict tenant and a bank ask.
  | tamper.untrusted_install_source tamper.pi_licensing="UNLICENSED"
  tamper.installer_package="com.aurora.store" ecosystem.developer_mode
  ecosystem.unknown_sources_enabled
AARRA android | the same with adb on | However many of these, a person looks.
  | tamper.untrusted_install_source tamper.pi_licensing="UNLICENSED"
  tamper.installer_package="com.aurora.store" ecosystem.developer_mode ecosystem.adb_enabled
  ecosystem.unknown_sources_enabled
AAAAA android | Galaxy Store | The presets trust it.
  | tamper.untrusted_install_source tamper.installer_package="com.sec.android.app.samsungapps"
AAAAA android | AppGallery | The presets trust it, and Google sold no licence.
  | tamper.untrusted_install_source tamper.installer_package="com.huawei.appmarket"
  tamper.pi_licensing="UNLICENSED"
AAAAA android | Amazon tablet | A Wi-Fi tablet with its own store.
  | emulator.radio_version_suspicious tamper.untrusted_install_source
  tamper.installer_package="com.amazon.venezia" ecosystem.no_sim
AAAAA android | Xiaomi phone with GetApps | The presets trust it.
  | tamper.untrusted_install_source tamper.installer_package="com.xiaomi.mipicks"
AAAAA android | Huawei phone without Google | Google could not be asked.
  | tamper.untrusted_install_source tamper.installer_package="com.huawei.appmarket"
  tamper.pi_device_verdict=null tamper.pi_app_verdict=null tamper.pi_licensing=null
  tamper.pi_play_protect=null
AAAAA android | build of the Galaxy Store that Google does not know | The tenant says that it
  publishes there.
  | tamper.untrusted_install_source tamper.pi_licensing="UNLICENSED"
  tamper.pi_app_verdict="UNRECOGNIZED_VERSION"
  tamper.installer_package="com.sec.android.app.samsungapps"
AAAAA android | build of AppGallery that Google does not know | The tenant says that it publishes
  there.
  | tamper.untrusted_install_source tamper.pi_licensing="UNLICENSED"
  tamper.pi_app_verdict="UNRECOGNIZED_VERSION" tamper.installer_package="com.huawei.appmarket"
ARBBR android | the same where the tenant does not publish there | The installer is what the app
  says; Google does not know its signature.
  | tamper.untrusted_install_source tamper.pi_licensing="UNLICENSED"
  tamper.pi_app_verdict="UNRECOGNIZED_VERSION"
  tamper.installer_package="com.sec.android.app.samsungapps"
AAAAA android | beta tester of the developer's own store | The tenant trusts its own store.
  | tamper.untrusted_install_source tamper.pi_licensing="UNLICENSED"
  tamper.pi_app_verdict="UNRECOGNIZED_VERSION" tamper.installer_package="com.acme.beta"
AAAAA android | beta tester by Firebase | The presets trust it.
  | tamper.untrusted_install_source tamper.installer_package="dev.firebase.appdistribution"
AARAA android | sideloaded app | A file from anywhere; a strict tenant asks.
  | tamper.untrusted_install_source tamper.installer_package="com.google.android.packageinstaller"
AAAAA android | reinstalled app | A reinstall is no fraud.
  | tamper.device_binding_changed
AARAA ios | new phone from a backup | A restored backup; a strict tenant asks.
  | tamper.device_binding_changed ecosystem.recent_factory_reset
AAAAA android | phone that was just reset | It was sold or repaired.
  | ecosystem.recent_factory_reset ecosystem.boot_count_low ecosystem.uptime_low
AAAAA android | phone with a wrong clock | Children change it for games.
  | tamper.time_spoofed
AAAAA android | app that is not obfuscated | The tenant's build, not the phone.
  | tamper.obfuscation_missing
AAAAA android | phone whose user is in a call | People call while they pay.
  | ecosystem.active_call
AARAA android | phone that plays on a TV | A film on a TV; a strict tenant asks.
  | ecosystem.screen_mirrored
AARAA ios | phone that records its screen | A recording for support; a strict tenant asks.
  | ecosystem.screen_recording
AAAAA ios | phone after a screenshot | Receipts are kept so.
  | ecosystem.screenshot_taken
ARRRR android | remote support | Someone else can pay from this phone.
  | ecosystem.remote_control_active ecosystem.remote_control_provider="teamviewer"
AAAAA android | phone with a chat head | A messenger draws its bubble.
  | tamper.pi_app_access_risk=["KNOWN_OVERLAYS"] ecosystem.overlay_or_interfering_apps
ARRRR android | GrapheneOS, locked | Its owner chose a hardened system, which Google does not vouch
  for.
  | root.verified_boot_state="SELF_SIGNED" root.custom_rom root.rom_name="GrapheneOS"
  tamper.pi_device_verdict=["MEETS_BASIC_INTEGRITY"]
AAAAA android | phone with a stock ROM that has busybox | Some makers ship it.
  | root.busybox_binary
AAAAA android | phone with test keys of its maker | Some makers sign carelessly.
  | root.test_keys root.dangerous_props
AAAAA android | phone with OEM unlocking allowed | A setting that unlocks nothing.
  | root.oem_unlock_allowed
AARAA android | phone with a GLib thread | The name of a thread is shared by GLib.
  | debugger.frida_threads
ARRRR android | phone with the port of Frida open | Another server may have the port: a person
  looks.
  | debugger.frida_port_open
`,
  {
    'build of the Galaxy Store that Google does not know': publishesBy(
      'com.sec.android.app.samsungapps',
    ),
    'build of AppGallery that Google does not know': publishesBy('com.huawei.appmarket'),
    "beta tester of the developer's own store": publishesBy('com.acme.beta'),
  },
)
