/** Attacks on the app: farms, hooks, changed apps and false identities. */
import { readDevices } from './device-row.ts'

export const attacks = readDevices(`
RBBBB android | emulator farm | Hundreds of accounts on one computer.
  | root.su_binary root.dangerous_props emulator.is_emulator emulator.emulator_files
  emulator.qemu_props emulator.qemu_prop_count=9 emulator.vbox_mounts emulator.cpu_hypervisor
  emulator.device_farm_suspected tamper.pi_device_verdict=[] network.proxy_configured
  network.timezone_mismatch
RBBBB android | emulator farm that hides | Files, properties and a false model.
  | emulator.emulator_files emulator.qemu_props emulator.qemu_prop_count=7 emulator.vbox_mounts
  emulator.emulator_packages tamper.device_info_spoofed tamper.pi_device_verdict=[]
ARBBR android | cloud phone | Rented by the hour.
  | emulator.cloud_phone emulator.battery_anomaly emulator.thermal_missing ecosystem.no_sim
  ecosystem.boot_count_low
RBBBB android | cloud phone farm | Rented by the hundred.
  | emulator.cloud_phone emulator.device_farm_suspected emulator.battery_anomaly
RBBBB android | box of phones | Real phones, steered together.
  | emulator.device_farm_suspected debugger.automation_detected ecosystem.adb_enabled
  network.proxy_ip
RBBBB android | Frida | The app is instrumented.
  | root.su_binary debugger.frida_detected
RBBBB android | Frida by its libraries | The app is instrumented.
  | debugger.frida_maps
RBBBB android | Frida gadget in a repackaged app | No root needed.
  | debugger.frida_threads debugger.frida_port_open tamper.signature_mismatch
  tamper.untrusted_install_source
RBBBB ios | Frida on a jailbroken iPhone | The app is instrumented.
  | root.jb_dylib_injected debugger.frida_detected debugger.symbol_or_runtime_hook
ARBBR android | hooks by an SDK's general verdict | It can be one weak check.
  | debugger.hooking_detected
RBBBB android | native hooks | Code was patched in memory.
  | debugger.native_hooks
ARBBR android | code that differs from its file | A critical sign by itself.
  | debugger.memdisk_mismatch
RBBBB android | Xposed | A hook on a rooted phone.
  | root.zygisk_detected debugger.xposed_detected
ARBBR android | Xposed, root hidden | A critical sign by itself.
  | debugger.xposed_detected
RBBBB android | LSPosed that silences the SDK | Two critical signs.
  | debugger.xposed_detected debugger.callback_suppressed
ARBBR android | callbacks that never come | Someone stops the SDK.
  | debugger.callback_suppressed
ARBBR ios | runtime hooks on an iPhone | A critical sign by itself.
  | debugger.symbol_or_runtime_hook
ARRRR android | memory scanner | A cheat for values in memory.
  | debugger.memory_scanned
RBBBB android | repackaged app | Another publisher signed it.
  | tamper.signature_mismatch tamper.untrusted_install_source
  tamper.pi_app_verdict="UNRECOGNIZED_VERSION" tamper.installer_package="com.apkpure.aegon"
RBBBB android | repackaged app that names a trusted store | Whoever changes the app can name any
  installer.
  | tamper.signature_mismatch tamper.untrusted_install_source
  tamper.pi_app_verdict="UNRECOGNIZED_VERSION"
  tamper.installer_package="com.sec.android.app.samsungapps"
RBBBB android | app with another package name | A copy of the app.
  | tamper.package_name_mismatch
RBBBB ios | app with another bundle id | A copy of the app.
  | tamper.bundle_id_mismatch
ARBBR android | changed code | A critical sign by itself.
  | tamper.code_integrity_failed
ARBBR android | injected library | A critical sign by itself.
  | tamper.library_injected
RBBBB android | changed code and an injected library | Two critical signs.
  | tamper.code_integrity_failed tamper.library_injected
ARBBR android | app that Google does not know | Its signature or version is not the publisher's.
  | tamper.pi_app_verdict="UNRECOGNIZED_VERSION"
AARAA android | crowd of integrity tokens | A device that asks all day; a strict tenant asks.
  | tamper.pi_recent_activity="LEVEL_4"
ARBBR android | identity changer | A new phone every day.
  | tamper.device_info_spoofed tamper.device_binding_changed ecosystem.recent_factory_reset
  network.vpn_active
RBBBB android | identity changer with a false location | Nothing that it says is true.
  | tamper.device_info_spoofed tamper.device_binding_changed ecosystem.recent_factory_reset
  ecosystem.location_spoofed
AABRR android | automation framework | Appium: a test, or a script for a market that adds up by
  its counts.
  | debugger.automation_detected ecosystem.adb_enabled
AARAR android | auto clicker | It accepts orders before people can.
  | debugger.auto_clicker
AARAR android | auto clicker by accessibility | The same, seen from three sides.
  | debugger.auto_clicker debugger.accessibility_abuse ecosystem.overlay_or_interfering_apps
`)
