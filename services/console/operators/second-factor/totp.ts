/** One-time codes of authenticator apps: TOTP (RFC 6238) with SHA-1, six digits, 30 seconds. */
import { Secret, TOTP } from 'otpauth'

/** RFC 4226 recommends 160 bits. */
export const totpSecretBytes = 20

const issuer = 'Device intelligence'
const periodSeconds = 30
/** A code is taken one step early or late, for clocks that differ and people who type slowly. */
const window = 1

const codePattern = /^\d{6}$/

/** Whether a text has the form of a code; otherwise it may be a recovery code. */
export const isTotpCode = (text: string): boolean => codePattern.test(text)

/** The secret in base32, and the URL that apps read as a QR code. */
export function toTotpSetup(random: Buffer, email: string): { secret: string; url: string } {
  const secret = new Secret({ buffer: Uint8Array.from(random).buffer })
  return { secret: secret.base32, url: toTotp(secret.base32, email).toString() }
}

/**
 * The 30-second step that a code is of.
 * @param secret in base32
 * @returns null when the code is not of now
 */
export function findTotpStep(secret: string, code: string, nowMs: number): number | null {
  const delta = toTotp(secret).validate({ token: code, window, timestamp: nowMs })
  return delta === null ? null : Math.floor(nowMs / 1_000 / periodSeconds) + delta
}

function toTotp(secret: string, label = ''): TOTP {
  return new TOTP({
    issuer,
    label,
    algorithm: 'SHA1',
    digits: 6,
    period: periodSeconds,
    secret: Secret.fromBase32(secret),
  })
}
