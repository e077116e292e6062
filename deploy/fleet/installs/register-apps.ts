/** Tells the console which apps the tenant has, so that evidence of them is known. */
import { testSigner } from '../../../test/support/attestation/make-android-chain.ts'
import { toConsoleKeys } from '../../../test/support/attestation/play-integrity.ts'
import type { FleetContext } from '../fleet-context.ts'
import { androidApp, iosApp, type TestKeys } from './cast.ts'

export async function registerApps(
  context: FleetContext,
  tenantId: string,
  { play }: TestKeys,
): Promise<void> {
  const path = `/tenants/${encodeURIComponent(tenantId)}/apps`
  const { decryption_key, verification_key } = toConsoleKeys(play)
  await context.adminFetch('POST', path, {
    ...androidApp,
    signers: [testSigner.toString('hex')],
    play_decryption_key: decryption_key,
    play_verification_key: verification_key,
  })
  await context.adminFetch('POST', path, { ...iosApp, allows_development: false })
}
