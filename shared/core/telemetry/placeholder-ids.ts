/**
 * Placeholder ids: SDKs and phones send them when they have no id, so many devices, sessions or
 * users share them. Counts by such an id describe no single device or user. An SDK that hashes its
 * ids sends the hash of one, which is shared likewise.
 */
import { hash } from 'node:crypto'
import type { Telemetry } from './submission.ts'

/** The ids of a submission, by field. */
const idFields = ['device_id', 'session_id', 'user_id', 'account_id'] as const
export type IdField = (typeof idFields)[number]

/** In lower case, without spaces and punctuation. */
const placeholders = new Set([
  ...['unknown', 'undefined', 'null', 'nil', 'none', 'na', 'nan', 'missing', 'empty', 'blank'],
  ...['unset', 'notset', 'notavailable', 'unavailable', 'invalid', 'default', 'dummy'],
  ...['placeholder', 'anonymous', 'anon', 'guest', 'nouser', 'nodevice', 'true', 'false'],
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
const punctuation = /[\s\-_:./\\(){}<>[\]"'`$#]/g
/** A nil UUID, an empty MAC address or IMEI, and the same of all `f` or `x`. */
const oneCharacter = /^(?:0*|f{8,}|x{4,})$/

/**
 * What a language writes of a value that is no text, and templates that nothing was put into: a
 * promise that was not awaited in JavaScript and Dart, an optional that was not unwrapped in Swift.
 */
const unwritten =
  /^(?:\[object \w+\]|instance of '.*'|optional\(.*\)|(?:async )?function\b.*[)}]|[$#]\{.*\}|\{\{.*\}\}|<%.*%>|%(?:\d+\$)?[sd@])$/i

/** Each of them has one of these, and an id of a phone hardly ever. */
const marks = /[[('{%<]/

const isPlainPlaceholder = (id: string): boolean => {
  if (id.length > charactersMax) return false
  const compact = id.toLowerCase().replace(punctuation, '')
  return (
    placeholders.has(compact) ||
    oneCharacter.test(compact) ||
    (marks.test(id) && unwritten.test(id.trim()))
  )
}

/** What an SDK hashes where it has no id: the placeholders as they are written most. */
const hashedTexts = [
  ...[...placeholders].flatMap((text) => [
    text,
    text.toUpperCase(),
    text.charAt(0).toUpperCase() + text.slice(1),
  ]),
  ...[
    '',
    ' ',
    '0',
    '-',
    'NaN',
    'N/A',
    'n/a',
    '(null)',
    '<null>',
    'device_id',
    'deviceId',
    'user_id',
  ],
  ...['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'],
  ...['FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF', '000000000000000', '0000000000000000'],
  ...['00:00:00:00:00:00', '02:00:00:00:00:00', '[object Object]', '[object Promise]'],
  ...[
    "Instance of 'Future<String>'",
    "Instance of 'Future<String?>'",
    "Instance of '_Future<String>'",
  ],
  ...['Optional(nil)', 'Optional("")', '${deviceId}', '${device_id}', '{{deviceId}}', '%s', '%@'],
]

/** Hashes that SDKs make, with their digits of hex: lengths tell them apart. */
const algorithms = { md5: 32, sha1: 40, sha256: 64, sha512: 128 } as const
const hexLengths: ReadonlySet<number> = new Set(Object.values(algorithms))
/** With padding and without. */
const base64Lengths: ReadonlySet<number> = new Set([22, 24, 27, 28, 43, 44, 86, 88])

/** UUIDs of version 3, as Java's `UUID.nameUUIDFromBytes` makes them of an MD5. */
const toNameUuid = (md5: Buffer): string => {
  const bytes = Buffer.from(md5)
  bytes[6] = (bytes[6]! & 0x0f) | 0x30
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return bytes.toString('hex')
}

/** In hex, and in base64url without padding. */
const hashes = new Set(
  hashedTexts.flatMap((text) => {
    const digests = Object.keys(algorithms).map((name) => hash(name, text, 'buffer'))
    const [md5] = digests
    return [
      ...digests.flatMap((digest) => [digest.toString('hex'), digest.toString('base64url')]),
      toNameUuid(md5!),
    ]
  }),
)

/** Digits of hex in either case, with colons or as a UUID, or base64 of either alphabet. */
function isHashedPlaceholder(id: string): boolean {
  if (id.length < hashCharactersMin || id.length > hashCharactersMax) return false
  const hex = id.replace(/[-:\s]/g, '').toLowerCase()
  if (hexLengths.has(hex.length) && hashes.has(hex)) return true
  if (!base64Lengths.has(id.length)) return false
  return hashes.has(id.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, ''))
}

/** An MD5 in base64 has 22 characters, a SHA-512 in hex with colons 191. */
const hashCharactersMin = 22
const hashCharactersMax = 191

/** Whether an id is a well-known placeholder, or the hash of one. */
export const isPlaceholderId = (id: string): boolean =>
  isPlainPlaceholder(id) || isHashedPlaceholder(id)

/** The fields of a submission whose id is a placeholder; nearly always none. */
export function findPlaceholderIds(body: Pick<Telemetry, IdField>): IdField[] {
  return idFields.filter((field) => {
    const id = body[field]
    return id !== undefined && isPlaceholderId(id)
  })
}
