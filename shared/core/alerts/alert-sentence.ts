/** What an alert says in one sentence for a customer, from fixed texts. */
import { type FlagText, flags } from '../signals/flags.ts'

/** A sentence stays one that a person can say. */
const clausesMax = 3

type WeighedReason = { code: string; weight: number }

/**
 * The heaviest reasons in words: `This phone runs code that alters the app and uses a VPN or a
 * relay; risk 82 of 100.` A reason that a later release knows is left out.
 * @param score 0 to 100
 */
export function toAlertSentence(reasons: readonly WeighedReason[], score: number): string {
  const clauses = reasons
    .filter(({ weight }) => weight > 0)
    .toSorted((a, b) => b.weight - a.weight || (a.code < b.code ? -1 : 1))
    .flatMap(({ code }) => findFlag(code)?.clause ?? [])
    .slice(0, clausesMax)
  const said = clauses.length === 0 ? 'is at risk' : toList(clauses)
  return `This phone ${said}; risk ${score} of 100.`
}

/** The texts of a flag; undefined for one of a later release. */
export const findFlag = (code: string): FlagText | undefined =>
  Object.hasOwn(flags, code) ? flags[code as keyof typeof flags] : undefined

/** The names of flags, for people; a flag of a later release by its code. */
export const nameFlags = (codes: readonly string[]): string =>
  codes.map((code) => findFlag(code)?.name ?? code).join(', ')

/** `a`, `a and b`, `a, b and c`. */
function toList(texts: readonly string[]): string {
  const last = texts.at(-1)!
  return texts.length === 1 ? last : `${texts.slice(0, -1).join(', ')} and ${last}`
}
