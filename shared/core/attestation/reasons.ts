/**
 * Why evidence is rejected: each code with what it means to a person. Codes are stable: policies,
 * metrics and stored rows have them. README.md of this folder explains the steps.
 */

export const attestationReasons = {
  // What was sent is not the object that it claims to be.
  malformed: 'The evidence cannot be read: it is cut off, changed or of another kind.',
  too_large: 'The evidence is larger than any genuine one.',
  chain_too_long: 'The chain has more certificates than any genuine one.',
  unsupported_algorithm: 'A key or signature has an algorithm that this service does not verify.',
  algorithm_not_allowed: 'The token names an algorithm other than the one that Google uses.',
  standard_request: 'The token is of a standard request, which only Google’s servers can open.',

  // Who made it.
  untrusted_root: 'The chain does not end at a root of Google or Apple: an emulator, or a forgery.',
  signature_invalid: 'A signature does not fit: something was changed after it was signed.',
  names_do_not_chain: 'A certificate names another issuer than the next certificate.',
  issuer_not_a_ca: 'A certificate was signed by one that may not sign certificates.',
  certificate_expired: 'A certificate had expired at that time.',
  certificate_not_yet_valid: 'A certificate was not yet valid at that time: is a clock wrong?',
  revoked: 'A certificate of the chain is revoked: its key has leaked, or was withdrawn.',
  decryption_failed: 'The token cannot be opened: it is for other keys, or was changed.',

  // What Android says of the key.
  attestation_missing: 'No certificate says how the key is kept: it was made without a challenge.',
  attestation_repeated: 'Two certificates describe a key: the chain was extended by an attacker.',
  attestation_misplaced: 'The certificate that describes the key is not the first of the chain.',
  key_description_malformed: 'The description of the key breaks Android’s schema.',
  software_key: 'The key lies in software, where a rooted phone can copy it.',
  security_level_mismatch: 'The key and its attestation come from different places.',
  key_not_generated: 'The key was brought from outside, so others may have it.',
  root_of_trust_missing: 'The secure hardware does not say how the phone was started.',
  bootloader_unlocked: 'The bootloader is unlocked: the phone starts whatever system it is given.',
  boot_self_signed: 'The system is signed by its owner, not by the maker of the phone.',
  boot_unverified: 'The phone was started without a check of its system.',
  patch_level_invalid: 'A security patch level is no month of a calendar.',

  // What Apple says of the key.
  key_id_mismatch: 'The key id is not the hash of the attested key.',
  credential_mismatch: 'The authenticator data is about another key than the certificate.',
  counter_not_zero: 'The key has signed before: this is not a new attestation.',
  environment_unknown: 'The key belongs to no environment of App Attest.',
  environment_not_allowed: 'The key is of the development environment, and the app allows none.',

  // Whether it is about this request and this app.
  challenge_mismatch: 'The evidence was made for another challenge, or for another request.',
  token_too_old: 'The token is older than ten minutes.',
  token_from_future: 'The token is from the future: is a clock wrong?',
  package_mismatch: 'The token names two different packages.',
  app_unknown: 'The evidence comes from an app that is not on the list.',
  app_signer_unknown: 'The app was signed by someone else: it is a repackaged copy.',
} as const

export type AttestationReason = keyof typeof attestationReasons

/** Thrown while untrusted bytes are read; a step turns it into its result. */
export class Refusal extends Error {
  readonly reason: AttestationReason
  constructor(reason: AttestationReason, detail: string) {
    super(detail)
    this.name = 'Refusal'
    this.reason = reason
  }
}
