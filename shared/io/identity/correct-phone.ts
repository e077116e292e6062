/**
 * Corrects the phone that an install is on, and undoes a correction. Open cases follow
 * (regroup-cases.ts). A change, its audit row and its cases are one transaction. The audit log is append-only, so of the install it has the SHA-256 alone: an
 * erasure could not remove the id.
 */
import { hash, randomBytes } from 'node:crypto'
import { dayMs } from '#shared/core/base/instants.ts'
import {
  correctionsShownMax,
  phoneCorrectionsMax,
  phoneInstallsShownMax,
  undoneCorrectionsKeptDays,
} from '#shared/core/base/limits/entities.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { toPhoneId } from '#shared/core/identity/phone-id.ts'
import { lockSequences } from '#shared/io/alerts/alert-lock.ts'
import { regroupCases } from '#shared/io/cases/regroup-cases.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import { type Queryable, type Session, toTime } from '#shared/io/postgres/postgres.ts'
import { createPhoneCorrections } from './phone-corrections.ts'

/** A correction as operators see it. Times are ISO-8601. */
export type CorrectionView = {
  correction_id: string
  device_id: string
  from_phone_id: string
  phone_id: string
  kind: 'join' | 'split'
  reason: string
  /** An operator's email, or `admin`. */
  by: string
  at: string
  undone_by: string | null
  undone_at: string | null
  /** Whether it is the one that counts for the install, which an undo takes back. */
  in_force: boolean
}

export type NewCorrection = {
  tenantId: string
  deviceId: string
  /** Null splits: the install becomes a phone of its own. */
  phoneId: string | null
  reason: string
  actor: string
  /** The phone that the author last saw the install on; left out, any. */
  expectedPhoneId?: string | undefined
  /** What the service decided, which never changes. */
  decided: {
    phoneId: string
    /** Installs that the service put on the phone that it is joined to. */
    targetInstalls: number
  }
}

/**
 * Puts an install on another phone.
 * @throws Problem phone_not_found when no install is on the phone to join, phone_changed when the
 *   install is not where the author saw it, conflict when it is on that phone already, the phone
 *   has as many installs as it may, or the tenant as many corrections
 */
export function correctPhone(postgres: Session, wanted: NewCorrection): Promise<CorrectionView> {
  const { tenantId, deviceId, actor, decided } = wanted
  const ownPhoneId = toPhoneId(tenantId, deviceId)
  const phoneId = wanted.phoneId ?? ownPhoneId
  return postgres.transaction(async (tx) => {
    await lockCorrections(tx, tenantId)
    const { findCorrections } = createPhoneCorrections(tx)
    const presentId =
      (await findCorrections(tenantId, [deviceId])).get(deviceId)?.phoneId ?? decided.phoneId
    requireChange(wanted, { presentId, phoneId, ownPhoneId })
    if (wanted.phoneId !== null) await requireRoom(tx, { tenantId, phoneId, decided })
    await requireCorrectionsLeft(tx, tenantId)
    const { rows } = await tx.query<CorrectionRow>(
      `insert into phone_corrections as made
         (correction_id, tenant_id, device_id, from_phone_id, phone_id, reason, actor, at)
       select $1, $2, $3, $4, $5, $6, $7, greatest(clock_timestamp()::timestamptz(3), (
         select max(coalesce(undone_at, at)) + interval '1 ms' from phone_corrections
         where tenant_id = $2 and device_id = $3))
       returning ${columns}, true as in_force`,
      [
        `phc_${randomBytes(16).toString('base64url')}`,
        tenantId,
        deviceId,
        decided.phoneId,
        phoneId,
        wanted.reason,
        actor,
      ],
    )
    const made = toView(tenantId, rows[0]!)
    const action = made.kind === 'split' ? 'phone.split' : 'phone.joined'
    const before = { phone_id: presentId }
    await insertAudit(tx, { actor, tenantId, action, before, after: toAudited(made) })
    await regroupCases(tx, { tenantId, deviceId, fromPhoneId: presentId, phoneId, actor })
    return made
  })
}

/**
 * Undoes a correction: the one before it counts again, or what the service decided.
 * @throws Problem phone_correction_not_found, conflict when it is undone, or a later one counts
 */
export function undoCorrection(
  postgres: Session,
  wanted: { tenantId: string; correctionId: string; actor: string },
): Promise<CorrectionView> {
  const { tenantId, correctionId, actor } = wanted
  return postgres.transaction(async (tx) => {
    await lockCorrections(tx, tenantId)
    const found = await findCorrection(tx, tenantId, correctionId)
    if (found === null) {
      throw new Problem('phone_correction_not_found', 'The tenant has no such correction.')
    }
    if (found.undone_at !== null) {
      throw new Problem('conflict', `${found.undone_by} undid this correction already.`)
    }
    if (!found.in_force) {
      throw new Problem('conflict', 'A later correction of the install counts: undo that first.')
    }
    const { rows } = await tx.query<CorrectionRow>(
      `update phone_corrections set undone_by = $3,
         undone_at = greatest(clock_timestamp()::timestamptz(3), at + interval '1 ms'),
         written_by_xid = pg_current_xact_id()
       where tenant_id = $1 and correction_id = $2 returning ${columns}, false as in_force`,
      [tenantId, correctionId, actor],
    )
    const undone = toView(tenantId, rows[0]!)
    const before = toAudited(undone)
    await insertAudit(tx, { actor, tenantId, action: 'phone.correction_undone', before })
    const { device_id: deviceId, phone_id: fromPhoneId, from_phone_id: decided } = undone
    const { findCorrections } = createPhoneCorrections(tx)
    const present = (await findCorrections(tenantId, [deviceId])).get(deviceId)
    const phoneId = present?.phoneId ?? decided
    await regroupCases(tx, { tenantId, deviceId, fromPhoneId, phoneId, actor })
    return undone
  })
}

type CorrectionRow = Omit<CorrectionView, 'kind' | 'at' | 'undone_at'> & {
  at: Date
  undone_at: Date | null
}

const columns = `correction_id, device_id, from_phone_id, phone_id, reason, actor as by, at,
  undone_by, undone_at`

const toView = (tenantId: string, row: CorrectionRow): CorrectionView => ({
  correction_id: row.correction_id,
  device_id: row.device_id,
  from_phone_id: row.from_phone_id,
  phone_id: row.phone_id,
  kind: row.phone_id === toPhoneId(tenantId, row.device_id) ? 'split' : 'join',
  reason: row.reason,
  by: row.by,
  at: row.at.toISOString(),
  undone_by: row.undone_by,
  undone_at: row.undone_at?.toISOString() ?? null,
  in_force: row.in_force,
})

const toAudited = ({ correction_id, device_id, phone_id }: CorrectionView) => ({
  correction_id,
  device_sha256: hash('sha256', device_id, 'hex'),
  phone_id,
})

/**
 * Lets one correction of a tenant after the other read what counts, and none between the reads and
 * the writes of a raise.
 */
async function lockCorrections(tx: Queryable, tenantId: string): Promise<void> {
  await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`phones:${tenantId}`])
  await lockSequences(tx, [tenantId])
}

type Change = { presentId: string; phoneId: string; ownPhoneId: string }

function requireChange(wanted: NewCorrection, { presentId, phoneId, ownPhoneId }: Change): void {
  const { expectedPhoneId } = wanted
  if (expectedPhoneId !== undefined && expectedPhoneId !== presentId && phoneId !== presentId) {
    throw new Problem('phone_changed', `It is on the phone ${presentId} now.`)
  }
  if (phoneId !== presentId) return
  throw new Problem(
    'conflict',
    phoneId === ownPhoneId && wanted.phoneId === null
      ? 'It is the first install of its phone. Split the others off.'
      : 'It is on this phone already.',
  )
}

async function requireRoom(
  tx: Queryable,
  { tenantId, phoneId, decided }: Pick<NewCorrection, 'tenantId' | 'decided'> & { phoneId: string },
): Promise<void> {
  const { findCorrectionsOfPhones } = createPhoneCorrections(tx)
  const corrections = await findCorrectionsOfPhones(tenantId, [phoneId])
  const added = corrections.filter((one) => one.phoneId === phoneId && one.fromPhoneId !== phoneId)
  const taken = corrections.filter((one) => one.phoneId !== phoneId && one.fromPhoneId === phoneId)
  const installs = decided.targetInstalls + added.length - taken.length
  if (installs === 0) throw new Problem('phone_not_found', 'No install is on this phone.')
  if (installs < phoneInstallsShownMax) return
  throw new Problem(
    'conflict',
    `The phone has ${installs} installs. No more than ${phoneInstallsShownMax} can be joined.`,
  )
}

async function requireCorrectionsLeft(tx: Queryable, tenantId: string): Promise<void> {
  const { rows } = await tx.query<{ count: number }>(
    `select count(*) as count from phone_corrections where tenant_id = $1 and undone_at is null`,
    [tenantId],
  )
  if (rows[0]!.count < phoneCorrectionsMax) return
  throw new Problem(
    'conflict',
    `A tenant has at most ${phoneCorrectionsMax} corrections of phones.`,
  )
}

const isInForce = `(undone_at is null and not exists (
  select from phone_corrections as later
  where later.tenant_id = c.tenant_id and later.device_id = c.device_id and later.at > c.at
    and later.undone_at is null))`

async function findCorrection(
  tx: Queryable,
  tenantId: string,
  correctionId: string,
): Promise<CorrectionView | null> {
  const { rows } = await tx.query<CorrectionRow>(
    `select ${columns}, ${isInForce} as in_force from phone_corrections as c
     where tenant_id = $1 and correction_id = $2`,
    [tenantId, correctionId],
  )
  return rows[0] === undefined ? null : toView(tenantId, rows[0])
}

/**
 * The latest corrections of the installs of a phone, and of those that were on it, undone ones
 * included, newest first.
 * @param deviceIds the installs that it has
 */
export async function listCorrections(
  db: Queryable,
  query: { tenantId: string; phoneId: string; deviceIds: readonly string[] },
): Promise<CorrectionView[]> {
  const { tenantId, phoneId, deviceIds } = query
  const { rows } = await db.query<CorrectionRow>(
    `select ${columns}, ${isInForce} as in_force from phone_corrections as c
     where tenant_id = $1 and (device_id = any($2) or phone_id = $3 or from_phone_id = $3)
     order by at desc, correction_id limit ${correctionsShownMax}`,
    [tenantId, deviceIds, phoneId],
  )
  return rows.map((row) => toView(tenantId, row))
}

/** Removes corrections that were undone long ago. @returns how many */
export async function removeUndoneCorrections(
  db: Queryable,
  nowMs: number,
  most: number,
): Promise<number> {
  const { rowCount } = await db.query(
    `delete from phone_corrections where correction_id in (
       select correction_id from phone_corrections where undone_at < $1
       order by undone_at limit $2 for update skip locked)`,
    [toTime(nowMs - undoneCorrectionsKeptDays * dayMs), most],
  )
  return rowCount
}

/** Removes the corrections of an install. @returns how many */
export async function removeCorrectionsOf(
  db: Queryable,
  { tenantId, deviceId }: { tenantId: string; deviceId: string },
): Promise<number> {
  const { rowCount } = await db.query(
    'delete from phone_corrections where tenant_id = $1 and device_id = $2',
    [tenantId, deviceId],
  )
  return rowCount
}

/** Corrections of an install, undone ones included. */
export async function countCorrectionsOf(
  db: Queryable,
  { tenantId, deviceId }: { tenantId: string; deviceId: string },
): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    'select count(*) as count from phone_corrections where tenant_id = $1 and device_id = $2',
    [tenantId, deviceId],
  )
  return rows[0]!.count
}
