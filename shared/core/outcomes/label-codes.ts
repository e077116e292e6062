/**
 * The codes of labels that a tenant may use: those that every tenant has, and those that it
 * declared with what they mean. A label of another code is refused, since `legit` would count as
 * fraud.
 */
import { labelSlipMax } from '#shared/core/base/limits/outcomes.ts'
import { countChanges } from '#shared/core/base/text-distance.ts'
import { fraudLabels, legitimateLabel, type Outcome, retractedLabel, toOutcome } from './labels.ts'

const builtIn: readonly string[] = [...fraudLabels, legitimateLabel, retractedLabel]

/** A tenant's declared codes, with what each means. */
export type DeclaredCodes = ReadonlyMap<string, Outcome>

/** A code that a tenant may use; `means` is null of a retraction. */
export type LabelCode = { code: string; means: Outcome | null; is_declared: boolean }

/** All codes of a tenant: those of every tenant first, then its own by name. */
export function listCodes(declared: DeclaredCodes): LabelCode[] {
  const own = [...declared].sort(([a], [b]) => (a < b ? -1 : 1))
  return [
    ...builtIn.map((code) => ({ code, means: toOutcome(code), is_declared: false })),
    ...own.map(([code, means]) => ({ code, means, is_declared: true })),
  ]
}

/** Words that case tools use for what a label of every tenant says. */
const synonyms: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    [
      ...['legit', 'genuine', 'good', 'honest', 'clean', 'ok', 'valid', 'trusted', 'not_fraud'],
      ...['no_fraud', 'false_positive', 'false_alarm', 'non_fraud'],
    ].map((word) => [word, legitimateLabel]),
  ),
  ...Object.fromEntries(
    ['bad', 'scam', 'confirmed', 'confirmed_fraud', 'true_positive'].map((word) => [word, 'fraud']),
  ),
  ato: 'account_takeover',
  dispute: 'chargeback',
  cb: 'chargeback',
}

/**
 * Why a label has no code that the tenant may use, with the nearest one.
 * @returns null when it has
 */
export function findLabelFault(label: string, declared: DeclaredCodes): string | null {
  if (builtIn.includes(label) || declared.has(label)) return null
  const nearest =
    synonyms[label.replaceAll('-', '_')] ?? findNearest(label, [...builtIn, ...declared.keys()])
  return `is no code of this tenant; the nearest is ${nearest}. Declare your own first, with what it means`
}

function findNearest(label: string, codes: readonly string[]): string {
  // No two codes are further apart than the longer one has characters.
  const distance = (code: string) => countChanges(code, label, Math.max(code.length, label.length))
  return codes.reduce((best, code) => (distance(code) < distance(best) ? code : best))
}

/** Two letters of a short name are another word. */
const slipOf = (name: string): number => (name.length < 8 ? 1 : labelSlipMax)

/** Why a code cannot be declared: it is that of every tenant, or nearly so; null when it can. */
export function findCodeFault(code: string): string | null {
  if (builtIn.includes(code)) return 'is a code that every tenant has'
  const near = builtIn.find((name) => countChanges(name, code, slipOf(name)) <= slipOf(name))
  return near === undefined ? null : `is nearly ${near}: a code of your own must differ more`
}
