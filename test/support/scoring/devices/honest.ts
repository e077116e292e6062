/** Devices of honest people that look suspicious and are not: hardware, settings and networks. */
import { publishesBy, readDevices } from './device-row.ts'

export const honestDevices = readDevices(
  `
AAAAA android | stock Android phone | Nothing is detected.
AAAAA ios | stock iPhone | Nothing is detected.
AAAAA android | phone with every level of Play Integrity | Only the highest level describes it.
  |
  tamper.pi_device_verdict=["MEETS_BASIC_INTEGRITY","MEETS_DEVICE_INTEGRITY","MEETS_STRONG_INTEGRITY"]
AAAAA android | phone whose app could not ask Google | Not measured is no finding: no network, no
  Play services, a quota.
  | tamper.pi_device_verdict=null tamper.pi_app_verdict=null tamper.pi_licensing=null
  tamper.pi_play_protect=null tamper.attestation_failed=null
AAAAA android | phone with Google services switched off | Google did not evaluate it.
  | tamper.pi_app_verdict="UNEVALUATED" tamper.pi_licensing="UNEVALUATED"
  tamper.pi_play_protect="UNEVALUATED" tamper.pi_device_verdict=null
AAAAA nothing | old SDK that measures little | What it measures is clean.
  | root.su_binary=false emulator.is_emulator=false debugger.frida_detected=false
  tamper.signature_mismatch=false ecosystem.adb_enabled=false network.vpn_active=false
AAAAA android | user of TalkBack | A screen reader is an accessibility service and draws over
  apps.
  | debugger.accessibility_abuse ecosystem.overlay_or_interfering_apps
AAAAA android | user of TalkBack without a passcode | Entering a code blindly is hard, so many
  have none.
  | debugger.accessibility_abuse ecosystem.overlay_or_interfering_apps ecosystem.no_passcode
AAAAA android | user of a password manager by accessibility | It fills fields, as its user asked.
  | debugger.accessibility_abuse
AAAAA android | Android Go phone | Cheap hardware and no updates are no fraud.
  | tamper.hardware_keystore_missing ecosystem.os_outdated ecosystem.no_passcode
AAAAA android | phone out of support | Age is no fraud.
  | ecosystem.os_outdated ecosystem.patch_age_days=1400
AAAAA android | Chromebook | It runs Android in a virtual machine on an x86 processor.
  | emulator.x86_abi emulator.arm_translation emulator.radio_version_suspicious
  emulator.thermal_missing emulator.cpu_hypervisor emulator.battery_anomaly ecosystem.no_sim
AAAAA android | Wi-Fi tablet | It has no radio.
  | emulator.radio_version_suspicious ecosystem.no_sim
AAAAA android | kids' tablet | A second user of a Wi-Fi tablet.
  | emulator.radio_version_suspicious emulator.work_profile_or_secondary_user ecosystem.no_sim
  ecosystem.no_passcode
AAAAA android | TV box | It has no battery and no radio.
  | emulator.radio_version_suspicious emulator.thermal_missing emulator.battery_anomaly
  ecosystem.no_sim
AAAAA android | tablet on a charger that is always on | The battery never changes.
  | emulator.battery_anomaly
AAAAA ios | iPhone app on a Mac | Apple offers it, and people use it.
  | emulator.ios_app_on_mac ecosystem.no_sim
AAAAA ios | iPhone in Lockdown Mode | People at risk protect themselves.
  | ecosystem.lockdown_mode
AAAAA android | dual app of the system | Makers offer it for a second account of a messenger.
  | emulator.multi_instance
AAAAA android | Secure Folder | A locked space of the maker.
  | emulator.multi_instance emulator.work_profile_or_secondary_user
AAAAA android | second user of a phone | Families share phones.
  | emulator.work_profile_or_secondary_user
AARAA android | work profile | The company installs apps; a strict tenant asks about an unknown
  store.
  | emulator.work_profile_or_secondary_user tamper.untrusted_install_source
  tamper.installer_package="com.google.android.apps.work.clouddpc"
ARRRR android | managed work phone | A company reads its traffic: worth a question, but no attack.
  | emulator.work_profile_or_secondary_user tamper.untrusted_install_source
  tamper.installer_package="com.acme.mdm" network.vpn_active network.proxy_configured
  network.user_ca_installed
AAAAA android | managed work phone of a known installer | The tenant trusts the installer.
  | emulator.work_profile_or_secondary_user tamper.untrusted_install_source
  tamper.installer_package="com.acme.beta" network.vpn_active
AARRA android | managed phone whose TLS is inspected | A company reads its traffic; a strict tenant
  and a bank ask.
  | emulator.work_profile_or_secondary_user network.vpn_active network.user_ca_installed
AAAAA android | phone behind a company proxy | A proxy and its authority without interception
  found.
  | network.proxy_configured network.user_ca_installed network.proxy_address="10.1.2.3:3128"
AAAAA android | company VPN | Its address is in a data centre.
  | network.vpn_active network.datacenter_ip
AAAAA android | traveller | A VPN in a hotel: one habit seen from several sides.
  | network.vpn_active network.public_vpn_ip network.timezone_mismatch network.datacenter_ip
  network.unsecure_wifi
AAAAA ios | traveller with roaming | Roaming leaves by the country of the carrier.
  | network.timezone_mismatch
AAAAA ios | iPhone with a VPN | Many people use one.
  | network.vpn_active network.public_vpn_ip network.timezone_mismatch
AAAAA ios | iPhone with Private Relay | A setting of Apple.
  | network.relay_ip network.datacenter_ip
AAAAA android | phone with WARP | A setting that hides no country.
  | network.vpn_active network.relay_ip
AAAAA android | guest in an open Wi-Fi | Every café has one.
  | network.unsecure_wifi
AARAA android | guest behind a captive portal | The portal answers in place of the server.
  | network.unsecure_wifi network.pinning_failed
AARAA android | phone behind a data saver | A browser sends its traffic by a proxy of its maker.
  | network.proxy_ip network.datacenter_ip
AARRA android | Tor user | Privacy alone is no fraud; a strict tenant and a bank ask.
  | network.tor_ip network.datacenter_ip
AARAA android | phone that repeats requests | Its answers are lost on a bad network; a copied
  request looks the same.
  | network.replayed_request
`,
  { 'managed work phone of a known installer': publishesBy('com.acme.beta') },
)
