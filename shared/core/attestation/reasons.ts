/**
 * Why evidence is rejected: each code with what it means to a person and what to do. Codes are
 * stable: policies, metrics and stored rows have them. `npm run generate` makes REASONS.md of them.
 */

export const attestationReasons = {
  // What was sent is not the object that it claims to be.
  malformed: {
    meaning: 'The evidence cannot be read: it is cut off, changed or of another kind.',
    advice:
      'Compare what the app sends with the forms of this folder’s README: DER, CBOR or a compact token.',
  },
  too_large: {
    meaning: 'The evidence is larger than any genuine one.',
    advice: 'Look who sends it; no phone does.',
  },
  chain_too_long: {
    meaning: 'The chain has more certificates than any genuine one.',
    advice: 'Look who sends it; no phone does.',
  },
  unsupported_algorithm: {
    meaning: 'A key or signature has an algorithm that this service does not verify.',
    advice: 'Let the app make a P-256 key. A newer Node may know the algorithm.',
  },
  algorithm_not_allowed: {
    meaning: 'The token names an algorithm other than the one that Google uses.',
    advice: 'Treat it as a forgery.',
  },
  standard_request: {
    meaning: 'The token is of a standard request, which only Google’s servers can open.',
    advice: 'Let the app make classic requests, with a nonce.',
  },

  // Who made it.
  untrusted_root: {
    meaning: 'The chain does not end at a root of Google or Apple: an emulator, or a forgery.',
    advice: 'Expect it of emulators and of phones without Google’s certification.',
  },
  signature_invalid: {
    meaning: 'A signature does not fit: something was changed after it was signed.',
    advice: 'Send the bytes as they were signed. If they are, treat it as a forgery.',
  },
  names_do_not_chain: {
    meaning: 'A certificate names another issuer than the next certificate.',
    advice: 'Send all certificates of the chain, leaf first.',
  },
  issuer_not_a_ca: {
    meaning: 'A certificate was signed by one that may not sign certificates.',
    advice: 'Treat it as a forgery: a chain that was extended.',
  },
  certificate_expired: {
    meaning: 'A certificate had expired at that time.',
    advice: 'Let the app make a new key; a phone gets new certificates when it is online.',
  },
  certificate_not_yet_valid: {
    meaning: 'A certificate was not yet valid at that time.',
    advice: 'Look whether the clock of this server is right.',
  },
  revoked: {
    meaning: 'A certificate of the chain is revoked: its key has leaked, or was withdrawn.',
    advice: 'Do not trust the phone: others can speak in its name.',
  },
  decryption_failed: {
    meaning: 'The token cannot be opened: it is for other keys, or was changed.',
    advice:
      'Compare the keys with the Play Console. Going back to keys that Google manages ends them.',
  },
  play_keys_missing: {
    meaning: 'The tenant has no keys of the Play Console for this app, so no token can be opened.',
    advice:
      'Give the two keys of the Play Console to the app, in `di tenants apps add --play-keys`.',
  },

  // What Android says of the key.
  attestation_missing: {
    meaning: 'No certificate says how the key is kept.',
    advice: 'Let the app call setAttestationChallenge when it makes the key.',
  },
  attestation_repeated: {
    meaning: 'Two certificates describe a key: the chain was extended by an attacker.',
    advice: 'Treat it as a forgery.',
  },
  attestation_misplaced: {
    meaning: 'The certificate that describes the key is not the first of the chain.',
    advice: 'Send the chain leaf first. If it is, treat it as a forgery.',
  },
  key_description_malformed: {
    meaning: 'The description of the key breaks Android’s schema.',
    advice: 'Report the model of the phone; few are known.',
  },
  software_key: {
    meaning: 'The key lies in software, where a rooted phone can copy it.',
    advice: 'Expect it of emulators and of phones before Android 8.',
  },
  security_level_mismatch: {
    meaning: 'The key and its attestation come from different places.',
    advice: 'Report the model of the phone.',
  },
  key_not_generated: {
    meaning: 'The key was brought from outside, so others may have it.',
    advice: 'Let the app generate the key in the keystore.',
  },
  root_of_trust_missing: {
    meaning: 'The secure hardware does not say how the phone was started.',
    advice: 'Report the model of the phone.',
  },
  bootloader_unlocked: {
    meaning: 'The bootloader is unlocked: the phone starts whatever system it is given.',
    advice: 'Expect it of developers and of rooted phones.',
  },
  boot_self_signed: {
    meaning: 'The system is signed by its owner, not by the maker of the phone.',
    advice: 'Decide by policy: GrapheneOS on a locked phone is such a system.',
  },
  boot_unverified: {
    meaning: 'The phone was started without a check of its system.',
    advice: 'Expect it of rooted phones.',
  },

  // What Apple says of the key.
  key_id_mismatch: {
    meaning: 'The key id is not the hash of the attested key.',
    advice: 'Send the key id that generateKey returned for this attestation.',
  },
  credential_mismatch: {
    meaning: 'The authenticator data is about another key than the certificate.',
    advice: 'Treat it as a forgery.',
  },
  counter_not_zero: {
    meaning: 'The key has signed before: this is not a new attestation.',
    advice: 'Attest a key once, before it signs.',
  },
  environment_unknown: {
    meaning: 'The key belongs to no environment of App Attest.',
    advice: 'Treat it as a forgery.',
  },
  environment_not_allowed: {
    meaning: 'The key is of the development environment, and the app allows none.',
    advice: 'Allow it for builds of developers, or use the production environment.',
  },

  // Whether it is about this request and this app.
  challenge_mismatch: {
    meaning: 'The evidence was made for another challenge, or for another request.',
    advice: 'Use each challenge once, and as bytes: not its text, not its base64.',
  },
  key_missing: {
    meaning:
      'The install was registered without an attested key, so nothing can be signed with it.',
    advice: 'Register the install with evidence of its key.',
  },
  token_too_old: {
    meaning: 'The token is older than ten minutes.',
    advice: 'Ask Play for a token when it is needed.',
  },
  token_from_future: {
    meaning: 'The token is from the future.',
    advice: 'Look whether the clock of this server is right.',
  },
  testing_response: {
    meaning:
      'The verdict was chosen in the Play Console for a tester; it says nothing of the phone.',
    advice: 'Remove the tester’s response there, or test with a sandbox tenant.',
  },
  package_mismatch: {
    meaning: 'The token names two different packages.',
    advice: 'Treat it as a forgery.',
  },
  app_unknown: {
    meaning: 'The evidence comes from an app that is not on the list.',
    advice: 'Put package or bundle id and team on the list of the tenant’s apps, if it is theirs.',
  },
  app_signer_unknown: {
    meaning: 'The app was signed by someone else.',
    advice:
      'Put the digest of the signer on the list if it is the tenant’s. Else it is a repackaged copy.',
  },
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

/**
 * Reads what no decision needs: an odd value there says nothing of the phone.
 * @returns undefined where `read` refuses it
 */
export function readOptional<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof Refusal) return undefined
    throw error
  }
}
