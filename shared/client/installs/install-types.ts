/** What an install is registered with, and what it gets. */
import type { CallOptions } from '../service-call.ts'

/** What evidence has to answer, within two minutes. */
export type Challenge = {
  /** Base64url of 40 bytes. */
  challenge: string
  /** ISO-8601. */
  expiresAt: string
}

/**
 * Evidence of the platform for a challenge. Binary values are base64.
 * - `key_attestation`: the certificates of the Android KeyStore, leaf first, each in DER.
 * - `app_attest`: the key id and the object of Apple's `attestKey`, for SHA-256 of the challenge.
 * - `play_integrity`: a token of a classic request whose nonce is the challenge.
 * - `none`: no platform attests this install.
 */
export type InstallEvidence =
  | { provider: 'key_attestation'; chain: string[] }
  | { provider: 'app_attest'; key_id: string; attestation: string }
  | { provider: 'play_integrity'; token: string }
  | { provider: 'none' }

/** The app that the evidence is of. */
export type InstallApp = {
  platform: 'android' | 'ios'
  /** The package name or the bundle id. */
  id: string
}

/**
 * What a registration needs: `getEvidence`, or `challenge` and `evidence` where the app has
 * fetched the challenge itself and its server registers.
 */
export type RegisterOptions = CallOptions & {
  tenantId: string
  /** The device id that the telemetry of the install has. */
  deviceId: string
  /** The tenant's private HMAC secret: it signs the registration, and no telemetry. */
  hmacSecret: string
  /** Needed with evidence. */
  app?: InstallApp
  /** As the system names it, such as `Build.MODEL`: it shows keys that many models share. */
  deviceModel?: string
  /** Makes evidence for a challenge, base64url of 40 bytes. */
  getEvidence?: (challenge: string) => InstallEvidence | Promise<InstallEvidence>
  challenge?: string
  evidence?: InstallEvidence
}

/** What the service says of the evidence. */
export type InstallAttestation = {
  provider: string
  /** Evidence that does not hold registers too, as `rejected`: the policy weighs it. */
  verdict: 'verified' | 'rejected' | 'none'
  /** The code of the first step that failed; null otherwise. */
  reason: string | null
  level: 'strongbox' | 'hardware' | 'software' | 'none'
}

/** A registered install. Keep it where only the app can read it: the key signs for the device. */
export type Install = {
  installToken: string
  installKey: string
  /** ISO-8601. After it the service refuses the token: register again. */
  expiresAt: string
  attestation: InstallAttestation
}
