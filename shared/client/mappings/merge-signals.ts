/**
 * Builds and merges partial signals. A check that is detected wins over one that is clean, and both
 * win over "not measured", so several SDKs can report the same signal.
 */
import { categories } from '#shared/core/signals/signal-definition.ts'
import { detectedWhenFalse } from '#shared/core/signals/watched-signals.ts'
import type { BooleanSignal, Category } from '../service-types.ts'
import type { PartialSignals, Signals } from '../telemetry.ts'
import { allOf, checkReport } from './check-report.ts'

type Loose = Record<Category, Record<string, unknown>>

/**
 * Merges what several SDKs report to the `signals` of a submission, with all six categories. Of two
 * texts, numbers or lists the last one counts.
 * @throws TypeError when a part is none
 */
export function mergeSignals(...parts: PartialSignals[]): Signals {
  for (const [index, part] of parts.entries()) {
    checkReport(`mergeSignals: part ${index + 1}`, part, {
      what: 'signals by category, as an adapter gives them',
      members: allOf(categories, 'object'),
    })
  }
  const empty = Object.fromEntries(categories.map((category) => [category, {}])) as Signals
  return { ...empty, ...mergePartial(...parts) }
}

/** Merges as `mergeSignals` does, with only those categories that a part has. */
export function mergePartial(...parts: PartialSignals[]): PartialSignals {
  const merged: Partial<Loose> = {}
  for (const part of parts) {
    for (const category of categories) {
      for (const [name, value] of Object.entries(part[category] ?? {})) {
        if (value === null || value === undefined) continue
        merged[category] ??= {}
        const own = merged[category]
        const detected = !detectedWhenFalse.has(`${category}.${name}`)
        if (own[name] !== detected) own[name] = value
      }
    }
  }
  return merged as PartialSignals
}

/** A boolean signal and what was found; undefined is "not measured". */
export type Finding = readonly [signal: BooleanSignal, detected: boolean | undefined]

/** Builds partial signals from findings. Of several for one signal, a detected one counts. */
export function toPartialSignals(findings: Iterable<Finding>): PartialSignals {
  const found: Partial<Loose> = {}
  for (const [path, detected] of findings) {
    if (detected === undefined) continue
    const [category, name] = path.split('.') as [Category, string]
    found[category] ??= {}
    const own = found[category]
    if (own[name] !== true) own[name] = detected
  }
  return found as PartialSignals
}

/**
 * A report by a name that this version does not know, as a signal outside the catalog. It scores
 * nothing and is listed by `di signals unknown`, so an SDK that reports something new is noticed.
 * @param sdk prefix of the signal's name
 */
export function toUnknownSignals(sdk: string, names: readonly string[]): PartialSignals {
  if (names.length === 0) return {}
  const toName = (name: string) =>
    name
      .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
      .replace(/[^A-Za-z0-9]+/g, '_')
      .toLowerCase()
      .slice(0, 40)
  const entries = names.map((name) => [`${sdk}_${toName(name)}`, true])
  return { ecosystem: Object.fromEntries(entries) } as PartialSignals
}
