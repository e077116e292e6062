/** Checks and hashes a new password. */
import { Problem } from '#shared/core/http/problem.ts'
import { findPasswordFault } from '#shared/core/operators/password-rules.ts'
import { tooMany } from './attempt-limits.ts'
import { loadCommonPasswords } from './common-passwords.ts'
import type { OperatorParts } from './operator-deps.ts'

/**
 * @returns the hash to store
 * @throws Problem invalid_body, which says what is wrong with the password; rate_limited while too
 *   many hashes are computed
 */
export async function hashNewPassword(
  { passwords }: OperatorParts,
  { password, email, name }: { password: string; email: string; name: string },
): Promise<string> {
  const isCommon = await loadCommonPasswords()
  const fault = findPasswordFault(password, { email, name, isCommon })
  if (fault !== null) {
    const errors = [{ path: '$.password', message: fault }]
    throw new Problem('invalid_body', `The password ${fault}.`, { errors })
  }
  const hash = await passwords.hash(password)
  if (hash === null) throw tooMany(5)
  return hash
}
