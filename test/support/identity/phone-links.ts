// Rows of `phone_links` as a scorer decides them.
import { toPhoneId } from '#shared/core/identity/phone-id.ts'
import type { LinkKind, PhoneEvidence } from '#shared/core/identity/phone-schemas.ts'
import { type Clickhouse, insertRows, toInstant } from '#shared/io/clickhouse/clickhouse.ts'

export type LinkFact = {
  tenantId: string
  deviceId: string
  /** The first install of the phone; itself, or left out, for a phone of its own. */
  firstDeviceId?: string
  /** The first install of a phone that it may be on. */
  possibleDeviceId?: string
  confidence?: number
  evidence?: readonly PhoneEvidence[]
  identifiersShared?: boolean
  atMs: number
}

const toKind = ({ deviceId, firstDeviceId = deviceId, possibleDeviceId }: LinkFact): LinkKind => {
  if (possibleDeviceId !== undefined) return 'possible'
  return firstDeviceId === deviceId ? 'first' : 'linked'
}

/** Inserts decisions; the offset of each is its time. */
export const insertLinks = (clickhouse: Clickhouse, facts: readonly LinkFact[]): Promise<void> =>
  insertRows(
    clickhouse,
    'phone_links',
    facts.map((fact) => {
      const { tenantId, deviceId, firstDeviceId, possibleDeviceId } = fact
      const kind = toKind(fact)
      return {
        tenant_id: tenantId,
        device_id: deviceId,
        phone_id: toPhoneId(tenantId, firstDeviceId ?? deviceId),
        kind,
        possible_phone_id:
          possibleDeviceId === undefined ? '' : toPhoneId(tenantId, possibleDeviceId),
        possible_confidence: possibleDeviceId === undefined ? 0 : (fact.confidence ?? 0.9),
        confidence: fact.confidence ?? (kind === 'first' ? 1 : 0.9),
        evidence: JSON.stringify(fact.evidence ?? []),
        identifiers_shared: fact.identifiersShared ?? false,
        stream_offset: fact.atMs,
        received_at: toInstant(fact.atMs),
      }
    }),
  )
