/** Devices by what the service verified of their install, beside what the app finds on them. */
import type { DeviceRow } from './device-row.ts'

/** A key in hardware, with evidence that holds. */
const verified = { install_key: true, verified: true, hardware_backed: true }
/** Evidence of genuine hardware that says what is wrong with the phone. */
const rejected = { install_key: true, rejected: true, hardware_backed: true }

export const attestedDevices: readonly DeviceRow[] = [
  {
    device: 'attested phone',
    base: 'android',
    signals: {},
    server: { attestation: { ...verified, os_patch_age_days: 35 } },
    right: 'AAAAA',
    why: 'Everything vouches for it.',
  },
  {
    device: 'client of before, without a token',
    base: 'ios',
    signals: {},
    server: { attestation: { missing: true } },
    right: 'AAAAA',
    why: 'Nobody had to register until now.',
  },
  {
    device: 'phone that was off for two months',
    base: 'android',
    signals: {},
    server: { attestation: { stale: true } },
    right: 'AAAAA',
    why: 'It renews its token with the next request.',
  },
  {
    device: 'unlocked bootloader that the app does not see',
    base: 'android',
    signals: {},
    server: {
      attestation: { ...rejected, bootloader_unlocked: true, boot_unverified: true },
    },
    right: 'AARBA',
    why: 'As one that the app sees: a choice of its owner.',
  },
  {
    device: 'the same with a basic verdict, verified',
    base: 'android',
    signals: {},
    server: {
      attestation: {
        ...rejected,
        bootloader_unlocked: true,
        boot_unverified: true,
        pi_device: ['MEETS_BASIC_INTEGRITY'],
      },
    },
    right: 'ARRBR',
    why: 'Nothing vouches for the system.',
  },
  {
    device: 'GrapheneOS, locked and attested',
    base: 'android',
    signals: {
      root: { verified_boot_state: 'SELF_SIGNED', custom_rom: true, rom_name: 'GrapheneOS' },
      tamper: { pi_device_verdict: ['MEETS_BASIC_INTEGRITY'] },
    },
    server: { attestation: { ...rejected, boot_unverified: true } },
    right: 'AARAA',
    why: 'As without its evidence: a hardened system behind a locked bootloader.',
  },
  {
    device: 'LineageOS, attested',
    base: 'android',
    signals: {
      root: {
        bootloader_unlocked: true,
        verified_boot_state: 'UNVERIFIED',
        custom_rom: true,
        test_keys: true,
      },
      tamper: { pi_device_verdict: ['MEETS_BASIC_INTEGRITY'] },
      ecosystem: { developer_mode: true, adb_enabled: true },
    },
    server: { attestation: { ...rejected, bootloader_unlocked: true, boot_unverified: true } },
    right: 'ARBBR',
    why: 'As without its evidence: ask, and a strict tenant refuses.',
  },
  {
    device: 'rooted phone, attested',
    base: 'android',
    signals: { root: { rooted: true, su_binary: true, magisk_detected: true } },
    server: { attestation: { ...rejected, bootloader_unlocked: true, boot_unverified: true } },
    right: 'ARBBR',
    why: 'Root needs an unlocked bootloader: one fact, and root alone asks.',
  },
  {
    device: 'evidence without a genuine chain',
    base: 'android',
    signals: {},
    server: { attestation: { install_key: true, rejected: true, hardware_backed: false } },
    right: 'ARRRR',
    why: 'Somebody made it up, or an old phone has no hardware: a person looks.',
  },
  {
    device: 'keybox that leaked',
    base: 'android',
    signals: {},
    server: { attestation: { ...verified, shared_key: true } },
    right: 'ARBRR',
    why: 'A clean phone in every word, by a key that many have.',
  },
  {
    device: 'keybox that leaked and was revoked',
    base: 'android',
    signals: {},
    server: {
      attestation: {
        install_key: true,
        rejected: true,
        hardware_backed: false,
        shared_key: true,
        revoked: true,
      },
    },
    right: 'ARBRR',
    why: 'The same key, a week later: no proof against the phones that were made with it.',
  },
  {
    device: 'revoked key of a phone',
    base: 'android',
    signals: {},
    server: {
      attestation: { install_key: true, rejected: true, hardware_backed: false, revoked: true },
    },
    right: 'ARRRR',
    why: 'Its factory lost the key: its owner did nothing.',
  },
  {
    device: 'repackaged app on a genuine phone',
    base: 'android',
    signals: {},
    server: { attestation: { ...rejected, app_unknown: true } },
    right: 'ARBBR',
    why: 'Hardware names another signer; or the list of apps lacks one, so balanced asks.',
  },
  {
    device: 'body of another day',
    base: 'ios',
    signals: {},
    server: { attestation: { ...verified, replayed: true } },
    right: 'AARAA',
    why: 'Honest clients repeat a request whose answer was lost.',
  },
  {
    device: 'assertions that overtake each other',
    base: 'ios',
    signals: {},
    server: { attestation: { ...verified, counter_reused: true } },
    right: 'AAAAA',
    why: 'Two requests at once.',
  },
  {
    device: 'claim of a better verdict than was verified',
    base: 'android',
    signals: { tamper: { pi_device_verdict: ['MEETS_STRONG_INTEGRITY'] } },
    server: {
      attestation: {
        install_key: true,
        pi_device: ['MEETS_BASIC_INTEGRITY'],
        claim_contradicted: true,
      },
    },
    right: 'ARBRR',
    why: 'It says what Google did not.',
  },
  {
    device: 'build of a developer',
    base: 'ios',
    signals: {},
    server: { attestation: { ...verified, debug_build: true } },
    right: 'AARBA',
    why: 'It is not the app of the store; Circular 77 refuses debuggable apps.',
  },
  {
    device: 'app of another store, verified by Google',
    base: 'android',
    signals: { tamper: { installer_package: 'com.sec.android.app.samsungapps' } },
    server: {
      attestation: {
        ...verified,
        pi_device: ['MEETS_DEVICE_INTEGRITY'],
        pi_app: 'PLAY_RECOGNIZED',
        pi_licensing: 'UNLICENSED',
      },
    },
    right: 'AAAAA',
    why: 'Google does not know the licences of other stores.',
  },
  {
    device: 'caller who steers the screen, verified by Google',
    base: 'android',
    signals: { ecosystem: { active_call: true } },
    server: {
      attestation: {
        ...verified,
        pi_device: ['MEETS_DEVICE_INTEGRITY'],
        app_access_risk: ['UNKNOWN_CONTROLLING'],
      },
    },
    right: 'ARRRR',
    why: 'The usual scam.',
  },
]
