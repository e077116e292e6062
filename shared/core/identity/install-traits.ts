/**
 * What an event tells of the phone that its install is on. Identifiers are keyed hashes already:
 * the edge has put them in the place of what was sent.
 */

import { readOccurredAt } from '../base/instants.ts'
import { bootToleranceMs } from '../base/limits/entities.ts'
import { identifiersMax } from '../base/limits/telemetry.ts'
import type { AcceptedEvent } from '../telemetry/event-batch.ts'
import { readInstall } from '../telemetry/install.ts'
import { isPlaceholderId } from '../telemetry/placeholder-ids.ts'
import { isObject } from '../telemetry/submission.ts'
import { type InstallTraits, toKeys } from './comparison.ts'
import { isTraitSize, isTraitText } from './device-traits.ts'
import { attestedKeyName, identifierHashCharacters, isIdentifierName } from './sent-identifiers.ts'

export type { InstallTraits }

/** What the edge writes for an identifier. */
const hashPattern = new RegExp(`^[A-Za-z0-9_-]{${identifierHashCharacters}}$`)

/** What is read of an event. */
export type TraitsEvent = Pick<AcceptedEvent, 'traits' | 'body' | 'install' | 'connection'>

/**
 * Reads the traits of an event, also of one that is kept without most of its body.
 * @returns null where the body has no `device` object
 */
export function toInstallTraits(event: TraitsEvent): InstallTraits | null {
  if (event.traits !== undefined) return event.traits
  const { body, install, connection } = event
  const { device } = body
  if (!isObject(device)) return null
  const hardware = toHardware(event, device)
  const { memory_bytes: memory } = device
  const identifiers = readHashes(device.identifiers)
  const attestedKey = install?.attested_key ?? null
  if (attestedKey !== null) identifiers.push([attestedKeyName, attestedKey])
  // Equal traits have one text, whatever the order in the body.
  identifiers.sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    identifiers: Object.fromEntries(identifiers),
    hardware,
    model: toModel(readInstall(body)),
    memoryBytes: isTraitSize(memory) ? memory : null,
    setup: hardware === null ? null : toSetup(event, device, hardware),
    network: connection?.network ?? null,
    users: toUsers(body),
    bootAtMs: toBootAtMs(device.boot_at),
  }
}

/** Those that an edge wrote: an edge of an earlier release stored what it got. */
function readHashes(value: unknown): [name: string, hash: string][] {
  if (!isObject(value)) return []
  const hashes = Object.entries(value).filter((entry): entry is [string, string] => {
    const [name, hash] = entry
    return isIdentifierName(name) && typeof hash === 'string' && hashPattern.test(hash)
  })
  return hashes.slice(0, identifiersMax)
}

/**
 * Every member or nothing: an SDK that measures one more must not make another phone of the one
 * that it was on.
 */
function toHardware(
  { body }: TraitsEvent,
  { storage_bytes: storage, memory_bytes: memory, screen }: Record<string, unknown>,
): string | null {
  const { deviceBrand: brand, deviceModel: model } = readInstall(body)
  if (brand === '' || model === '' || !isTraitSize(storage) || !isTraitSize(memory)) return null
  return isTraitText(screen) ? JSON.stringify([brand, model, storage, memory, screen]) : null
}

/** In one case of letters: makers and SDKs write both. */
const toModel = ({
  deviceBrand: brand,
  deviceModel: model,
}: Pick<ReturnType<typeof readInstall>, 'deviceBrand' | 'deviceModel'>): string | null =>
  model === '' ? null : JSON.stringify([brand, model]).toLowerCase()

/** Phones without a card have no carrier, and not every system tells its build. */
function toSetup(
  { body }: TraitsEvent,
  { build, locale, time_zone: timeZone, carrier }: Record<string, unknown>,
  hardware: string,
): string | null {
  const { osVersion } = readInstall(body)
  if (osVersion === '' || !isTraitText(locale) || !isTraitText(timeZone)) return null
  const optional = [build, carrier].map((value) => (isTraitText(value) ? value : null))
  return JSON.stringify([hardware, osVersion, locale, timeZone, ...optional])
}

function toUsers({ user_id: user, account_id: account }: AcceptedEvent['body']): string[] {
  const ids = [user, account].filter((id) => id !== undefined)
  return [...new Set(ids)].filter((id) => !isPlaceholderId(id)).sort()
}

/** A start is computed with each event, and differs each time by some ms. */
function toBootAtMs(value: unknown): number | null {
  const ms = readOccurredAt(value)
  return ms === null ? null : Math.round(ms / bootToleranceMs) * bootToleranceMs
}

/** The key by which the traits of an install itself are found. */
export const toInstallKey = (deviceId: string): string => JSON.stringify(['install', deviceId])

/** The keys of an install's rows: those that other installs may have too, and its own. */
export const toIdentityKeys = (deviceId: string, traits: InstallTraits): string[] => [
  ...toKeys(traits),
  toInstallKey(deviceId),
]

/** The text that rows have; equal for equal traits. */
export const toTraitsText = (traits: InstallTraits): string => JSON.stringify(traits)

/** @param text of `toTraitsText`, also of a release whose traits had no model */
export function readTraits(text: string): InstallTraits {
  const traits = JSON.parse(text) as InstallTraits
  if (traits.model !== undefined) return traits
  if (traits.hardware === null) return { ...traits, model: null, memoryBytes: null }
  const [deviceBrand, deviceModel, , memoryBytes] = JSON.parse(traits.hardware) as HardwareParts
  return { ...traits, model: toModel({ deviceBrand, deviceModel }), memoryBytes }
}

type HardwareParts = [brand: string, model: string, storage: number, memory: number]
