/**
 * What stays of a phone when its app is installed again, and what an install alone has: the traits
 * and identifiers that its SDK sends. Most are unique; some are those that real fleets have too,
 * such as a placeholder, or one id on all copies of an image.
 */
import type { Hardware, Platform, Sdk } from './hardware.ts'
import { createRandom, hashToUnit, type Random } from './random.ts'

export type PhoneIdentity = {
  storageBytes: number
  memoryBytes: number
  screen: string
  build: string
  carrier: string | null
  /** It starts again after this time, at its own place in it. */
  restartMs: number
  restartAtMs: number
  /** Empty where the SDK reads none. */
  identifiers: Readonly<Record<string, string>>
}

type Drawing = {
  seed: number
  index: number
  platform: Platform
  hardware: Hardware
  sdk: Sdk
  /** The name of its farm, whose phones are copies of one image. */
  farm: string | undefined
}

const gib = 1024 ** 3
const dayMs = 24 * 60 * 60 * 1000
const carriers = [
  'Vodafone',
  'Orange',
  'Telekom',
  'T-Mobile',
  'Airtel',
  'Viettel',
  'Claro',
] as const

/** Draws it from numbers of its own, so that all else of a phone stays as it is. */
export function drawIdentity(drawing: Drawing): PhoneIdentity {
  const { seed, index, hardware, farm } = drawing
  const ofModel = createRandom(seed, `model:${hardware.model}`)
  const screen = `${ofModel.int(9, 14) * 80}x${ofModel.int(20, 32) * 80}`
  const random = createRandom(seed, `identity:${farm ?? index}`)
  const own = createRandom(seed, `identity:${index}`)
  const storage = random.weighted([
    [64, 25],
    [128, 45],
    [256, 25],
    [512, 5],
  ])
  return {
    screen,
    storageBytes: storage * gib,
    memoryBytes: random.pick([4, 6, 8, 12]) * gib,
    build: `${hardware.os}-${createRandom(seed, `build:${hardware.model}`).hex(6)}`,
    carrier: random.chance(0.15) ? null : random.pick(carriers),
    restartMs: own.int(2, 25) * dayMs,
    restartAtMs: own.int(0, 25 * dayMs),
    identifiers: drawIdentifiers(drawing, random, own),
  }
}

/** Whether the SDK sends traits and identifiers at all: old ones and servers do not. */
export const sendsIdentity = ({ name, age }: Sdk): boolean => name !== 'server' && age > 0.3

function drawIdentifiers({ platform, sdk }: Drawing, image: Random, own: Random) {
  if (!sendsIdentity(sdk)) return {}
  // Some integrators leave them out.
  if (own.chance(0.1)) return {}
  if (platform === 'ios') {
    return { keychain_id: own.uuid().toUpperCase(), vendor_id: own.uuid().toUpperCase() }
  }
  const android = own.chance(0.004) ? 'unknown' : own.hex(16)
  // Of an image or a cheap chip: several phones have one.
  const drm = Buffer.from((own.chance(0.01) ? image : own).hex(64), 'hex').toString('base64')
  return { android_id: android, media_drm_id: drm }
}

/** The identity of the same phone in another install of the app: it is a vendor's only app. */
export function toReinstalled(identity: PhoneIdentity, own: Random): PhoneIdentity {
  const { identifiers } = identity
  if (identifiers.vendor_id === undefined) return identity
  return { ...identity, identifiers: { ...identifiers, vendor_id: own.uuid().toUpperCase() } }
}

/** The members of `device` that tell of the phone, at a time. */
export function toDeviceMembers(
  { identity, locale, timezone }: { identity: PhoneIdentity; locale: string; timezone: string },
  atMs: number,
  event: string,
): Record<string, unknown> {
  const { identifiers, carrier } = identity
  const bootAtMs = atMs - ((atMs + identity.restartAtMs) % identity.restartMs)
  return {
    build: identity.build,
    storage_bytes: identity.storageBytes,
    memory_bytes: identity.memoryBytes,
    screen: identity.screen,
    locale,
    time_zone: timezone,
    ...(carrier === null ? {} : { carrier }),
    // SDKs compute it from two clocks.
    boot_at: Math.round(bootAtMs + (hashToUnit(event) - 0.5) * 600),
    ...(Object.keys(identifiers).length === 0 ? {} : { identifiers }),
  }
}
