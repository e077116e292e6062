/**
 * The names of an event's detected server signals, for the column `detected_server_signals`. They
 * are apart from `detected_signals`, which says what the client found on the phone: whoever counts
 * what SDKs report, or compares SDK versions, counts the client's alone.
 */
import { compareBytes } from '#shared/core/base/byte-order.ts'
import { type ServerSignals, serverCategories } from './signal-definition.ts'
import { findSignal } from './signals.ts'

/** Signals that are true when all is well. */
const reassuring: ReadonlySet<string> = new Set([
  'attestation.install_key',
  'attestation.hardware_backed',
  'attestation.verified',
])

/** `category.signal` of every boolean server signal of the catalog that is detected, in byte order. */
export function findDetectedServerSignals(server: ServerSignals): string[] {
  const found: string[] = []
  for (const category of serverCategories) {
    const own = server[category]
    for (const name in own) {
      const path = `${category}.${name}`
      if (own[name] !== true || reassuring.has(path)) continue
      if (findSignal(category, name) !== undefined) found.push(path)
    }
  }
  return found.sort(compareBytes)
}
