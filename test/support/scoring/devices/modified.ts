/** Rooted, jailbroken, virtual and debugged devices, and attestations that fail. */
import { readDevices } from './device-row.ts'

export const modifiedDevices = readDevices(`
AARBA android | unlocked bootloader | A choice of its owner; a strict tenant asks and Circular 77
  refuses.
  | root.bootloader_unlocked
ARRBR android | unlocked bootloader, unverified boot and a basic verdict | Nothing vouches for the
  system.
  | root.bootloader_unlocked root.verified_boot_state="UNVERIFIED"
  tamper.pi_device_verdict=["MEETS_BASIC_INTEGRITY"]
ARRBR android | the same with a boot state of another vocabulary | The bootloader and Google say
  enough.
  | root.bootloader_unlocked root.verified_boot_state="boot-state"
  tamper.pi_device_verdict=["MEETS_BASIC_INTEGRITY"]
ARRBR android | the same in the words of Android | Android calls an unverified boot \`orange\`.
  | root.bootloader_unlocked root.verified_boot_state="orange"
  tamper.pi_device_verdict=["MEETS_BASIC_INTEGRITY"]
AARBA android | unverified boot | Unlocked, but nothing else is found.
  | root.verified_boot_state="UNVERIFIED"
ARBBR android | boot that failed its verification | The system was changed.
  | root.verified_boot_state="FAILED" root.system_integrity="COMPROMISED"
ARBBR android | LineageOS | An open system: ask, and a strict tenant refuses.
  | root.bootloader_unlocked root.verified_boot_state="UNVERIFIED" root.custom_rom root.test_keys
  root.dangerous_props root.busybox_binary tamper.pi_device_verdict=["MEETS_BASIC_INTEGRITY"]
  ecosystem.developer_mode
AARAA android | engineering build | A test device of a maker.
  | root.eng_build root.test_keys root.dangerous_props
ARRRR android | basic verdict alone | Google knows only that it is Android.
  | tamper.pi_device_verdict=["MEETS_BASIC_INTEGRITY"]
AARAA android | no verdict at all | Google finds nothing to vouch for, or evaluated nothing.
  | tamper.pi_device_verdict=[]
ARBBR android | rooted enthusiast | Root is a risk, and most who have it are honest.
  | root.su_binary root.bootloader_unlocked
ARRBR android | rooted by an SDK's general verdict | One strong check.
  | root.rooted
ARBBR android | rooted with Magisk | Two checks agree; root alone stays below BLOCK.
  | root.magisk_detected root.root_management_app root.bootloader_unlocked
RBBBB android | rooted with KernelSU | Root, and Google vouches for nothing.
  | root.kernelsu_detected root.bootloader_unlocked tamper.pi_device_verdict=[]
ARRBR android | rooted with APatch | One strong check.
  | root.apatch_detected
ARBBR android | hidden Magisk | Hiding shows intent.
  | root.root_hiding root.zygisk_detected root.bootloader_unlocked
ARBBR android | app hider on a phone without root | Who hides apps from apps hides something.
  | root.root_hiding
AARBA android | permissive SELinux | A weak system, not yet root.
  | root.selinux_permissive
AARAA android | apps that need root for abuse | Game cheats; a strict tenant asks.
  | root.dangerous_apps
ARBBR ios | jailbroken iPhone | A jailbreak is a risk like root.
  | root.jailbroken root.jb_url_scheme root.jb_symlinks
ARRBR ios | hidden jailbreak, only its library seen | A loaded library is enough for a review.
  | root.jb_dylib_injected
AARAA ios | iPhone that was jailbroken before | Files may be left from a former owner.
  | root.jb_suspicious_files
AARAA ios | iPhone with a store of a jailbreak | A scheme alone may be another app.
  | root.jb_url_scheme
ARRRR ios | App Attest with an invalid assertion | It is cryptography.
  | tamper.app_attest_valid=false
ARBRR android | attestation for another request | It was copied.
  | tamper.attestation_nonce_mismatch
ARBRR android | attestation that cannot be verified | It is cryptography.
  | tamper.attestation_failed
ARBBR android | test emulator | Developers test on one, and farms run on one.
  | emulator.is_emulator emulator.x86_abi emulator.build_fingerprint_suspicious
  emulator.emulator_network ecosystem.developer_mode ecosystem.adb_enabled
ARBBR ios | iOS simulator | No customer has one.
  | emulator.is_simulator tamper.app_attest_valid=null
ARRRR android | emulator seen only by its sensors | Three independent signs; no named proof.
  | emulator.emulator_sensors emulator.build_fingerprint_suspicious emulator.qemu_props
ARRRR android | emulator seen by its files and packages | Two independent signs.
  | emulator.emulator_files emulator.emulator_packages
AARAA android | unknown emulator with weak signs | Default numbers are what no Chromebook has.
  | emulator.x86_abi emulator.radio_version_suspicious emulator.telephony_defaults
  emulator.build_fingerprint_suspicious
AARAR android | app cloner | A second account by an app from elsewhere; couriers rent accounts so.
  | emulator.app_cloned
ARRRR android | app cloner with several instances | Several accounts of one person.
  | emulator.app_cloned emulator.multi_instance
ARBBR android | debugger | The app is being read.
  | debugger.debugger_attached
ARBBR android | tracer | The app is being traced.
  | debugger.tracer_pid=4711
AARBA ios | breakpoint | One check of a debugger.
  | debugger.breakpoint_detected
`)
