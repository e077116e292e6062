/** The second factor of an operator: setting TOTP up and using a code, each code once. */
import { Problem } from '#shared/core/http/problem.ts'
import {
  hashRecoveryCode,
  recoveryCodeBytes,
  recoveryCodes,
  toRecoveryCode,
} from '#shared/core/operators/operator-credentials.ts'
import {
  findOperator,
  type Operator,
  type OperatorSecrets,
} from '#shared/io/operators/operator-store.ts'
import { findRequiredSince } from '#shared/io/operators/second-factor-rule-store.ts'
import {
  enableTotp,
  removeTotp,
  setPendingTotp,
  setRecoveryCodes,
  useRecoveryCode,
  useTotpStep,
} from '#shared/io/operators/second-factor-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { OperatorPrincipal } from '../../http/admin-app.ts'
import type { OperatorParts } from '../operator-deps.ts'
import { findTotpStep, isTotpCode, toTotpSetup, totpSecretBytes } from './totp.ts'

const requiredDetail =
  'A second factor is required of you. For another phone or app, an administrator makes a link for ' +
  'a new password (Operators, or di operators reset EMAIL): its use switches TOTP off, and you set ' +
  'it up again.'

type WithSecrets = Operator & OperatorSecrets

/**
 * Uses a code of the authenticator app, or a recovery code. Call it with the operator's row locked.
 * @returns false when it is wrong or was used
 */
export async function useCode(
  { sealer, wallMs }: OperatorParts,
  tx: Queryable,
  { operator, code }: { operator: WithSecrets; code: string },
): Promise<boolean> {
  const { operatorId, totpSealed, email } = operator
  if (isTotpCode(code)) {
    if (totpSealed === null) return false
    const secret = sealer.unseal(totpSealed, { operatorId, kind: 'totp' })
    const step = findTotpStep(secret, code, wallMs())
    return step !== null && useTotpStep(tx, operatorId, step)
  }
  const codeHash = hashRecoveryCode(code)
  if (!(await useRecoveryCode(tx, operatorId, { codeHash, nowMs: wallMs() }))) return false
  const action = 'operator.recovery_code_used'
  await insertAudit(tx, { actor: email, tenantId: null, action })
  return true
}

/**
 * Makes a secret for an authenticator app; it is in force once a code of it was confirmed.
 * @throws Problem conflict while TOTP is on
 */
export async function startTotp(
  { postgres, sealer, randomBytes }: OperatorParts,
  { operator: { operatorId, email } }: OperatorPrincipal,
): Promise<{ secret: string; otpauth_url: string }> {
  const { secret, url } = toTotpSetup(randomBytes(totpSecretBytes), email)
  await postgres.transaction(async (tx) => {
    const operator = await findOperator(tx, operatorId, { lock: true })
    if (operator?.totp !== false) throw new Problem('conflict', 'TOTP is on: switch it off first.')
    await setPendingTotp(tx, operatorId, sealer.seal(secret, { operatorId, kind: 'totp' }))
  })
  return { secret, otpauth_url: url }
}

/**
 * Switches TOTP on by a first code.
 * @returns the recovery codes, shown this once
 * @throws Problem conflict when it is on or was not set up; step_up_refused for a wrong code
 */
export async function confirmTotp(
  parts: OperatorParts,
  { operator: { operatorId, email } }: OperatorPrincipal,
  { code, address }: { code: string; address: string },
): Promise<{ recovery_codes: string[] }> {
  const { postgres, randomBytes, limits } = parts
  const attempt = limits.beginSignedIn({ operatorId, address })
  const codes = Array.from({ length: recoveryCodes }, () =>
    toRecoveryCode(randomBytes(recoveryCodeBytes)),
  )
  await postgres.transaction(async (tx) => {
    const operator = await findOperator(tx, operatorId, { lock: true })
    if (operator === null || operator.totp || operator.totpSealed === null) {
      throw new Problem('conflict', 'There is no TOTP secret that waits to be confirmed.')
    }
    const right = isTotpCode(code) && (await useCode(parts, tx, { operator, code }))
    if (!right) throw new Problem('step_up_refused', 'The code is wrong.')
    await enableTotp(tx, operatorId)
    await setRecoveryCodes(tx, operatorId, codes.map(hashRecoveryCode))
    await insertAudit(tx, { actor: email, tenantId: null, action: 'operator.totp_switched_on' })
  })
  attempt.succeeded()
  return { recovery_codes: codes }
}

/**
 * Switches TOTP off; doing it again changes nothing.
 * @throws Problem conflict while it is required of the operator, who has a password to sign in with
 */
export async function switchTotpOff(
  { postgres }: OperatorParts,
  { operator: { operatorId, email } }: OperatorPrincipal,
): Promise<void> {
  await postgres.transaction(async (tx) => {
    const operator = await findOperator(tx, operatorId, { lock: true })
    if (operator?.totp && operator.password && (await findRequiredSince(tx, operatorId)) !== null) {
      throw new Problem('conflict', requiredDetail)
    }
    await removeTotp(tx, operatorId)
    if (operator?.totp !== true) return
    await insertAudit(tx, { actor: email, tenantId: null, action: 'operator.totp_switched_off' })
  })
}
