/**
 * The signal catalog: every known signal, by category, with its type, platforms, grade, flag and
 * the public sources that report it. Weights are part of policies. Signals of a client that are not
 * in the catalog are kept and score 0.
 */

import type { ProblemDetail } from '#shared/core/http/problem.ts'
import { attestationSignals } from '#shared/core/signals/catalog/attestation.ts'
import { connectionSignals } from '#shared/core/signals/catalog/connection.ts'
import { debuggerSignals } from '#shared/core/signals/catalog/debugger.ts'
import { ecosystemSignals } from '#shared/core/signals/catalog/ecosystem.ts'
import { emulatorSignals } from '#shared/core/signals/catalog/emulator.ts'
import { networkSignals } from '#shared/core/signals/catalog/network.ts'
import { rootSignals } from '#shared/core/signals/catalog/root.ts'
import { tamperSignals } from '#shared/core/signals/catalog/tamper.ts'
import type {
  Category,
  ServerCategory,
  SignalCategory,
  SignalDefinition,
  SignalType,
} from './signal-definition.ts'

/** The catalog. Category order is that of the public interface. */
export const signalCatalog = {
  root: rootSignals,
  emulator: emulatorSignals,
  debugger: debuggerSignals,
  tamper: tamperSignals,
  ecosystem: ecosystemSignals,
  network: networkSignals,
} as const satisfies Record<Category, Record<string, SignalDefinition>>

/** The server signals, which the service observes or verifies itself. */
export const serverCatalog = {
  attestation: attestationSignals,
  connection: connectionSignals,
} as const satisfies Record<ServerCategory, Record<string, SignalDefinition>>

/** The catalog of client and service. */
export const fullCatalog: Readonly<
  Record<SignalCategory, Readonly<Record<string, SignalDefinition>>>
> = { ...signalCatalog, ...serverCatalog }

/** The definition of a signal, or undefined for one that is not in the catalog. */
export function findSignal(category: SignalCategory, name: string): SignalDefinition | undefined {
  const signals = fullCatalog[category]
  return Object.hasOwn(signals, name) ? signals[name] : undefined
}

/** What a value of a signal must be, in words. */
export const typeNames: Record<SignalType, string> = {
  boolean: 'a boolean or null',
  number: 'a number or null',
  string: 'a string or null',
  strings: 'an array of strings or null',
}

/**
 * Checks the known signals of one category against their types. `null` is "not measured".
 * @param errors one is added for each signal of a wrong type, with its JSON path
 */
export function checkKnownSignals(
  category: Category,
  signals: Record<string, unknown>,
  errors: ProblemDetail[],
): void {
  for (const name of Object.keys(signals)) {
    const value = signals[name]
    if (value === null) continue
    const definition = findSignal(category, name)
    if (definition === undefined) continue
    const path = `$.signals.${category}.${name}`
    if (!hasType(value, definition.type)) {
      errors.push({ path, message: `must be ${typeNames[definition.type]}` })
    } else if (typeof value === 'number' && !isPlainNumber(value)) {
      const message = 'is a number that a double cannot hold, or an integer beyond 2^53'
      errors.push({ path, message })
    }
  }
}

/** Whether a value that is not null is of the type. */
export function hasType(value: unknown, type: SignalType): boolean {
  if (type !== 'strings') return typeof value === type
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

/** Whether a number is finite and, if an integer, exact in a double. */
export function isPlainNumber(value: number): boolean {
  return value > Number.MIN_SAFE_INTEGER && value < Number.MAX_SAFE_INTEGER
}
