/**
 * Simple rules beside a suggestion: one to three signals that together say fraud, as a person would
 * write them. They are found in the older sessions and counted in the newer ones, so that a rule
 * that chance made looks like one. Each of signals alone can become a floor, and one whose signals
 * are of one category a group.
 */
import {
  ruleCandidatesMax,
  ruleCasesMin,
  ruleSignalsMax,
  simpleRulesMax,
} from '#shared/core/base/limits/policies.ts'
import { detectedWhenFalse } from '#shared/core/signals/watched-signals.ts'
import { type Rate, toRate } from '../wilson.ts'
import type { Feature } from './features.ts'
import type { OutcomeRow, Period } from './outcome-table.ts'

export type SimpleRule = {
  features: string[]
  /** In the sessions in which it was found. */
  found: { fraud: number; labelled: number; precision: Rate }
  /** In the newer sessions. */
  tested: { fraud: number; labelled: number; precision: Rate; recall: Rate; alerts_a_week: number }
  /** The floor that makes it one; null where no floor says it: a count, or some points of many. */
  floor: RuleFloor | null
  /** Its signals as one fact of a category; null where they are none. */
  group: { category: string; signals: string[] } | null
}

export type RuleFloor = {
  signals: string[]
  need: 'any' | 'all'
  /** The least weights of its signals: a floor holds only when they score. */
  least: Record<string, 1 | { whenFalse: 1 }>
}

type Counted = { columns: ReadonlySet<number>; row: OutcomeRow }

/** @param columns of each row */
export function findSimpleRules(
  rows: readonly OutcomeRow[],
  columns: readonly (readonly number[])[],
  { features, days }: { features: readonly Feature[]; days: Readonly<Record<Period, number>> },
): SimpleRule[] {
  const counted = rows.map((row, at): Counted => ({ row, columns: new Set(columns[at]) }))
  const older = counted.filter(({ row }) => row.period === 'older' && isLabelled(row))
  const newer = counted.filter(({ row }) => row.period === 'newer')
  const fraud = newer.reduce((sum, { row }) => sum + row.fraud, 0)
  return pick(search(older, features.length), older).map(({ signals, hits, cases }) => {
    const matching = newer.filter((one) => signals.every((column) => one.columns.has(column)))
    const sum = (of: (row: OutcomeRow) => number) =>
      matching.reduce((total, { row }) => total + of(row), 0)
    const caught = sum((row) => row.fraud)
    const labelled = caught + sum((row) => row.legitimate)
    const alerts = labelled + sum((row) => row.unlabelled)
    return {
      features: signals.map((column) => features[column]!.name),
      found: { fraud: hits, labelled: cases, precision: toRate(hits, cases) },
      tested: {
        fraud: caught,
        labelled,
        precision: toRate(caught, labelled),
        recall: toRate(caught, fraud),
        alerts_a_week: days.newer > 0 ? (7 * alerts) / days.newer : 0,
      },
      ...toParts(
        signals.map((column) => features[column]!),
        features,
      ),
    }
  })
}

const isLabelled = ({ fraud, legitimate }: OutcomeRow) => fraud + legitimate > 0

/** What the rule can become in a document. */
function toParts(
  rule: readonly Feature[],
  all: readonly Feature[],
): Pick<SimpleRule, 'floor' | 'group'> {
  const paths = rule.flatMap(({ of }) => (of.kind === 'signal' ? of.path : []))
  const levelsOf = (path: string) =>
    all.filter(({ of }) => of.kind === 'signal' && of.path === path).length
  // A floor and a group take a signal whatever its points are.
  if (paths.length < rule.length || paths.some((path) => levelsOf(path) > 1)) {
    return { floor: null, group: null }
  }
  const signals = [...paths].sort()
  const least = signals.map((path) => [path, leastWeightOf(path)] as const)
  const [category, ...others] = new Set(signals.map((path) => path.split('.')[0]!))
  const names = signals.map((path) => path.slice(path.indexOf('.') + 1))
  return {
    floor: { signals, need: signals.length > 1 ? 'all' : 'any', least: Object.fromEntries(least) },
    group: names.length > 1 && others.length === 0 ? { category: category!, signals: names } : null,
  }
}

const leastWeightOf = (path: string) =>
  detectedWhenFalse.has(path) ? ({ whenFalse: 1 } as const) : (1 as const)

type Found = { signals: number[]; hits: number; cases: number; low: number }

/** Grows rules by one signal, each only where the signal makes it surer. */
function search(rows: readonly Counted[], width: number): Found[] {
  const hits = new Array<number>(width).fill(0)
  for (const { columns, row } of rows) for (const column of columns) hits[column]! += row.fraud
  const candidates = [...hits.keys()]
    .filter((column) => hits[column]! >= ruleCasesMin)
    .sort((a, b) => hits[b]! - hits[a]!)
    .slice(0, ruleCandidatesMax)
  const found: Found[] = []
  const grow = (signals: number[], matching: readonly Counted[], below: number, from: number) => {
    for (let at = from; at < candidates.length; at++) {
      const column = candidates[at]!
      const mine = matching.filter(({ columns }) => columns.has(column))
      const rule = measure([...signals, column], mine)
      if (rule.hits < ruleCasesMin) continue
      // A signal that says nothing more leaves the interval where it was, or lower.
      if (rule.low > below) found.push(rule)
      if (rule.signals.length < ruleSignalsMax) {
        grow(rule.signals, mine, Math.max(below, rule.low), at + 1)
      }
    }
  }
  grow([], rows, 0, 0)
  return found
}

function measure(signals: number[], rows: readonly Counted[]): Found {
  let hits = 0
  let cases = 0
  for (const { row } of rows) {
    hits += row.fraud
    cases += row.fraud + row.legitimate
  }
  return { signals, hits, cases, low: toRate(hits, cases).low }
}

/** Of two rules that catch so much of the same fraud, one is enough. */
const sameShare = 0.5

/** The surest first, each with fraud that those before it do not catch. */
function pick(found: readonly Found[], rows: readonly Counted[]): Found[] {
  const sorted = [...found].sort(
    (a, b) => b.low - a.low || b.hits - a.hits || a.signals.length - b.signals.length,
  )
  const chosen: Found[] = []
  const caught = new Set<Counted>()
  for (const rule of sorted) {
    const mine = rows.filter(
      ({ row, columns }) => row.fraud > 0 && rule.signals.every((one) => columns.has(one)),
    )
    let same = 0
    for (const one of mine) if (caught.has(one)) same += one.row.fraud
    if (same > sameShare * rule.hits) continue
    chosen.push(rule)
    for (const one of mine) caught.add(one)
    if (chosen.length === simpleRulesMax) break
  }
  return chosen
}
