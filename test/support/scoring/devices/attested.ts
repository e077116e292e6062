/** Devices by what the service verified of their install, beside what the app finds on them, and
 * by the address that their requests come from. */
import { readDevices } from './device-row.ts'

export const attestedDevices = readDevices(`
AAAAA android | attested phone | Everything vouches for it.
  | attestation.install_key attestation.verified attestation.hardware_backed
  attestation.os_patch_age_days=35
AAAAA ios | client of before, without a token | Nobody had to register until now.
  | attestation.missing
AAAAA android | phone that was off for two months | It renews its token with the next request.
  | attestation.stale
AARBA android | unlocked bootloader that the app does not see | As one that the app sees: a choice
  of its owner.
  | attestation.install_key attestation.rejected attestation.hardware_backed
  attestation.bootloader_unlocked attestation.boot_unverified
ARRBR android | the same with a basic verdict, verified | Nothing vouches for the system.
  | attestation.install_key attestation.rejected attestation.hardware_backed
  attestation.bootloader_unlocked attestation.boot_unverified
  attestation.pi_device=["MEETS_BASIC_INTEGRITY"]
ARRRR android | GrapheneOS, locked and attested | As without its evidence: Google does not vouch for
  it.
  | root.verified_boot_state="SELF_SIGNED" root.custom_rom root.rom_name="GrapheneOS"
  tamper.pi_device_verdict=["MEETS_BASIC_INTEGRITY"] attestation.install_key attestation.rejected
  attestation.hardware_backed attestation.boot_unverified
ARBBR android | LineageOS, attested | As without its evidence: ask, and a strict tenant refuses.
  | root.bootloader_unlocked root.verified_boot_state="UNVERIFIED" root.custom_rom root.test_keys
  tamper.pi_device_verdict=["MEETS_BASIC_INTEGRITY"] ecosystem.developer_mode
  ecosystem.adb_enabled attestation.install_key attestation.rejected attestation.hardware_backed
  attestation.bootloader_unlocked attestation.boot_unverified
ARBBR android | rooted phone, attested | Root needs an unlocked bootloader: one fact, and root
  alone asks.
  | root.rooted root.su_binary root.magisk_detected attestation.install_key attestation.rejected
  attestation.hardware_backed attestation.bootloader_unlocked attestation.boot_unverified
ARRRR android | evidence without a genuine chain | Somebody made it up, or an old phone has no
  hardware: a person looks.
  | attestation.install_key attestation.rejected attestation.hardware_backed=false
ARBRR android | keybox that leaked | A clean phone in every word, by a key that many have.
  | attestation.install_key attestation.verified attestation.hardware_backed
  attestation.shared_key
ARBRR android | keybox that leaked and was revoked | The same key, a week later: no proof against
  the phones that were made with it.
  | attestation.install_key attestation.rejected attestation.hardware_backed=false
  attestation.shared_key attestation.revoked
ARRRR android | revoked key of a phone | Its factory lost the key: its owner did nothing.
  | attestation.install_key attestation.rejected attestation.hardware_backed=false
  attestation.revoked
ARBBR android | repackaged app on a genuine phone | Hardware names another signer; or the list of
  apps lacks one, so balanced asks.
  | attestation.install_key attestation.rejected attestation.hardware_backed
  attestation.app_unknown
AARAA ios | body of another day | Honest clients repeat a request whose answer was lost.
  | attestation.install_key attestation.verified attestation.hardware_backed attestation.replayed
AAAAA ios | assertions that overtake each other | Two requests at once.
  | attestation.install_key attestation.verified attestation.hardware_backed
  attestation.counter_reused
ARBRR android | claim of a better verdict than was verified | It says what Google did not.
  | tamper.pi_device_verdict=["MEETS_STRONG_INTEGRITY"] attestation.install_key
  attestation.pi_device=["MEETS_BASIC_INTEGRITY"] attestation.claim_contradicted
AARBA ios | build of a developer | It is not the app of the store; Circular 77 refuses debuggable
  apps.
  | attestation.install_key attestation.verified attestation.hardware_backed
  attestation.debug_build
AAAAA android | app of another store, verified by Google | Google does not know the licences of
  other stores.
  | tamper.installer_package="com.sec.android.app.samsungapps" attestation.install_key
  attestation.verified attestation.hardware_backed
  attestation.pi_device=["MEETS_DEVICE_INTEGRITY"] attestation.pi_app="PLAY_RECOGNIZED"
  attestation.pi_licensing="UNLICENSED"
ARRRR android | caller who steers the screen, verified by Google | The usual scam.
  | ecosystem.active_call attestation.install_key attestation.verified attestation.hardware_backed
  attestation.pi_device=["MEETS_DEVICE_INTEGRITY"]
  attestation.app_access_risk=["UNKNOWN_CONTROLLING"]
`)

export const addressedDevices = readDevices(`
AAAAA android | phone behind the VPN of its company | A company lets its phones out in a data
  centre.
  | connection.country="VN" connection.asn="AS64500" connection.vpn connection.hosting
  connection.tor=false
AAAAA ios | iPhone with a privacy relay | Switched on by everyone who wants it.
  | connection.country="SG" connection.relay connection.hosting
AAARA android | phone whose requests leave Tor | Some reach the network in no other way; a bank
  asks.
  | connection.tor
ARRRR android | false location and an address of a data centre | The service sees the network
  itself.
  | ecosystem.location_spoofed connection.hosting
AAARA android | address of every kind | However bad an address is, it says nothing of the device; a
  bank asks about Tor.
  | connection.tor connection.proxy connection.hosting connection.vpn connection.relay
`)
