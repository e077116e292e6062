/** Warnings about what a submission tells of its phone and what is not read of it. */
import { readOccurredAt } from '#shared/core/base/instants.ts'
import {
  identifierCharactersMax,
  identifierNameCharactersMax,
  identifiersMax,
  metaCharactersMax,
} from '#shared/core/base/limits/telemetry.ts'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { isTraitSize, isTraitText } from '#shared/core/identity/device-traits.ts'
import {
  type IdentifierFault,
  readSentIdentifiers,
} from '#shared/core/identity/sent-identifiers.ts'
import type { SignalWarning } from '../signal-warnings.ts'
import { isObject, type Telemetry } from '../submission.ts'

/** Members of `device` that only traits are read from. */
export const traitTexts = ['build', 'screen', 'locale', 'time_zone', 'carrier'] as const
export const traitSizes = ['storage_bytes', 'memory_bytes'] as const

const identifierMessages: Record<Exclude<IdentifierFault, 'key'>, string> = {
  object: 'is not kept: it must be an object, such as {"keychain_id": "6f1c…"}',
  name:
    `is not kept: names have 1 to ${identifierNameCharactersMax} of a-z, 0-9 and _, ` +
    'and none is attested_key',
  value: `is not kept: it must be a text of 1 to ${identifierCharactersMax} characters`,
  placeholder: 'is not kept: it is a placeholder that many phones have',
  many: `is not kept: ${identifiersMax} identifiers count, the first by name`,
}

/** @returns a warning for each member that is there and not read, without its value */
export function warnOfDevice(body: Telemetry): SignalWarning[] {
  const { device } = body
  if (!isObject(device)) return []
  const warn = (name: string, code: SignalWarning['code'], message: string): SignalWarning => {
    return { path: `$.device.${name}`, code, message, nearest: null }
  }
  const isThere = (name: string) => device[name] !== undefined && device[name] !== null
  const warnings: SignalWarning[] = []
  for (const name of traitTexts) {
    if (!isThere(name) || device[name] === '' || isTraitText(device[name])) continue
    const message = `is not read: it must be a text of at most ${metaCharactersMax} characters`
    warnings.push(warn(name, 'unreadable_value', message))
  }
  for (const name of traitSizes) {
    if (!isThere(name) || isTraitSize(device[name])) continue
    warnings.push(warn(name, 'unreadable_value', 'is not read: it must be a number of bytes'))
  }
  if (isThere('boot_at') && readOccurredAt(device.boot_at) === null) {
    const message = 'is not read: it must be a time with its offset, or ms since 1970'
    warnings.push(warn('boot_at', 'unreadable_value', message))
  }
  for (const { name, fault } of readSentIdentifiers(body)?.leftOut ?? []) {
    if (fault === 'key') continue
    const shown = name === null ? '' : `.${toVisible(name.slice(0, identifierNameCharactersMax))}`
    const code = fault === 'placeholder' ? 'placeholder_id' : 'unreadable_value'
    warnings.push(warn(`identifiers${shown}`, code, identifierMessages[fault]))
  }
  return warnings
}
