/** The ids of phones. */
import { hash } from 'node:crypto'

/** A phone id, as `toPhoneId` makes it. */
export const phoneIdPattern = /^phn_[A-Za-z0-9_-]{22}$/

/**
 * The id of the phone whose first install this is.
 * @returns `phn_` and 22 base64url characters: 132 bits of a SHA-256
 */
export const toPhoneId = (tenantId: string, deviceId: string): string =>
  `phn_${hash('sha256', `${tenantId} ${deviceId}`, 'base64url').slice(0, 22)}`
