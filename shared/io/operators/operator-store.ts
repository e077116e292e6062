/** Operators in Postgres. Times come from the caller, so that one clock judges a session. */
import type { Role, TenantScope } from '#shared/core/operators/roles.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

export type Operator = {
  operatorId: string
  email: string
  name: string
  role: Role
  tenants: TenantScope
  totp: boolean
  /** Whether there is a password, and whether an identity of the provider is bound. */
  password: boolean
  oidc: boolean
  disabled: boolean
}

/** An operator as a list shows it. */
export type ListedOperator = Operator & {
  createdAt: Date
  createdBy: string
  lastSignedInAt: Date | null
}

/** What a sign-in is checked against. */
export type OperatorSecrets = {
  /** Null for one who signs in through the identity provider alone. */
  passwordHash: string | null
  /** Sealed; set while TOTP is on or being set up. */
  totpSealed: string | null
}

export type OperatorRow = {
  operator_id: string
  email: string
  name: string
  role: Role
  tenants: string[] | null
  totp_enabled: boolean
  has_password: boolean
  has_subject: boolean
  disabled_at: Date | null
}

/** The columns of `OperatorRow`, of the table `operators` named `o`. */
export const operatorColumns = `o.operator_id, o.email, o.name, o.role, o.tenants, o.totp_enabled,
  o.password_hash is not null as has_password, o.oidc_subject is not null as has_subject,
  o.disabled_at`

export const toOperator = (row: OperatorRow): Operator => ({
  operatorId: row.operator_id,
  email: row.email,
  name: row.name,
  role: row.role,
  tenants: row.tenants ?? 'all',
  totp: row.totp_enabled,
  password: row.has_password,
  oidc: row.has_subject,
  disabled: row.disabled_at !== null,
})

const toColumn = (tenants: TenantScope): readonly string[] | null =>
  tenants === 'all' ? null : tenants

/** Who an operator is at the identity provider. */
export type OidcSubject = { issuer: string; subject: string }

type NewOperator = {
  operatorId: string
  email: string
  name: string
  role: Role
  tenants: TenantScope
  /** One of the two at least. */
  passwordHash: string | null
  subject: OidcSubject | null
  createdBy: string
  nowMs: number
}

/** @returns false when there is an operator of this email */
export async function insertOperator(tx: Queryable, operator: NewOperator): Promise<boolean> {
  const { rowCount } = await tx.query(
    `insert into operators
       (operator_id, email, name, role, tenants, password_hash, oidc_issuer, oidc_subject,
        created_at, created_by)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict (email) do nothing`,
    [
      operator.operatorId,
      operator.email,
      operator.name,
      operator.role,
      toColumn(operator.tenants),
      operator.passwordHash,
      operator.subject?.issuer ?? null,
      operator.subject?.subject ?? null,
      new Date(operator.nowMs),
      operator.createdBy,
    ],
  )
  return rowCount === 1
}

type SecretsRow = OperatorRow & { password_hash: string | null; totp_sealed: string | null }

const toOperatorWithSecrets = (row: SecretsRow): Operator & OperatorSecrets => ({
  ...toOperator(row),
  passwordHash: row.password_hash,
  totpSealed: row.totp_sealed,
})

/** The operator who signs in by this email, with what the sign-in is checked against. */
export async function findOperatorByEmail(
  db: Queryable,
  email: string,
): Promise<(Operator & OperatorSecrets) | null> {
  const { rows } = await db.query<SecretsRow>({
    name: 'find-operator-by-email',
    text: `select ${operatorColumns}, o.password_hash, o.totp_sealed
           from operators o where o.email = $1`,
    values: [email],
  })
  return rows[0] === undefined ? null : toOperatorWithSecrets(rows[0])
}

/** @param options.lock keeps the row until the transaction ends */
export async function findOperator(
  db: Queryable,
  operatorId: string,
  { lock = false }: { lock?: boolean } = {},
): Promise<(Operator & OperatorSecrets) | null> {
  const { rows } = await db.query<SecretsRow>(
    `select ${operatorColumns}, o.password_hash, o.totp_sealed
     from operators o where o.operator_id = $1 ${lock ? 'for update' : ''}`,
    [operatorId],
  )
  return rows[0] === undefined ? null : toOperatorWithSecrets(rows[0])
}

/** The operator that an identity of the provider is bound to; their row is locked. */
export async function lockOperatorOfSubject(
  tx: Queryable,
  { issuer, subject }: OidcSubject,
): Promise<Operator | null> {
  const { rows } = await tx.query<OperatorRow>(
    `select ${operatorColumns} from operators o
     where o.oidc_issuer = $1 and o.oidc_subject = $2 for update`,
    [issuer, subject],
  )
  return rows[0] === undefined ? null : toOperator(rows[0])
}

/** The operator of an email; their row is locked. */
export async function lockOperatorOfEmail(tx: Queryable, email: string): Promise<Operator | null> {
  const { rows } = await tx.query<OperatorRow>(
    `select ${operatorColumns} from operators o where o.email = $1 for update`,
    [email],
  )
  return rows[0] === undefined ? null : toOperator(rows[0])
}

/** Binds an identity of the provider to an operator, or with null takes it away. */
export async function bindSubject(
  tx: Queryable,
  operatorId: string,
  subject: OidcSubject | null,
): Promise<void> {
  await tx.query(
    'update operators set oidc_issuer = $2, oidc_subject = $3 where operator_id = $1',
    [operatorId, subject?.issuer ?? null, subject?.subject ?? null],
  )
}

/** All operators by email. */
export async function listOperators(db: Queryable): Promise<ListedOperator[]> {
  const { rows } = await db.query<
    OperatorRow & { created_at: Date; created_by: string; last_signed_in_at: Date | null }
  >(
    `select ${operatorColumns}, o.created_at, o.created_by, o.last_signed_in_at
     from operators o order by o.email`,
  )
  return rows.map((row) => ({
    ...toOperator(row),
    createdAt: row.created_at,
    createdBy: row.created_by,
    lastSignedInAt: row.last_signed_in_at,
  }))
}

/**
 * Locks an operator, and the active admins of all tenants, so that two changes cannot each remove
 * the last but one. Operators are locked in the order of their ids, as everywhere.
 * @returns the ids of those admins
 */
export async function lockWithActiveAdmins(tx: Queryable, operatorId: string): Promise<string[]> {
  const { rows } = await tx.query<{ operator_id: string; is_admin: boolean }>(
    `with locked as materialized (
       select operator_id, role = 'admin' and tenants is null and disabled_at is null as is_admin
       from operators
       where operator_id = $1 or (role = 'admin' and tenants is null and disabled_at is null)
       order by operator_id for update)
     select operator_id, is_admin from locked`,
    [operatorId],
  )
  return rows.filter((row) => row.is_admin).map((row) => row.operator_id)
}

/** Writes what an admin may change of an operator. */
export async function updateOperator(
  tx: Queryable,
  { operatorId, name, role, tenants, disabled }: Operator,
  nowMs: number,
): Promise<void> {
  await tx.query(
    `update operators set name = $2, role = $3, tenants = $4,
       disabled_at = case when $5 then coalesce(disabled_at, $6) end
     where operator_id = $1`,
    [operatorId, name, role, toColumn(tenants), disabled, new Date(nowMs)],
  )
}

export async function setPasswordHash(
  tx: Queryable,
  operatorId: string,
  passwordHash: string,
): Promise<void> {
  await tx.query('update operators set password_hash = $2 where operator_id = $1', [
    operatorId,
    passwordHash,
  ])
}

export async function noteSignIn(tx: Queryable, operatorId: string, nowMs: number): Promise<void> {
  await tx.query('update operators set last_signed_in_at = $2 where operator_id = $1', [
    operatorId,
    new Date(nowMs),
  ])
}
