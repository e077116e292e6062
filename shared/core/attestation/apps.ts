/** The apps of a tenant, and whether evidence comes from one of them. */
import { Refusal } from './reasons.ts'

export type AndroidApp = {
  platform: 'android'
  /** Package. */
  id: string
  /** SHA-256 of the certificates that may have signed it, in lower-case hex. */
  signers: readonly string[]
}

export type AppleApp = {
  platform: 'ios'
  /** Bundle id. */
  id: string
  team: string
  /** Keys of App Attest's development environment count too. */
  allowsDevelopment: boolean
}

export type AttestedApp = AndroidApp | AppleApp

/**
 * Finds the app of a package that these certificates signed. Packages that share a user id are
 * named together and have the same signers; each signer must be one of the app's.
 * @param signers SHA-256 digests
 * @throws Refusal `app_unknown` or `app_signer_unknown`
 */
export function findAndroidApp(
  apps: readonly AttestedApp[],
  packages: readonly string[],
  signers: readonly Uint8Array[],
): AndroidApp {
  const known = apps.filter((app) => app.platform === 'android' && packages.includes(app.id))
  if (known.length === 0) {
    throw new Refusal('app_unknown', `${packages.join(', ') || 'no package'} is not on the list`)
  }
  const digests = signers.map((digest) => Buffer.from(digest).toString('hex'))
  const app = known.find(
    (candidate): candidate is AndroidApp =>
      candidate.platform === 'android' &&
      digests.length > 0 &&
      digests.every((digest) => candidate.signers.includes(digest)),
  )
  if (app !== undefined) return app
  const found = digests.join(', ') || 'no one'
  throw new Refusal('app_signer_unknown', `${packages.join(', ')} was signed by ${found}`)
}

/** @returns the app whose `TEAM.BUNDLE` has this hash */
export function findAppleApp(
  apps: readonly AttestedApp[],
  appIdHash: Uint8Array,
  toHash: (text: string) => Uint8Array,
): AppleApp | null {
  const isThis = (app: AttestedApp): app is AppleApp =>
    app.platform === 'ios' && Buffer.from(toHash(`${app.team}.${app.id}`)).equals(appIdHash)
  return apps.find(isThis) ?? null
}
