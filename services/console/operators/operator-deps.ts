/** What the routes of operators are built from, and what they share. */

import type { Sealer } from '#shared/io/keys/console-keys.ts'
import type { OidcClient } from '#shared/io/operators/oidc-client.ts'
import type { PasswordHasher } from '#shared/io/operators/password-hash.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { RefusalAudit } from '../http/refusal-audit.ts'
import type { AttemptLimits } from './attempt-limits.ts'
import type { KnownTokens } from './known-tokens.ts'
import type { PublicOrigin } from './public-origin.ts'

export type OperatorDeps = {
  postgres: Postgres
  passwords: PasswordHasher
  sealer: Sealer
  /** Cryptographically random bytes. */
  randomBytes: (count: number) => Buffer
  /** The monotonic clock, and the wall clock that sessions are judged by. */
  nowMs: () => number
  wallMs: () => number
  log: Log
  /** The identity provider; null without one. */
  oidc: OidcClient | null
  /** Sign-in by password is switched off: OIDC_ONLY. */
  passwordsOff: boolean
  /** The address that browsers use, PUBLIC_URL. */
  publicUrl: () => string
}

/** One of each per process. */
export type OperatorParts = OperatorDeps & {
  origin: PublicOrigin
  limits: AttemptLimits
  knownTokens: KnownTokens
  refused: RefusalAudit
  /** Called for each sign-in: `signed_in`, or the code of the problem. */
  onSignIn: (outcome: string) => void
}
