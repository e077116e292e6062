/**
 * Signals that a tenant declares, for the table of outcomes. Patterns do not have them, so a kind
 * of event has their points beside its pattern, and from those gets back a value that scores them.
 */
import { type DeclaredSignal, listDeclared } from '#shared/core/policies/declared-signals.ts'
import type { Policy, SignalWeight } from '#shared/core/policies/policy.ts'
import { needsBody, pointsOf } from '#shared/core/scoring/sql/scoring-sql-points.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'

type Weighed = DeclaredSignal & { weight: SignalWeight }

const separator = ','

/** Those with a weight, and booleans without one, which a suggestion can weigh. */
function listWeighed(policy: Policy): Weighed[] {
  return listDeclared(policy).flatMap((declared) => {
    const own = policy.categories[declared.category].signals[declared.name]
    const weight = own ?? (declared.type === 'boolean' ? 1 : undefined)
    return weight === undefined ? [] : [{ ...declared, weight }]
  })
}

/** SQL over a row of `telemetry`: the points of each, as one text. */
export function toDeclaredSql(policy: Policy): string {
  const points = listWeighed(policy).map(({ category, name: signal, weight }) => {
    // What suppresses or silences a signal is known of the kind of event, and is applied to it.
    const leaf = { category, signal, weight, policy: { suppressions: [], signals: policy.signals } }
    const [columns, body] = (['columns', 'body'] as const).map((source) =>
      pointsOf({ ...leaf, source }),
    )
    if (columns == null || body == null) return "'0'"
    return `toString(if(${needsBody([policy])}, ${body}, ${columns}))`
  })
  return points.length === 0 ? "''" : `arrayStringConcat([${points.join(', ')}], '${separator}')`
}

/** The signals with values of the declared ones that bring these points. */
export function withDeclared(signals: Signals, policy: Policy, text: string): Signals {
  if (text === '') return signals
  const points = text.split(separator).map(Number)
  const all: Record<string, Record<string, unknown>> = { ...signals }
  listWeighed(policy).forEach(({ category, name, type, weight }, at) => {
    if (points[at] === 0) return
    all[category] = { ...all[category], [name]: toValue({ type, weight }, points[at]!) }
  })
  return all as Signals
}

function toValue({ type, weight }: Pick<Weighed, 'type' | 'weight'>, points: number): unknown {
  if (typeof weight === 'number') return true
  if ('whenFalse' in weight) return false
  if ('atLeast' in weight) return weight.atLeast
  const [value] = Object.entries(weight.values).find(([, own]) => own === points)!
  if (type === 'string') return value
  return value === '(empty)' ? [] : [value]
}
