/** The measurements of a round of the drain benchmark, and the report of all rounds. */

import type { Check, Figure } from '../report.ts'
import { toRatios, toSpread } from '../spread.ts'
import type { BaselineResult } from './drain-baseline.ts'

/** Both baselines: rows as bytes, and as objects. */
export type Baselines = {
  bytes: BaselineResult & { clickhouseUs: number }
  objects: BaselineResult
  check: Check
}

/** CPU by process, in us per event. */
export type Costs = { scorer: number; clickhouse: number; postgres: number; nats: number }

export type Drained = {
  eventsPerSecond: number
  costs: Costs
  rowsPerInsert: number
  memoryMb: number
  /** Of installs, an event: rows that the scorer wrote, and bytes once they are merged. */
  keys: { rows: number; bytes: number }
  checks: Check[]
}

/** What equal installs cost beside installs that have all for their own. */
export const toEqualFigures = (own: Drained[], equal: Drained[]): Figure[] =>
  (['scorer', 'clickhouse'] as const).map((process) => {
    const [value, baseline] = [equal, own].map((all) => all.map(({ costs }) => costs[process]))
    return {
      name: `CPU of ${process} per new install, a thousand alike`,
      unit: 'us',
      value: toSpread(value!),
      baseline: { name: 'all different', value: toSpread(baseline!) },
      ratio: toRatios(value!, baseline!),
      bound: { of: 'ratio', atMost: 1.5 },
    }
  })

export function toFigures(
  drains: Drained[],
  baselines: Baselines[],
  alertings: Drained[],
): Figure[] {
  const rates = drains.map((one) => one.eventsPerSecond)
  const beside = (way: 'objects' | 'bytes', name: string): Figure => {
    const baselineRates = baselines.map((one) => one[way].eventsPerSecond)
    return {
      name,
      unit: 'events/s',
      value: toSpread(rates),
      baseline: { name: `the same rows as ${way}`, value: toSpread(baselineRates) },
      ratio: toRatios(rates, baselineRates),
      bound: { of: 'ratio', atLeast: 0.6 },
    }
  }
  const alertingRates = alertings.map((one) => one.eventsPerSecond)
  const costs = (of: Drained[], kind: string): Figure[] =>
    (['scorer', 'clickhouse', 'postgres', 'nats'] as const).map((process) => ({
      name: `CPU of ${process} per event, ${kind}`,
      unit: 'us',
      value: toSpread(of.map((one) => one.costs[process])),
    }))
  return [
    beside('objects', 'drain, no alerts'),
    beside('bytes', 'drain, no alerts, beside rows encoded beforehand'),
    {
      name: 'drain, 1 in 5 events alerting',
      unit: 'events/s',
      value: toSpread(alertingRates),
      baseline: { name: 'no alerts', value: toSpread(rates) },
      ratio: toRatios(alertingRates, rates),
      bound: { of: 'ratio', atLeast: 0.5 },
    },
    ...costs(drains, 'no alerts'),
    {
      name: 'CPU of clickhouse per event, rows as bytes',
      unit: 'us',
      value: toSpread(baselines.map(({ bytes }) => bytes.clickhouseUs)),
    },
    {
      name: 'CPU of the client per event, rows as objects',
      unit: 'us',
      value: toSpread(baselines.map(({ objects }) => objects.cpuUs)),
    },
    ...costs(alertings, '1 in 5 alerting'),
    {
      name: 'memory of the scorer at most',
      unit: 'MB',
      value: toSpread([...drains, ...alertings].map((one) => one.memoryMb)),
    },
  ]
}

/** One line of each kind: the first that failed, or the last. */
export function mergeChecks(checks: readonly Check[]): Check[] {
  const merged = new Map<string, Check>()
  for (const check of checks) {
    const present = merged.get(check.name)
    if (present === undefined || present.ok) merged.set(check.name, check)
  }
  return [...merged.values()]
}
