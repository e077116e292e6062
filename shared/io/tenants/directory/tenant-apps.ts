/** The apps of a tenant as an edge has them: who is trusted, and the keys of Play tokens, opened. */
import type { AttestedApp } from '#shared/core/attestation/apps.ts'
import type { PlayKeyTexts } from '#shared/core/attestation/play-keys.ts'
import { decodePlayKeys, toAttestedApp } from '#shared/core/installs/tenant-apps.ts'
import type { TenantEntry } from '#shared/core/tenants/directory-entries.ts'
import type { Opener } from '#shared/io/keys/sealed-secrets.ts'

export type TenantApps = {
  listed: readonly AttestedApp[]
  /** By package. */
  playKeys: ReadonlyMap<string, PlayKeyTexts>
}

export const noApps: TenantApps = { listed: [], playKeys: new Map() }

/** @param onFault called for keys that cannot be opened; the app itself stays */
export function openApps(
  { tenant_id: tenantId, apps }: Pick<TenantEntry, 'tenant_id' | 'apps'>,
  opener: Opener,
  onFault: () => void,
): TenantApps {
  if (apps === undefined) return noApps
  const playKeys = new Map<string, PlayKeyTexts>()
  for (const app of apps) {
    if (app.platform !== 'android' || app.play_keys_sealed === undefined) continue
    const keys = unsealKeys(app.id, app.play_keys_sealed, { tenantId, opener })
    if (keys === null) onFault()
    else playKeys.set(app.id, keys)
  }
  return { listed: apps.map(toAttestedApp), playKeys }
}

/** @returns null when they were not sealed for this tenant and app under a configured key */
export function unsealKeys(
  app: string,
  sealed: string,
  { tenantId, opener }: { tenantId: string; opener: Opener },
): PlayKeyTexts | null {
  try {
    return decodePlayKeys(app, opener.unseal(sealed, { tenantId, kind: 'play' }))
  } catch {
    return null
  }
}
