/**
 * What people do after the state that a store is put back to, and must stay done: a rotation, a new
 * tenant, an erasure.
 */
import {
  admin,
  createTenant,
  ingest,
  read,
  type Tenant,
  toBody,
} from '../../support/http/tenant-client.ts'
import type { StackFacts } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'
import { signalsOf } from '../../support/telemetry/accepted-events.ts'

/** A store that is put back. */
export type Store = 'postgres' | 'clickhouse' | 'jetstream'

export type Changes = { old: Tenant; rotated: Tenant; later: Tenant }

const erasedPhone = 'erased-phone'
/** Sessions of it before its erasure. */
const erasedSessions = ['before', 'undecided']
/** No receiver is needed: what counts is whether deliveries may be signed at all. */
const webhookUrl = 'http://127.0.0.1:1024/'
const settleLimitMs = 60_000

const send = async (stack: StackFacts, tenant: Tenant, session: string): Promise<number> => {
  const { tenant_id: id, hmac_secret: secret } = tenant
  const body = toBody(id, { device: erasedPhone, session, signals: signalsOf.BLOCK })
  return (await ingest(stack, secret, body)).status
}

/** The sessions in the history of the device. */
async function listSessions(stack: StackFacts, { public_api_key: key }: Tenant): Promise<string[]> {
  const path = `/v1/di/devices/${erasedPhone}`
  const { body } = await read<{ sessions?: { session_id: string }[] }>(stack, key, path)
  return (body.sessions ?? []).map(({ session_id: id }) => id)
}

const findPhone = async (stack: StackFacts, { public_api_key: key }: Tenant): Promise<number> =>
  (await read(stack, key, `/v1/di/devices/${erasedPhone}`)).status

/** Before the state: a tenant with a device. */
export async function prepareChanges(stack: StackFacts): Promise<Tenant> {
  const tenant = await createTenant(stack, 'rotated', webhookUrl)
  await send(stack, tenant, 'before')
  await until('the device is there', async () => (await findPhone(stack, tenant)) === 200)
  return tenant
}

/** Sends an event of the device while the scorer is stopped, so that it stays undecided. */
export async function sendUndecided(stack: StackFacts, tenant: Tenant): Promise<void> {
  const status = await send(stack, tenant, 'undecided')
  if (status !== 200) throw new Error(`the event was answered ${status}`)
}

/** Waits until that event is decided. */
export async function awaitUndecided(stack: StackFacts, tenant: Tenant): Promise<void> {
  await until('the event that was not decided is there', async () =>
    (await listSessions(stack, tenant)).includes('undecided'),
  )
}

/** Waits until a console has found that an erased device is there again. */
export async function awaitRevived({ internal }: StackFacts): Promise<void> {
  await until(
    'the erased device is erased again',
    async () => {
      const text = await (await fetch(`${internal.console}/metrics`)).text()
      return /^di_revived_total\{.*kind="erasure".*\} [1-9]/m.test(text)
    },
    2 * settleLimitMs,
  )
}

/** After the state. */
export async function makeChanges(stack: StackFacts, old: Tenant): Promise<Changes> {
  const path = `/tenants/${old.tenant_id}`
  const wanted = { hmac: true, webhook: true, api_key: true }
  const rotated = {
    ...old,
    ...(await admin<Partial<Tenant>>(stack, 'POST', `${path}/rotate`, wanted)),
  }
  await admin(stack, 'POST', `${path}/erasures`, { device_id: erasedPhone })
  return { old, rotated, later: await createTenant(stack, 'later') }
}

type Recovery = Record<'tenants' | 'api_keys' | 'webhooks' | 'erasures', unknown[]> & {
  digest: string
}

/** As an administrator does after Postgres was put back: looks, and confirms what is shown. */
async function recover(stack: StackFacts): Promise<void> {
  let confirmed = 0
  await until(
    'what Postgres has forgotten is recovered',
    async () => {
      const { digest, ...lists } = await admin<Recovery>(stack, 'GET', '/recovery')
      if (Object.values(lists).every((list) => list.length === 0)) return confirmed > 0
      await admin(stack, 'POST', '/recovery', { digest })
      confirmed++
      return false
    },
    settleLimitMs,
  )
}

/**
 * @param store the one that was put back
 * @returns which of them are not as they must be
 */
export async function findUndone(
  stack: StackFacts,
  changes: Changes,
  store: Store,
): Promise<string[]> {
  const { old, rotated, later } = changes
  const wrong: string[] = []
  const expect = async (what: string, holds: () => Promise<boolean>) => {
    const check = () => holds().catch(() => false)
    await until(what, check, settleLimitMs).catch(() => wrong.push(what))
  }
  // At once, and for as long as the rest is checked: no edge ever accepts it again.
  if ((await send(stack, old, 'old')) === 200) wrong.push('the replaced secret is refused')
  if (store === 'postgres') await recover(stack)
  await expect('the new secret is accepted', async () => {
    return (await send(stack, rotated, 'new')) === 200
  })
  await expect('a tenant that was created later is accepted', async () => {
    return (await send(stack, later, 'later')) === 200
  })
  await expect('the replaced key is refused', async () => (await findPhone(stack, old)) === 401)
  const path = `/tenants/${old.tenant_id}`
  // Postgres has the replaced webhook secret again: nothing is signed with it.
  const state = store === 'postgres' ? 'paused' : 'on'
  await expect(`the webhook is ${state}`, async () => {
    const { webhook_state: found } = await admin<{ webhook_state: string }>(stack, 'GET', path)
    return found === state
  })
  const made = await admin<Partial<Tenant>>(stack, 'POST', `${path}/rotate`, { api_key: true })
  const found = () => listSessions(stack, { ...rotated, ...made })
  await expect('the erased history is gone', async () => {
    return !(await found()).some((session) => erasedSessions.includes(session))
  })
  if ((await send(stack, old, 'old again')) === 200) wrong.push('the replaced secret stays dead')
  return wrong
}
