/**
 * Placeholder ids: SDKs and phones send them when they have no id, so many devices, sessions or
 * users share them. Counts by such an id describe no single device or user.
 */
import type { Telemetry } from './submission.ts'

/** The ids of a submission, by field. */
const idFields = ['device_id', 'session_id', 'user_id', 'account_id'] as const
export type IdField = (typeof idFields)[number]

/** In lower case, without spaces and punctuation. */
const placeholders = new Set([
  ...['unknown', 'undefined', 'null', 'nil', 'none', 'na', 'nan', 'missing', 'empty', 'blank'],
  ...['unset', 'notset', 'notavailable', 'unavailable', 'invalid', 'default', 'dummy'],
  ...['placeholder', 'objectobject', 'anonymous', 'anon', 'guest', 'nouser', 'nodevice'],
  ...['unknowndevice', 'unknownuser', 'unknownsession', 'unknownid'],
  ...['deviceid', 'androidid', 'sessionid', 'userid', 'accountid', 'uuid', 'guid'],
  // The ANDROID_ID of a whole series of phones, and the MAC address that Android returns without
  // permission.
  ...['9774d56d682e549c', '020000000000'],
  // Serial numbers and IMEIs of emulators and unfinished builds.
  ...['0123456789abcdef', '123456789', '1234567890', '004999010640000', '012345678912345'],
])

/** No placeholder is longer, punctuation included. */
const charactersMax = 64
const punctuation = /[\s\-_:./\\(){}<>[\]]/g
/** A nil UUID, an empty MAC address or IMEI, and the same of all `f` or `x`. */
const oneCharacter = /^(?:0*|f{8,}|x{4,})$/

/** Whether an id is a well-known placeholder. */
export function isPlaceholderId(id: string): boolean {
  if (id.length > charactersMax) return false
  const compact = id.toLowerCase().replace(punctuation, '')
  return placeholders.has(compact) || oneCharacter.test(compact)
}

/** The fields of a submission whose id is a placeholder; nearly always none. */
export function findPlaceholderIds(body: Pick<Telemetry, IdField>): IdField[] {
  return idFields.filter((field) => {
    const id = body[field]
    return id !== undefined && isPlaceholderId(id)
  })
}
