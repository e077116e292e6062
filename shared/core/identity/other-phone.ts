/**
 * Whether an event of an install comes from another phone than the first one did: two phones that
 * send one `device_id`. Only what cannot change on one phone counts. An update of the system, other
 * settings, another carrier and more storage are no other phone. Nor is another screen, which a
 * phone that folds has two of, and of which people choose the resolution.
 */
import type { InstallTraits } from './comparison.ts'
import { attestedKeyName } from './sent-identifiers.ts'

/** A phone reports a little less memory after an update; sizes on sale are a third apart at least. */
const memoryFactor = 1.25

/** What tells the hardware itself. */
const hardwareId = 'media_drm_id'
/** What stays while the system does, where few models change the id of their hardware. */
const systemId = 'android_id'

type FixedParts = [
  ...[model: string | null, memoryBytes: number | null],
  ...[hardwareId: string | null, systemId: string | null, attestedKey: string | null],
]

/** What does not change on one phone, as a text: equal for most events of an install. */
export function toFixedText({ model, memoryBytes, identifiers }: InstallTraits): string {
  const ids = [hardwareId, systemId, attestedKeyName].map((name) => identifiers[name] ?? null)
  return JSON.stringify([model, memoryBytes, ...ids])
}

/** The attested key of an install's first event; null without one. */
export const readAttestedKey = (fixed: string): string | null =>
  (JSON.parse(fixed) as FixedParts)[4]

/**
 * @param fixed of the first event of the install, as `toFixedText` has it
 * @returns what shows that the event is of another phone, by the names of members; empty where
 *   nothing does
 */
export function findOtherPhone(fixed: string, traits: InstallTraits): string[] {
  const text = toFixedText(traits)
  if (text === fixed) return []
  const [model, memory, hardware, system, key] = JSON.parse(fixed) as FixedParts
  const [ownModel, ownMemory, ownHardware, ownSystem, ownKey] = JSON.parse(text) as FixedParts
  const differs = (a: string | null, b: string | null) => a !== null && b !== null && a !== b
  // Its hardware has the private half, and no other phone can.
  if (key !== null && key === ownKey) return []
  const isOtherMemory =
    memory !== null &&
    ownMemory !== null &&
    Math.max(memory, ownMemory) > memoryFactor * Math.min(memory, ownMemory)
  const isSameSystem = system !== null && system === ownSystem
  const found = [
    ...(differs(model, ownModel) ? ['model'] : []),
    ...(isOtherMemory ? ['memory_bytes'] : []),
    ...(differs(hardware, ownHardware) && !isSameSystem ? [hardwareId] : []),
  ]
  // A phone makes a new key with each registration: alone it shows nothing.
  return found.length > 0 && differs(key, ownKey) ? [...found, attestedKeyName] : found
}
