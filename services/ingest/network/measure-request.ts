/**
 * Measures where the events of a request come from. It is called once the signature holds: nothing
 * is looked up for a stranger.
 */
import type { NetworkSources } from '#shared/core/network/connection.ts'
import { findCountryMismatch } from '#shared/core/network/country-mismatch.ts'
import {
  type MeasuredConnection,
  measureConnection,
} from '#shared/core/network/measure-connection.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import type { Sender } from '../verify-sender.ts'

/** @returns null where nothing is measured; the signals are the event's own */
export type MeasureEvent = (telemetry: Telemetry) => MeasuredConnection | null

/**
 * All events of a request are looked up in one state of the data.
 * @param sources null without network data
 * @param readAddress the client's address of the request
 */
export function measureRequest(
  sources: NetworkSources | null,
  { tenant, install }: Sender,
  readAddress: (() => string) | undefined,
): MeasureEvent {
  const { clientAddress, isAddressStored: isStored, addressKey } = tenant
  if (sources === null || addressKey === null) return measureNothing
  const measure = (text: string) => measureConnection(sources, text, { addressKey, isStored })
  if (clientAddress === 'body') {
    // What an install signed is the word of a phone, also of where it is.
    if (install !== null) return measureNothing
    return (telemetry) => {
      const { client_ip: text } = telemetry
      return typeof text === 'string' ? compare(measure(text), telemetry) : null
    }
  }
  let found: MeasuredConnection | null | undefined
  return (telemetry) => {
    if (found === undefined) found = readAddress === undefined ? null : measure(readAddress())
    return compare(found, telemetry)
  }
}

/**
 * Compares the country with what the phone says. A relay keeps its own idea of a country, which
 * contradicts nothing.
 */
function compare(
  found: MeasuredConnection | null,
  { signals }: Telemetry,
): MeasuredConnection | null {
  const country = found?.head.country
  if (found === null || country === undefined || found.signals.relay === true) return found
  const mismatch = findCountryMismatch(country, signals as Signals)
  if (mismatch === null) return found
  return { ...found, signals: { ...found.signals, country_mismatch: mismatch } }
}

const measureNothing: MeasureEvent = () => null
