/**
 * Android's list of revoked certificates, as Google publishes it:
 * `{"entries":{"SERIAL":{"status":"REVOKED","reason":"KEY_COMPROMISE"}}}`. A serial is lower-case
 * hex without leading zeros, one of digits alone too. Every entry counts, whatever its status: a
 * suspended certificate is no evidence either.
 */
import { z } from 'zod'
import { toListedSerial } from './certificate.ts'

/** What is said of a certificate, by its serial. */
export type StatusList = Pick<ReadonlyMap<string, string>, 'has' | 'get' | 'size'>

const schema = z.object({
  entries: z.record(
    z.string(),
    z.looseObject({ status: z.string(), reason: z.string().optional() }),
  ),
})

/**
 * @param json the published file
 * @returns null when it is no such list
 */
export function parseStatusList(json: string): ReadonlyMap<string, string> | null {
  let document: unknown
  try {
    document = JSON.parse(json)
  } catch {
    return null
  }
  const parsed = schema.safeParse(document)
  if (!parsed.success) return null
  const entries = Object.entries(parsed.data.entries)
  return new Map(
    entries.map(([serial, { status, reason }]) => [
      toListedSerial(serial),
      reason === undefined ? status : `${status}, ${reason}`,
    ]),
  )
}
