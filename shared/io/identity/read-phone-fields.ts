/**
 * The member `phone` of answers about installs. What else they say does not depend on it: it is
 * left out while phones cannot be read.
 */
import type { DevicePhone } from '#shared/core/identity/phone.ts'
import { type PhoneField, toPhoneField } from '#shared/core/identity/phone-answer.ts'
import type { PhoneStore } from './phone-store.ts'

export type FindPhones = PhoneStore['findPhonesOfDevices']

/**
 * @param findPhones its failures must be counted by who makes it
 * @returns makes the member of one of these installs
 */
export async function readPhoneFields(
  findPhones: FindPhones,
  query: { tenantId: string; deviceIds: readonly string[] },
): Promise<(deviceId: string) => PhoneField> {
  const phones: ReadonlyMap<string, DevicePhone> | null = await findPhones(query).catch(() => null)
  return (deviceId) => (phones === null ? {} : toPhoneField(phones.get(deviceId)))
}
