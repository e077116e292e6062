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
  await context.adminFetch('PUT', path, {
    ...androidApp,
    signers: [testSigner.toString('hex')],
    play_keys: toConsoleKeys(play),
  })
  await context.adminFetch('PUT', path, { ...iosApp, development: false })
}
