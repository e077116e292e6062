/** The id of a phone, which follows from its first install. */
import { createHash } from 'node:crypto'

/**
 * @param deviceId of the phone's first install
 * @returns `phn_` and 22 base64url characters (132 bits)
 */
export function toPhoneId(tenantId: string, deviceId: string): string {
  const digest = createHash('sha256').update(`${tenantId} ${deviceId}`).digest('base64url')
  return `phn_${digest.slice(0, 22)}`
}
