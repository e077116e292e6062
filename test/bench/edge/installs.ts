/** Installs of the simulated phones: each device has a token and a key, as a registration gives. */
import { installTokenMs } from '#shared/core/base/limits/installs.ts'
import {
  type InstallFacts,
  makeInstallToken,
  toDeviceHash,
  toInstallRoot,
} from '#shared/core/installs/install-token.ts'

/** What Android's key attestation leaves in a token, with a chain of three issuers. */
const facts: Omit<InstallFacts, 't' | 'd' | 'iat' | 'exp'> = {
  a: 'com.acme.bank',
  p: 'key_attestation',
  v: 'verified',
  l: 'strongbox',
  r: null,
  k: 'A'.repeat(124),
  s: ['a', 'b', 'c'].map((letter) => letter.repeat(22)),
  f: { verified: true, hardware_backed: true, os_patch_age_days: 41 },
}

/** @returns the install of the device that a body names */
export function createInstalls(
  tenantId: string,
  { epoch, bytes }: { epoch: number; bytes: string },
): (body: string) => { token: string; key: string } {
  const root = toInstallRoot(epoch, Buffer.from(bytes, 'base64'))
  const installs = new Map<string, { token: string; key: string }>()
  return (body) => {
    const [, deviceId = ''] = /"device_id":"([^"]+)"/.exec(body) ?? []
    let install = installs.get(deviceId)
    if (install === undefined) {
      const times = { iat: Date.now(), exp: Date.now() + installTokenMs }
      install = makeInstallToken(root, {
        ...facts,
        ...times,
        t: tenantId,
        d: toDeviceHash(deviceId),
      })
      installs.set(deviceId, install)
    }
    return install
  }
}
