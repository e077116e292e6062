/**
 * Reads what analysts say of the phone that an install is on, over what the service decided. A
 * correction counts for what is received after it, until it is undone.
 */
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** A correction that counts. */
export type PhoneCorrection = {
  correctionId: string
  deviceId: string
  /** The phone that the service decided. */
  fromPhoneId: string
  /** The phone that it is on; a phone of its own after a split. */
  phoneId: string
}

export type PhoneCorrections = {
  /**
   * The corrections of some installs that counted at an instant, by device id.
   * @param atMs in ms since 1970: the receipt of an event; left out, now
   */
  findCorrections: (
    tenantId: string,
    deviceIds: readonly string[],
    atMs?: number,
  ) => Promise<Map<string, PhoneCorrection>>
  /** The corrections that count now and put an install on one of these phones, or take one off. */
  findCorrectionsOfPhones: (
    tenantId: string,
    phoneIds: readonly string[],
  ) => Promise<PhoneCorrection[]>
}

type CorrectionRow = {
  correction_id: string
  device_id: string
  from_phone_id: string
  phone_id: string
}

const columns = 'correction_id, device_id, from_phone_id, phone_id'

const toCorrection = (row: CorrectionRow): PhoneCorrection => ({
  correctionId: row.correction_id,
  deviceId: row.device_id,
  fromPhoneId: row.from_phone_id,
  phoneId: row.phone_id,
})

// Every correction that puts an install on a phone is one of it, so the latest of each of these
// installs is looked for, and is left out where it is about other phones.
const ofPhonesSql = `
  select ${columns} from (
    select distinct on (device_id) ${columns} from phone_corrections
    where tenant_id = $1 and undone_at is null and device_id in (
      select device_id from phone_corrections
      where tenant_id = $1 and undone_at is null and phone_id = any($2)
      union
      select device_id from phone_corrections
      where tenant_id = $1 and undone_at is null and from_phone_id = any($2)
    )
    order by device_id, at desc
  ) as latest
  where phone_id = any($2) or from_phone_id = any($2)`

/** @throws PostgresUnavailableError from each function */
export function createPhoneCorrections(db: Queryable): PhoneCorrections {
  return {
    findCorrections: async (tenantId, deviceIds, atMs) => {
      if (deviceIds.length === 0) return new Map()
      const { rows } = await db.query<CorrectionRow>({
        name: 'find-phone-corrections',
        text: `select distinct on (device_id) ${columns} from phone_corrections
               where tenant_id = $1 and device_id = any($2)
                 and at < coalesce($3, 'infinity'::timestamptz)
                 and coalesce(undone_at, 'infinity') >= coalesce($3, 'infinity'::timestamptz)
               order by device_id, at desc`,
        values: [tenantId, deviceIds, atMs === undefined ? null : new Date(atMs)],
      })
      return new Map(rows.map((row) => [row.device_id, toCorrection(row)]))
    },
    findCorrectionsOfPhones: async (tenantId, phoneIds) => {
      if (phoneIds.length === 0) return []
      const { rows } = await db.query<CorrectionRow>({
        name: 'find-phone-corrections-of-phones',
        text: ofPhonesSql,
        values: [tenantId, phoneIds],
      })
      return rows.map(toCorrection)
    },
  }
}
