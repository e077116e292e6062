// An install as a client is one: it asks for a challenge, registers, and signs with its own key.

import { telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import { signBody } from '#shared/core/telemetry/signature.ts'
import type { TenantEntry } from '#shared/core/tenants/directory-entries.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { type Answer, send } from '../telemetry/edge-rig.ts'
import { rootBytes } from './install-roots.ts'

/** The roots of a tenant's entry: of each epoch the root of that byte, or of another one. */
export function sealRoots(
  sealer: Sealer,
  tenantId: string,
  ...roots: (number | { epoch: number; byte: number })[]
): NonNullable<TenantEntry['install_roots']> {
  return roots.map((root) => {
    const { epoch, byte } = typeof root === 'number' ? { epoch: root, byte: root } : root
    const bytes = rootBytes(byte).toString('base64')
    return { epoch, sealed: sealer.seal(bytes, { tenantId, kind: 'install_root' }) }
  })
}

export type Install = { tenantId: string; deviceId: string; token: string; key: string }
type Signer = { tenantId: string; secret: string }

export const installsPath = '/v1/rasp/installs'

export async function fetchChallenge(edge: { url: string }): Promise<string> {
  const response = await fetch(`${edge.url}/v1/rasp/challenge`)
  return ((await response.json()) as { challenge: string }).challenge
}

/** The body of a registration without evidence. */
export async function registrationOf(
  edge: { url: string },
  { tenantId }: { tenantId: string },
  more: Record<string, unknown> = {},
): Promise<Record<string, unknown>> {
  return {
    tenant_id: tenantId,
    device_id: 'pixel-1',
    challenge: await fetchChallenge(edge),
    app: { platform: 'android', id: 'com.acme.bank' },
    evidence: { provider: 'none' },
    ...more,
  }
}

/** Sends the body of a registration, signed with the tenant's secret. */
export const sendRegistration = (
  edge: { url: string },
  { secret }: Signer,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> => send(edge, JSON.stringify(body), { secret, path: installsPath, headers })

/** Registers an install. @throws when it is refused */
export async function register(
  edge: { url: string },
  tenant: Signer,
  deviceId = 'pixel-1',
): Promise<Install> {
  const body = await registrationOf(edge, tenant, { device_id: deviceId })
  const answer = await sendRegistration(edge, tenant, body)
  if (answer.status !== 200) throw new Error(`registering got ${JSON.stringify(answer.body)}`)
  const { install_token: token, install_key: key } = answer.body as Record<string, string>
  return { tenantId: tenant.tenantId, deviceId, token: token!, key: key! }
}

/** Sends a body with a token, signed with a key. @param more further headers */
export const sendWithToken = (
  edge: { url: string },
  body: string,
  { token, key }: { token: string; key: string },
  more: Record<string, string> = {},
): Promise<Answer> =>
  send(edge, body, {
    headers: { 'x-service-install': token, 'x-service-signature': signBody(body, key), ...more },
  })

/** Every element of the stream as its header and body, events and registrations. */
export async function readElements(nats: Nats): Promise<Record<string, unknown>[]> {
  const { state } = await nats.manager.streams.info(telemetryStream)
  const elements: Record<string, unknown>[] = []
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const { data } = await nats.manager.streams.getMessage(telemetryStream, { seq })
    elements.push(...(JSON.parse(Buffer.from(data).toString()) as Record<string, unknown>[]))
  }
  return elements
}

/** The registrations among them. */
export const readRegistrations = async (nats: Nats): Promise<Record<string, unknown>[]> =>
  (await readElements(nats)).filter((element) => element.registration === true)
