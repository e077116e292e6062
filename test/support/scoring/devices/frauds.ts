/** Attacks on people and the business: false places, scams, interception, stripped signals. */
import { readDevices } from './device-row.ts'

export const frauds = readDevices(
  `
AARAR android | courier with a GPS spoofer | Who pays for being somewhere asks.
  | ecosystem.location_spoofed ecosystem.developer_mode
ARBBB android | courier with a GPS spoofer and root | A hidden spoofer needs root.
  | root.su_binary root.bootloader_unlocked ecosystem.location_spoofed
AAAAA android | courier with an app for false locations | It is installed and not used.
  | ecosystem.mock_location_possible ecosystem.developer_mode
ARBRB android | courier on a second account | A clone of the app and a false place.
  | emulator.app_cloned ecosystem.location_spoofed
AARAR ios | location spoofed on an iPhone | By a computer on the cable.
  | ecosystem.location_spoofed
ARRRR android | scam by remote control and a call | The usual scam.
  | ecosystem.remote_control_active ecosystem.active_call
  ecosystem.remote_control_provider="anydesk"
ARRRR android | scam by a shared screen and a call | The caller reads along.
  | ecosystem.screen_mirrored ecosystem.active_call
ARRRR ios | scam by a recorded screen and a call | A screen that is shared in a call is recorded.
  | ecosystem.screen_recording ecosystem.active_call
ARRRR android | scam by an unknown app that controls | Google sees the app that steers.
  | tamper.pi_app_access_risk=["UNKNOWN_CONTROLLING"] ecosystem.active_call
ARBBR android | scam seen from every side | Ask the victim; a strict tenant and a bank refuse.
  | tamper.pi_app_access_risk=["UNKNOWN_CONTROLLING","KNOWN_INSTALLED"]
  ecosystem.remote_control_active ecosystem.active_call ecosystem.screen_mirrored
AARAA android | unknown app that controls the screen | A tool from elsewhere.
  | tamper.pi_app_access_risk=["UNKNOWN_CONTROLLING"]
AAAAA android | unknown app that captures the screen | A recorder from elsewhere.
  | tamper.pi_app_access_risk=["UNKNOWN_CAPTURING"]
ARRRR android | virtual camera | A face is injected.
  | ecosystem.virtual_camera
RBBBB android | replaced camera stream | A face is injected on a device that lies.
  | tamper.device_info_spoofed ecosystem.camera_hijack
ARRRR android | malware victim | A scanner of the app finds something.
  | ecosystem.malware_detected ecosystem.suspicious_apps_count=2
ARRRR android | malware that draws over the app | It hides what the user confirms.
  | ecosystem.malware_detected ecosystem.overlay_or_interfering_apps
RBBBB android | malware that draws over the app and acts for its user | A trojan, whatever else is
  seen.
  | ecosystem.malware_detected ecosystem.overlay_or_interfering_apps debugger.accessibility_abuse
RBBBB android | the same with a caller who steers the phone | A trojan and a scam.
  | ecosystem.malware_detected ecosystem.overlay_or_interfering_apps debugger.accessibility_abuse
  ecosystem.remote_control_active ecosystem.active_call ecosystem.screen_mirrored
AARRA android | phone at which Google finds a dangerous app | A strict tenant and a bank ask.
  | tamper.pi_play_protect="HIGH_RISK"
ARRBR android | remote control with a call and a shared screen | The whole scam: a bank refuses.
  | ecosystem.remote_control_active ecosystem.active_call ecosystem.screen_mirrored
ARRRR android | false location behind a data centre | Who hides the place hides the network too.
  | ecosystem.location_spoofed network.datacenter_ip network.timezone_mismatch
ARBBR android | malware victim that Google sees too | Two scanners agree.
  | debugger.accessibility_abuse tamper.pi_play_protect="HIGH_RISK" ecosystem.malware_detected
RBBBB android | banking trojan | It draws over the app and acts for its user.
  | debugger.accessibility_abuse tamper.pi_play_protect="HIGH_RISK"
  tamper.pi_app_access_risk=["UNKNOWN_CONTROLLING"] ecosystem.malware_detected
  ecosystem.overlay_or_interfering_apps
ARRBR android | active interception | Somebody reads the traffic as it is sent.
  | network.user_ca_installed network.proxy_configured network.mitm_detected
  network.pinning_failed
ARRBR android | interception by an installed authority | Somebody reads the traffic as it is sent.
  | network.user_ca_installed network.mitm_detected
AARRA ios | interception found and nothing else | One check; a bank asks.
  | network.mitm_detected
ARRBR android | traffic analyst with adb | Interception with a cable: posture and network never
  block by default.
  | ecosystem.adb_enabled ecosystem.developer_mode network.user_ca_installed
  network.proxy_configured network.mitm_detected network.pinning_failed
ARRRR android | Tor, proxy, hosting and VPN together | Nobody needs all four.
  | network.tor_ip network.proxy_ip network.datacenter_ip network.vpn_active
AAAAA android | residential proxy | Weak by itself; counts do the rest.
  | network.proxy_ip network.timezone_mismatch
AARAA android | downgraded TLS | A hostile Wi-Fi; a strict tenant asks.
  | network.ssl_downgrade network.unsecure_wifi
RBBBB android | forged request | No SDK made it.
  | network.forged_request
RBBBB android | replayed and forged request | The service saw itself that no SDK made it.
  | network.forged_request network.replayed_request network.datacenter_ip
ARBRR android | account farm on one phone | Accounts one after another in clones.
  | emulator.multi_instance emulator.app_cloned network.vpn_active
AAAAA nothing | everything stripped | Nothing is measured, and the presets require nothing.
ARRRR nothing | everything stripped, where the tenant requires signals | A hook that strips
  findings looks so.
ARRRR android | attestation left out, where the tenant requires it | Who leaves it out gains
  nothing.
  | tamper.pi_device_verdict=null
`,
  {
    'everything stripped, where the tenant requires signals': {
      requiredSignals: { signals: ['root.*', 'debugger.*', 'tamper.*'], weight: 45 },
    },
    'attestation left out, where the tenant requires it': {
      requiredSignals: { signals: ['tamper.pi_device_verdict'], weight: 45 },
    },
  },
)
