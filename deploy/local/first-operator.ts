// The first sign-in to a new console: while there is no operator, each start creates a link with
// which the first administrator chooses a password. It works once, for a day, and is only printed,
// never stored.

import type { ConsoleCall } from './console-call.ts'
import { StartError } from './stack/settings.ts'

/** The email of the first administrator. */
const EMAIL = 'admin@localhost'
const VALID_HOURS = 24

export type FirstSignIn = { url: string; email: string; expiresAt: string }

/**
 * @param tenantId whose overview the link opens; null for the first page
 * @returns null when there is an operator
 */
export async function inviteFirstOperator(
  call: ConsoleCall,
  tenantId: string | null,
): Promise<FirstSignIn | null> {
  const listed = await call('GET', '/operators')
  if ((listed.body as { data?: unknown[] } | null)?.data?.length !== 0) return null
  const invited = await call('POST', '/operators/invitations', {
    email: EMAIL,
    role: 'admin',
    tenants: 'all',
    valid_hours: VALID_HOURS,
  })
  if (invited.status !== 201) {
    throw new StartError(`the first operator could not be invited (HTTP ${invited.status})`)
  }
  const { url, expires_at: expiresAt } = invited.body as { url: string; expires_at: string }
  const shown = tenantId === null ? url : url.replace('#', `?tenant=${tenantId}#`)
  return { url: shown, email: EMAIL, expiresAt }
}
