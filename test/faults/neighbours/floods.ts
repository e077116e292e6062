/** What one tenant floods with: events that differ in nothing that the service keys work by. */
import { registerInstall } from '#shared/client/client.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { readTestKeys } from '../../../deploy/fleet/installs/test-keys.ts'
import { testKeysPath } from '../../../deploy/local/test-roots.ts'
import { createAndroidKeystore } from '../../support/attestation/android-keystore.ts'
import { testSigner } from '../../support/attestation/make-android-chain.ts'
import { admin, type Submission, type Tenant, toBody } from '../../support/http/tenant-client.ts'
import type { TestStack } from '../../support/process/stack.ts'

/** One submission, the secret that signs it, and the install's token where it has one. */
export type FloodEvent = { body: string; secret: string; headers?: Record<string, string> }

export type Flood = {
  /** Prepares the tenant, before anything is measured. @returns its events */
  prepare: (running: TestStack, tenant: Tenant, events: number) => Promise<FloodEvent[]>
}

const identifierNames = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
/** A phone with as many identifiers as there can be; those of one name are equal. */
const toDevice = (phone: string) => ({
  identifiers: Object.fromEntries(identifierNames.map((name) => [name, `${name}-${phone}`])),
  os_version: '16',
  brand: 'Maker',
  model: phone,
  build: 'B1',
  screen: '1080x2400',
  storage_bytes: 128e9,
  memory_bytes: 8e9,
  locale: 'de-DE',
  time_zone: 'Europe/Berlin',
})

const toEvents = (tenant: Tenant, events: number, toSubmission: (n: number) => Submission) =>
  Array.from({ length: events }, (_, n) => ({
    body: toBody(tenant.tenant_id, {
      device: `flood-${n}`,
      session: `flood-${n}`,
      ...toSubmission(n),
    }),
    secret: tenant.hmac_secret,
  }))

const toInstalls =
  (toPhone: (n: number) => string): Flood['prepare'] =>
  async (_running, tenant, events) =>
    toEvents(tenant, events, (n) => ({
      user: toPhone(n),
      extra: { account_id: `account-${toPhone(n)}`, device: toDevice(toPhone(n)) },
    }))

/** What the others are to be compared with: as many events that tell as much, of as many phones. */
export const allDifferent = 'all different'

const equalUsers: Flood = {
  prepare: async (_running, tenant, events) =>
    toEvents(tenant, events, () => ({ user: 'equal', extra: { account_id: 'equal' } })),
}

/** Rules on networks are in no preset. */
const oneNetwork: Flood = {
  prepare: async ({ stack }, tenant, events) => {
    const of = `/tenants/${tenant.tenant_id}`
    await admin(stack, 'PUT', `${of}/client-address`, { client_address: 'body' })
    const rule = (metric: string) => ({ metric, windowSeconds: 3_600, threshold: 20, weight: 30 })
    const velocity = [rule('devices_per_network'), rule('users_per_network')]
    await admin(stack, 'PUT', `${of}/policy`, {
      ...defaultPolicy,
      velocity: [...defaultPolicy.velocity, ...velocity],
    })
    return toEvents(tenant, events, (n) => ({
      user: `user-${n}`,
      extra: { client_ip: '81.2.69.142' },
    }))
  },
}

/** How many installs register at once. */
const registeringMax = 16

const oneAttestedKey: Flood = {
  prepare: async ({ stack, dataDir }, tenant, events) => {
    const app = { platform: 'android', id: 'com.example.bank' } as const
    const signers = [testSigner.toString('hex')]
    await admin(stack, 'PUT', `/tenants/${tenant.tenant_id}/apps`, { ...app, signers })
    const { android: root } = readTestKeys(testKeysPath(dataDir))
    const bare = toEvents(tenant, events, (n) => ({ user: `user-${n}` }))
    const register = async (deviceId: string) => {
      const { installToken, installKey } = await registerInstall({
        ingestUrl: stack.ingest,
        tenantId: tenant.tenant_id,
        deviceId,
        app,
        hmacSecret: tenant.hmac_secret,
        getEvidence: (challenge) => {
          // The same seed makes the same key again, for another challenge.
          const from = { root, from: 'rkp', deviceId: 'one', seed: 1, nowMs: Date.now } as const
          const keystore = createAndroidKeystore({ ...from, packageName: app.id })
          const { chain } = keystore.attestKey(Buffer.from(challenge, 'base64url'))
          const encoded = chain.map((der) => der.toString('base64'))
          return { provider: 'key_attestation', chain: encoded }
        },
      })
      return { secret: installKey, headers: { 'x-service-install': installToken } }
    }
    const all: FloodEvent[] = []
    for (let at = 0; at < events; at += registeringMax) {
      const some = bare.slice(at, at + registeringMax)
      const installs = await Promise.all(some.map((_, n) => register(`flood-${at + n}`)))
      all.push(...some.map(({ body }, n) => ({ body, ...installs[n]! })))
    }
    return all
  },
}

export const floods = {
  [allDifferent]: { prepare: toInstalls((n) => `phone-${n}`) },
  'equal installs': { prepare: toInstalls(() => 'equal') },
  'equal users': equalUsers,
  'one network': oneNetwork,
  'one attested key': oneAttestedKey,
} as const satisfies Record<string, Flood>
