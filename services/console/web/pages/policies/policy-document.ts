/** A policy document as the pages change it; the server checks everything about it. */
import { isPlain } from '#shared/core/policies/policy-changes.ts'

export type Weight =
  | number
  | { whenFalse: number }
  | { atLeast: number; weight: number }
  | { values: Record<string, number>; unless?: string[] }

export type Suppression = {
  signals: string[]
  sdkVersions?: string[]
  platforms?: string[]
  expiresAt: string | null
  reason: string
}

export type SignalGroup = { cap: number; signals: string[] }

export type CategoryWeights = {
  cap: number
  signals: Record<string, Weight>
  /** Absent where there is none. */
  groups?: SignalGroup[]
}

export type VelocityRule = {
  metric: string
  windowSeconds: number
  threshold: number
  weight: number
  steps?: { above: number; weight: number }[]
}

export type PolicyDocument = {
  name: string
  thresholds: { review: number; block: number }
  categories: Record<string, CategoryWeights>
  /** Of what the service itself saw or verified; absent in older documents. */
  serverCategories?: Record<string, CategoryWeights>
  suppressions?: Suppression[]
  velocity?: VelocityRule[]
  floors?: { score: number; signals: string[]; need?: 'any' | 'all' }[]
  [more: string]: unknown
}

/** What the parts of the form get. */
export type FormProps = {
  tenant: string
  document: PolicyDocument
  base: PolicyDocument
  /** What the server says about a path of the document. */
  errorOf: (path: string) => string | undefined
  onChange: (document: PolicyDocument) => void
}

export const toText = (document: unknown): string => `${JSON.stringify(document, null, 2)}\n`

/** The document of a text; null when the text is not JSON of an object. */
export function parseDocument(text: string): PolicyDocument | null {
  try {
    const value = JSON.parse(text) as unknown
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as PolicyDocument) : null
  } catch {
    return null
  }
}

/** Whether the form can show it: a document that is being typed may lack anything. */
export function fitsForm(document: PolicyDocument | null): document is PolicyDocument {
  if (document === null) return false
  const { thresholds, categories, serverCategories = {} } = document
  if (typeof thresholds !== 'object' || thresholds === null) return false
  const { velocity, floors } = document
  return (
    hasWeights(categories) &&
    hasWeights(serverCategories) &&
    isListOf(velocity, (rule) => isListOf(rule.steps, () => true)) &&
    isListOf(floors, hasNames)
  )
}

/** A list of objects, or none. */
const isListOf = (list: unknown, fits: (one: Record<string, unknown>) => boolean): boolean =>
  list === undefined || (Array.isArray(list) && list.every((one) => isPlain(one) && fits(one)))

const hasNames = ({ signals }: Record<string, unknown>): boolean =>
  Array.isArray(signals) && signals.every((one) => typeof one === 'string')

const hasWeights = (categories: unknown): boolean =>
  isPlain(categories) &&
  Object.values(categories).every(
    (one) => isPlain(one) && isPlain(one.signals) && isListOf(one.groups, hasNames),
  )

/** The document with one floor more, which lifts the score to BLOCK where that is possible. */
export const addFloor = (
  document: PolicyDocument,
  floor: { signals: string[]; need: 'all' },
): PolicyDocument => ({
  ...document,
  floors: [
    ...(document.floors ?? []),
    { score: Math.min(100, document.thresholds?.block ?? 100), ...floor },
  ],
})
