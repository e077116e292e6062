/** The signals of category `connection` of an address; null where nothing is measured. */
import { parseAddress } from '#shared/core/network/address.ts'
import {
  findConnection,
  type NetworkSources,
  toConnectionSignals,
} from '#shared/core/network/connection.ts'
import type { CategorySignals } from '#shared/core/signals/signal-definition.ts'

export function signalsOf(sources: NetworkSources | null, text: string): CategorySignals | null {
  const words = parseAddress(text)
  const found = sources === null || words === null ? null : findConnection(sources, words)
  return sources === null || found === null ? null : toConnectionSignals(sources, found)
}
