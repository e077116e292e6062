/** Categories of signals and the form of a signal's definition in the catalog. */
import type { Flag } from './flag-codes.ts'

/** The six categories of `signals`, in the order of the public interface. */
export const categories = [
  'root',
  'emulator',
  'debugger',
  'tamper',
  'ecosystem',
  'network',
] as const
export type Category = (typeof categories)[number]

/** The categories of server signals, which no client can send. */
export const serverCategories = ['attestation', 'connection'] as const
export type ServerCategory = (typeof serverCategories)[number]

/** A category of the client or of the service; no name is in both. */
export type SignalCategory = Category | ServerCategory

/**
 * Detection data of one category: known signals are typed by the catalog, unknown ones are kept.
 */
export type CategorySignals = Record<string, unknown>
export type Signals = Record<Category, CategorySignals>

/** What the service knows of one event; a category without a signal is absent. */
export type ServerSignals = { [Name in ServerCategory]?: CategorySignals | undefined }

/** An event without server signals. */
export const noServerSignals: ServerSignals = {}

/** Who observes a signal: the client sends it, or the service saw or verified it itself. */
export const seenBy = ['client', 'server'] as const
export type SeenBy = (typeof seenBy)[number]

export const toSeenBy = (category: SignalCategory): SeenBy =>
  isServerCategory(category) ? 'server' : 'client'

/** Whether the service itself observes or verifies the signals of a category. */
export const isServerCategory = (category: string): category is ServerCategory =>
  (serverCategories as readonly string[]).includes(category)

export const signalTypes = ['boolean', 'number', 'string', 'strings'] as const
export type SignalType = (typeof signalTypes)[number]

/** How severe public sources consider a signal. */
export const grades = ['critical', 'high', 'medium', 'low', 'informational'] as const
export type Grade = (typeof grades)[number]

export const platforms = ['android', 'ios'] as const
export type Platform = (typeof platforms)[number]

/**
 * Every value that a text can have, each with other words for it. A word in upper, lower or camel
 * case is the same word.
 */
export type Vocabulary = Readonly<Record<string, readonly string[]>>

export type SignalDefinition = {
  type: SignalType
  /** Of a text or a list of texts whose platform defines its values; absent for any text. */
  values?: Vocabulary
  platforms: (typeof platforms)[number][]
  grade: Grade
  flag: Flag
  /** Flags of values that mean something else than `flag` says. */
  flagByValue?: Readonly<Record<string, Flag>>
  description: string
  /** The public SDKs and documents that report or grade this signal. */
  sources: string[]
}
