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
  /** Called with the path of a part that the person is in, and with null when they leave it. */
  onEditing: (path: string | null) => void
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

/** What a simple rule can become. */
export type RuleFloor = {
  signals: string[]
  need: 'any' | 'all'
  least: Record<string, Weight>
}
export type RuleGroup = { category: string; signals: string[] }

/**
 * The document with one floor more, which lifts the score to BLOCK where that is possible. Signals
 * of it that score nothing get the least weight, since the floor would never hold.
 */
export function addFloor(
  document: PolicyDocument,
  { least, signals, need }: RuleFloor,
): PolicyDocument {
  const score = Math.min(100, document.thresholds?.block ?? 100)
  const floor = need === 'all' ? { score, signals, need } : { score, signals }
  const weighed = signals.reduce((sum, path) => withPoints(sum, path, least[path] ?? 1), document)
  return { ...weighed, floors: [...(document.floors ?? []), floor] }
}

const partOf = (document: PolicyDocument, category: string) =>
  document.serverCategories?.[category] === undefined ? 'categories' : 'serverCategories'

function withPoints(document: PolicyDocument, path: string, least: Weight): PolicyDocument {
  const [category = '', name = ''] = path.split('.')
  const part = partOf(document, category)
  const own = document[part]?.[category]
  const weight = own?.signals[name]
  if (own === undefined || mostPoints(weight) > 0) return document
  const isPlainWeight = typeof weight !== 'object' || 'whenFalse' in weight
  const next = isPlainWeight ? least : 'atLeast' in weight ? { ...weight, weight: 1 } : weight
  const changed = { ...own, signals: { ...own.signals, [name]: next } }
  return { ...document, [part]: { ...document[part], [category]: changed } }
}

function mostPoints(weight: Weight | undefined): number {
  if (weight === undefined || typeof weight === 'number') return weight ?? 0
  if ('whenFalse' in weight) return weight.whenFalse
  return 'atLeast' in weight ? weight.weight : Math.max(0, ...Object.values(weight.values))
}

/**
 * The document with the signals as one fact: together they bring what the heaviest of them does.
 * @returns null when one of them is in a group already, or the document lacks the category
 */
export function addGroup(
  document: PolicyDocument,
  { category, signals }: RuleGroup,
): PolicyDocument | null {
  const part = partOf(document, category)
  const own = document[part]?.[category]
  const groups = own?.groups ?? []
  const isTaken = groups.some((group) => group.signals.some((name) => signals.includes(name)))
  if (own === undefined || isTaken) return null
  const cap = Math.max(...signals.map((name) => mostPoints(own.signals[name])))
  const changed = { ...own, groups: [...groups, { cap, signals }] }
  return { ...document, [part]: { ...document[part], [category]: changed } }
}
