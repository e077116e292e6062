/** Installs of the simulated phones: each device has a token and a key, as a registration gives. */
import { generateKeyPairSync, sign } from 'node:crypto'
import { installTokenMs } from '#shared/core/base/limits/installs.ts'
import {
  type InstallFacts,
  makeInstallToken,
  toDeviceHash,
  toInstallRoot,
} from '#shared/core/installs/install-token.ts'

/** All phones have one attested key: an edge keeps none, so it does the same for each. */
const attested = generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** The value of `X-Service-Attestation`: the attested key's signature over the body. */
export const signEvidence = (body: string): string =>
  sign('sha256', Buffer.from(body), attested.privateKey).toString('base64')

/** What Android's key attestation leaves in a token, with a chain of three issuers. */
const facts: Omit<InstallFacts, 't' | 'd' | 'iat' | 'exp'> = {
  a: 'com.acme.bank',
  p: 'key_attestation',
  v: 'verified',
  l: 'strongbox',
  r: null,
  k: attested.publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
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
