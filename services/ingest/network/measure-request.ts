/**
 * Measures where the events of a request come from. It is called once the signature holds: nothing
 * is looked up for a stranger.
 */
import type { NetworkSources } from '#shared/core/network/connection.ts'
import {
  type MeasuredConnection,
  measureConnection,
} from '#shared/core/network/measure-connection.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import type { Sender } from '../verify-sender.ts'

/** @returns null where nothing is measured */
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
    return ({ client_ip: text }) => (typeof text === 'string' ? measure(text) : null)
  }
  let found: MeasuredConnection | null | undefined
  return () => {
    if (found === undefined) found = readAddress === undefined ? null : measure(readAddress())
    return found
  }
}

const measureNothing: MeasureEvent = () => null
