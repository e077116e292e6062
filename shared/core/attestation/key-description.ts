/**
 * The extension in which Android's keystore describes a key: the schema of KeyDescription, as a
 * table of tags. What a decision reads must have the form of the schema. Of all else, tags that the
 * table does not have, and those of another type or given twice, are named and skipped: firmware of
 * genuine phones has such values, and newer versions of KeyMint add some.
 *
 * Source: source.android.com, "Key and ID attestation", and KeyMint's Tag.aidl.
 */
import { applicationIdEntriesMax } from '../base/limits/attestation.ts'
import {
  type Asn1,
  parseAsn1,
  readBoolean,
  readEnumerated,
  readInteger,
  readNull,
  readOctets,
  readSequence,
  readSet,
} from './asn1.ts'
import { toBase64 } from './encodings.ts'
import { Refusal, readOptional } from './reasons.ts'

export const keyDescriptionOid = '1.3.6.1.4.1.11129.2.1.17'

export const securityLevels = ['SOFTWARE', 'TRUSTED_ENVIRONMENT', 'STRONG_BOX'] as const
export const bootStates = ['VERIFIED', 'SELF_SIGNED', 'UNVERIFIED', 'FAILED'] as const
const origins = ['GENERATED', 'DERIVED', 'IMPORTED', 'RESERVED', 'SECURELY_IMPORTED'] as const

export type RootOfTrust = {
  verified_boot_key?: string
  device_locked: boolean
  verified_boot_state: (typeof bootStates)[number]
  verified_boot_hash?: string
}
export type ApplicationId = {
  packages: { name: string; version?: number | string }[]
  /** SHA-256 of the certificates of the signers, in base64. */
  signatures: string[]
}
type Authorization = number | string | true | number[] | RootOfTrust | ApplicationId
export type AuthorizationList = Record<string, Authorization | (number | string)[] | boolean> & {
  origin?: string
  root_of_trust?: RootOfTrust
  os_patch_level?: number
  attestation_application_id?: ApplicationId
}

export type KeyDescription = {
  attestation_version?: number | string
  attestation_security_level: (typeof securityLevels)[number]
  key_mint_version?: number | string
  key_mint_security_level: (typeof securityLevels)[number]
  attestation_challenge: string
  unique_id?: string
  software_enforced: AuthorizationList
  hardware_enforced: AuthorizationList
}

type Reader = (value: Asn1 | undefined) => Authorization | (number | string)[]

function readNamed<const Names extends readonly string[]>(
  value: number | string,
  names: Names,
): Names[number] {
  const name = names[Number(value)]
  if (name === undefined) throw new Refusal('malformed', `the unknown value ${value}`)
  return name
}

const integers: Reader = (value) => readSet(value).map(readInteger)
const text: Reader = (value) => readOctets(value).toString('utf8')
const bytes: Reader = (value) => toBase64(readOctets(value))
const origin: Reader = (value) => readNamed(readInteger(value), origins)

function readRootOfTrust(value: Asn1 | undefined): RootOfTrust {
  const [key, locked, state, bootHash] = readSequence(value, 3)
  return {
    ...fact('verified_boot_key', () => toBase64(readOctets(key))),
    device_locked: readBoolean(locked),
    verified_boot_state: readNamed(readEnumerated(state), bootStates),
    ...fact('verified_boot_hash', () => toBase64(readOctets(bootHash))),
  }
}

/** A member that no decision reads: absent where it has another form. */
function fact<Name extends string, T>(name: Name, read: () => T): { [name in Name]?: T } {
  const value = readOptional(read)
  return (value === undefined ? {} : { [name]: value }) as { [name in Name]?: T }
}

/** It is an octet string of its own, made by Android's system rather than by the keystore. */
function readApplicationId(value: Asn1 | undefined): ApplicationId {
  const [packages, signatures] = readSequence(parseAsn1(readOctets(value)), 2)
  const [named, digests] = [readSet(packages), readSet(signatures)]
  if (Math.max(named.length, digests.length) > applicationIdEntriesMax) {
    throw new Refusal('malformed', 'too many packages or signers')
  }
  return {
    packages: named.map((entry) => {
      const [name, version] = readSequence(entry, 1)
      return {
        name: readOctets(name).toString('utf8'),
        ...fact('version', () => readInteger(version)),
      }
    }),
    signatures: digests.map((digest) => toBase64(readOctets(digest))),
  }
}

const tags: Readonly<Record<number, readonly [name: string, read: Reader]>> = {
  1: ['purposes', integers],
  2: ['algorithms', readInteger],
  3: ['key_size', readInteger],
  4: ['block_modes', integers],
  5: ['digests', integers],
  6: ['paddings', integers],
  10: ['ec_curve', readInteger],
  11: ['ml_dsa_variant', readInteger],
  200: ['rsa_public_exponent', readInteger],
  203: ['rsa_oaep_mgf_digests', integers],
  303: ['rollback_resistance', readNull],
  305: ['early_boot_only', readNull],
  400: ['active_date_time', readInteger],
  401: ['origination_expire_date_time', readInteger],
  402: ['usage_expire_date_time', readInteger],
  405: ['usage_count_limit', readInteger],
  503: ['no_auth_required', readNull],
  504: ['user_auth_type', readInteger],
  505: ['auth_timeout', readInteger],
  506: ['allow_while_on_body', readNull],
  507: ['trusted_user_presence_required', readNull],
  508: ['trusted_confirmation_required', readNull],
  509: ['unlocked_device_required', readNull],
  600: ['all_applications', readNull],
  601: ['application_id', bytes],
  701: ['creation_date_time', readInteger],
  702: ['origin', origin],
  703: ['rollback_resistant', readNull],
  704: ['root_of_trust', readRootOfTrust],
  705: ['os_version', readInteger],
  706: ['os_patch_level', readInteger],
  709: ['attestation_application_id', readApplicationId],
  710: ['attestation_id_brand', text],
  711: ['attestation_id_device', text],
  712: ['attestation_id_product', text],
  713: ['attestation_id_serial', text],
  714: ['attestation_id_imei', text],
  715: ['attestation_id_meid', text],
  716: ['attestation_id_manufacturer', text],
  717: ['attestation_id_model', text],
  718: ['vendor_patch_level', readInteger],
  719: ['boot_patch_level', readInteger],
  720: ['device_unique_attestation', readNull],
  723: ['attestation_id_second_imei', text],
  724: ['module_hash', bytes],
}

/** What decisions read of each list: its form must be the schema's. */
const decisive = { software: [709], hardware: [702, 704] } as const

/** Each value of the list is in an explicit tag of its own, in ascending order by the standard. */
function readAuthorizations(
  value: Asn1 | undefined,
  decisiveTags: readonly number[],
): AuthorizationList {
  const entries = readSequence(value).filter(({ tagClass }) => tagClass === 'context')
  const numbers = entries.map(({ tag }) => tag)
  const list = new Map<string, AuthorizationList[string]>()
  const unknown: number[] = []
  const unreadable: number[] = []
  for (const tag of new Set(numbers)) {
    const known = tags[tag]
    if (known === undefined) {
      unknown.push(tag)
      continue
    }
    const [name, read] = known
    const readTag = () => read(findOnly(entries, tag))
    const found = decisiveTags.includes(tag) ? readTag() : readOptional(readTag)
    if (found === undefined) unreadable.push(tag)
    else list.set(name, found)
  }
  if (unknown.length > 0) list.set('unknown_tags', unknown)
  if (unreadable.length > 0) list.set('unreadable_tags', unreadable)
  list.set(
    'are_tags_ordered',
    numbers.every((tag, index) => index === 0 || tag > numbers[index - 1]!),
  )
  return Object.fromEntries(list) as AuthorizationList
}

/** @throws Refusal when the tag is there twice, or not around exactly one value */
function findOnly(entries: readonly Asn1[], wanted: number): Asn1 {
  const [entry, second] = entries.filter(({ tag }) => tag === wanted)
  if (entry?.children.length === 1 && second === undefined) return entry.children[0]!
  throw new Refusal('malformed', `tag ${wanted} twice, or not around one value`)
}

/**
 * Reads the extension's content.
 * @throws Refusal `key_description_malformed` with what breaks the schema where a decision reads it
 */
export function readKeyDescription(extension: Uint8Array): KeyDescription {
  try {
    const values = readSequence(parseAsn1(extension), 8)
    return {
      ...fact('attestation_version', () => readInteger(values[0])),
      attestation_security_level: readNamed(readEnumerated(values[1]), securityLevels),
      ...fact('key_mint_version', () => readInteger(values[2])),
      key_mint_security_level: readNamed(readEnumerated(values[3]), securityLevels),
      attestation_challenge: toBase64(readOctets(values[4])),
      ...fact('unique_id', () => toBase64(readOctets(values[5]))),
      software_enforced: readAuthorizations(values[6], decisive.software),
      hardware_enforced: readAuthorizations(values[7], decisive.hardware),
    }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    throw new Refusal('key_description_malformed', error.message)
  }
}
