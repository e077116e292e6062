/**
 * Server signals of the category `attestation`: what the service verified of the install that sent
 * an event. Each description says whom the signal can hit that is honest.
 */
import type { SignalDefinition } from '#shared/core/signals/signal-definition.ts'
import { tamperSignals } from './tamper.ts'

const { pi_device_verdict, pi_app_verdict, pi_licensing, pi_play_protect, pi_app_access_risk } =
  tamperSignals

export const attestationSignals = {
  install_key: {
    type: 'boolean',
    platforms: ['android', 'ios'],
    grade: 'informational',
    flag: 'ATTESTATION_MISSING',
    description: 'The key of an install signed the event, not the secret of the tenant; context.',
    sources: [],
  },
  hardware_backed: {
    type: 'boolean',
    platforms: ['android', 'ios'],
    grade: 'informational',
    flag: 'ATTESTATION_FAILED',
    description:
      'Whether the attested key lies in secure hardware: false when evidence was checked and does ' +
      'not prove it. False hits old phones that have no such hardware.',
    sources: ['Key Attestation', 'App Attest'],
  },
  verified: {
    type: 'boolean',
    platforms: ['android', 'ios'],
    grade: 'informational',
    flag: 'ATTESTATION_FAILED',
    description: 'The evidence of the install held in every step; context.',
    sources: ['Key Attestation', 'App Attest', 'Play Integrity'],
  },
  rejected: {
    type: 'boolean',
    platforms: ['android', 'ios'],
    grade: 'high',
    flag: 'ATTESTATION_FAILED',
    description:
      'The evidence of the install does not hold. Also hits phones whose owner unlocked the ' +
      'bootloader or installed another system.',
    sources: ['Key Attestation', 'App Attest', 'Play Integrity'],
  },
  missing: {
    type: 'boolean',
    platforms: ['android', 'ios'],
    grade: 'informational',
    flag: 'ATTESTATION_MISSING',
    description:
      'The event has no install token. Hits every client that does not register installs yet, ' +
      'and the events of servers.',
    sources: [],
  },
  stale: {
    type: 'boolean',
    platforms: ['android', 'ios'],
    grade: 'informational',
    flag: 'ATTESTATION_MISSING',
    description: 'The install token has expired. Hits phones that could not renew it in time.',
    sources: [],
  },
  shared_key: {
    type: 'boolean',
    platforms: ['android', 'ios'],
    grade: 'critical',
    flag: 'ATTESTATION_KEY_SHARED',
    description:
      'The attested key, or a certificate above it, is on more phones than it was made for: a ' +
      'leaked key. Hits phones whose factory lost the key, and those that tell nothing by which ' +
      'their installs are recognised as one phone.',
    sources: ['Key Attestation'],
  },
  device_id_shared: {
    type: 'boolean',
    platforms: ['android', 'ios'],
    grade: 'low',
    flag: 'DEVICE_ID_SHARED',
    description:
      'Another phone sends the device id than the one that it first came from: another model or ' +
      'another id of the hardware. Hits apps that take their device id to a new phone, in a ' +
      'backup or a synced store, and every install whose SDK begins to name the model otherwise.',
    sources: [],
  },
  counter_reused: {
    type: 'boolean',
    platforms: ['ios'],
    grade: 'medium',
    flag: 'COUNTER_REUSED',
    description:
      'The counter of an App Attest assertion did not rise. Hits apps whose requests overtake ' +
      'each other.',
    sources: ['App Attest'],
  },
  replayed: {
    type: 'boolean',
    platforms: ['android', 'ios'],
    grade: 'medium',
    flag: 'REPLAYED',
    description:
      'An earlier event of the device came again, after more than ten minutes or from another ' +
      'network (/24 of IPv4, /48 of IPv6). Hits clients that repeat a request whose answer was ' +
      'lost: a phone that changed from Wi-Fi to the mobile network, from IPv4 to IPv6, or to ' +
      'another exit of a VPN in between.',
    sources: ['Fingerprint'],
  },
  app_unknown: {
    type: 'boolean',
    platforms: ['android', 'ios'],
    grade: 'critical',
    flag: 'APP_UNKNOWN',
    description:
      'The attested package, signer, bundle or team is not on the list of the tenant’s apps. Hits ' +
      'every user of an app that is not on the list yet.',
    sources: ['Key Attestation', 'App Attest', 'Play Integrity'],
  },
  debug_build: {
    type: 'boolean',
    platforms: ['android', 'ios'],
    grade: 'medium',
    flag: 'TEST_EVIDENCE',
    description:
      'The evidence is of the development environment, of a debug build, or a testing response of ' +
      'Play Integrity. Hits the developers and testers of the app.',
    sources: ['App Attest', 'Key Attestation', 'Play Integrity'],
  },
  bootloader_unlocked: {
    type: 'boolean',
    platforms: ['android'],
    grade: 'medium',
    flag: 'BOOTLOADER_UNLOCKED',
    description:
      'Secure hardware says that the bootloader is unlocked. Hits people who installed another ' +
      'system, such as LineageOS.',
    sources: ['Key Attestation'],
  },
  boot_unverified: {
    type: 'boolean',
    platforms: ['android'],
    grade: 'medium',
    flag: 'BOOT_UNVERIFIED',
    description:
      'Secure hardware says that the vendor did not sign the system that started. Hits systems ' +
      'that their owner chose, such as GrapheneOS.',
    sources: ['Key Attestation'],
  },
  os_patch_age_days: {
    type: 'number',
    platforms: ['android'],
    grade: 'informational',
    flag: 'DEVICE_POSTURE',
    description:
      'Days since the attested security patch. Hits people whose phone gets no updates any more.',
    sources: ['Key Attestation'],
  },
  pi_device: {
    type: 'strings',
    values: pi_device_verdict.values,
    platforms: ['android'],
    grade: 'high',
    flag: 'ATTESTATION_FAILED',
    description:
      'Play Integrity’s device verdicts, verified here. Genuine phones get an empty list when ' +
      'Google is unsure, and phones with another system a basic one.',
    sources: ['Play Integrity'],
  },
  pi_app: {
    type: 'string',
    values: pi_app_verdict.values,
    platforms: ['android'],
    grade: 'critical',
    flag: 'ATTESTATION_FAILED',
    description:
      'Play Integrity’s app verdict, verified here. Hits users of a build that Google’s store ' +
      'does not have.',
    sources: ['Play Integrity'],
  },
  pi_licensing: {
    type: 'string',
    values: pi_licensing.values,
    platforms: ['android'],
    grade: 'medium',
    flag: 'UNTRUSTED_INSTALL',
    description:
      'Play Integrity’s licensing verdict, verified here. Hits everyone who has the app from ' +
      'another store.',
    sources: ['Play Integrity'],
  },
  play_protect: {
    type: 'string',
    values: pi_play_protect.values,
    platforms: ['android'],
    grade: 'high',
    flag: 'MALWARE_PRESENT',
    description: 'Play Protect’s verdict, verified here. Hits victims of malware, not its authors.',
    sources: ['Play Integrity'],
  },
  app_access_risk: {
    type: 'strings',
    values: pi_app_access_risk.values,
    platforms: ['android'],
    grade: 'high',
    flag: 'REMOTE_CONTROL',
    flagByValue: pi_app_access_risk.flagByValue,
    description:
      'Which apps can see or steer the screen, verified here. Hits users of accessibility ' +
      'services and of remote support.',
    sources: ['Play Integrity'],
  },
  revoked: {
    type: 'boolean',
    platforms: ['android'],
    grade: 'high',
    flag: 'ATTESTATION_KEY_REVOKED',
    description:
      'A certificate above the attested key is on Android’s list of revoked ones. Hits owners of ' +
      'the phones whose factory key leaked, until their phone gets another.',
    sources: ['Key Attestation'],
  },
  claim_contradicted: {
    type: 'boolean',
    platforms: ['android', 'ios'],
    grade: 'high',
    flag: 'CLAIM_CONTRADICTED',
    description:
      'The client claims a better verdict than the one verified here. Hits phones whose verdict ' +
      'improved since their evidence was made, until they register again.',
    sources: [],
  },
} satisfies Record<string, SignalDefinition>
