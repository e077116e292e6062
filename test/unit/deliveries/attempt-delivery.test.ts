// One delivery attempt with a simulated receiver, database and clock: what counts as an attempt,
// and that an attempt never uses outdated secrets or webhooks.
import { expect, test } from 'vitest'
import { webhookSecretLeaseMs, webhookTimeoutMs } from '#shared/core/base/limits/deliveries.ts'
import { toWebhookKeys, verifyDelivery } from '#shared/core/deliveries/webhook-signing.ts'
import {
  type OutboundAnswer,
  OutboundError,
  StaleConnectionError,
} from '#shared/io/deliveries/outbound/outbound-client.ts'
import { UnsealError } from '#shared/io/keys/sealed-secrets.ts'
import { PostgresUnavailableError } from '#shared/io/postgres/postgres.ts'
import {
  type AttemptDeps,
  attemptDelivery,
  type FreshClaim,
} from '../../../services/delivery/send/attempt-delivery.ts'
import {
  createReadWebhook,
  type FreshWebhook,
} from '../../../services/delivery/send/read-webhook.ts'
import { createFindTarget } from '../../../services/delivery/send/webhook-targets.ts'
import { createStopSignal, type StopSignal } from '../../../services/delivery/stop-signal.ts'

const start = Date.parse('2027-01-01T00:00:00Z')
const url = 'https://receiver.example/hook'
const claimed: FreshClaim = {
  tenantId: 'acme',
  deliveryId: 'dlv_1',
  createdAt: '2027-01-01 00:00:00.000001+00',
  alertId: 'alr_1',
  claim: 'claim-1',
  claimedUntilMs: 30_000,
  event: 'risk.alert',
  body: Buffer.from('{"alert_id":"alr_1"}'),
  traceparent: null,
  attempts: 2,
  attemptsBefore: 0,
  createdAtMs: 0,
  probe: false,
  webhook: {
    environment: 'live',
    suspended: false,
    state: 'on',
    url,
    sealedSecret: 'sealed:old',
    // Expired: these tests change what is read now, not what the claim read.
    signUntilMs: Number.NEGATIVE_INFINITY,
  },
}
const plain = { retryAfter: undefined, location: undefined, fault: null }
const released = (dueAtMs: number) => ({
  tenantId: 'acme',
  deliveryId: 'dlv_1',
  createdAt: '2027-01-01 00:00:00.000001+00',
  alertId: 'alr_1',
  claim: 'claim-1',
  attempt: null,
  next: { state: 'pending', dueAtMs },
})

/** Working dependencies, with the given overrides, and every request that was posted. */
function play(some: Partial<AttemptDeps> = {}) {
  const posted: { headers: Record<string, string>; body: Buffer }[] = []
  const releases: string[] = []
  const world = {
    nowMs: start,
    monotonicMs: 0,
    webhook: {
      environment: 'live',
      suspended: false,
      state: 'on',
      url,
      sealedSecret: 'sealed:one',
    } as Omit<FreshWebhook, 'signUntilMs'>,
    /** Connections, and whether each request required a fresh one. */
    freshRequested: [] as boolean[],
    post: async (): Promise<OutboundAnswer> => ({
      status: 200,
      ...plain,
      body: Buffer.from('ok'),
      address: '93.184.215.14',
    }),
  }
  const deps: AttemptDeps = {
    connect: async (_target, _signal, fresh = false) => {
      world.freshRequested.push(fresh)
      return {
        address: '93.184.215.14',
        post: (body, headers) => {
          posted.push({ headers, body: Buffer.from(body) })
          return world.post()
        },
        release: () => undefined,
      }
    },
    readWebhook: async () => ({
      ...world.webhook,
      signUntilMs: world.monotonicMs + webhookSecretLeaseMs,
    }),
    openKeys: (sealed) => toWebhookKeys(sealed.replace('sealed:', 'whsec_')),
    recordAttempt: () => false,
    findTarget: createFindTarget({ allowPrivate: false }),
    nowMs: () => world.nowMs,
    monotonicMs: () => world.monotonicMs,
    random: () => 0,
    onSend: () => undefined,
    onRedial: () => undefined,
    onRelease: (_claimed, why) => releases.push(why),
    timeoutMs: webhookTimeoutMs,
    ...some,
  }
  const deliver = (one = claimed, stop: StopSignal = createStopSignal()) =>
    attemptDelivery(one, deps, stop)
  return { world, deps, posted, releases, deliver }
}

test('an attempt sends the stored bytes and records its number, times and answer', async () => {
  const { posted, deliver } = play()
  expect(await deliver()).toEqual({
    tenantId: 'acme',
    deliveryId: 'dlv_1',
    createdAt: '2027-01-01 00:00:00.000001+00',
    alertId: 'alr_1',
    claim: 'claim-1',
    attempt: {
      attempt: 3,
      atMs: 0,
      durationMs: 0,
      status: 200,
      errorKind: null,
      error: null,
      address: '93.184.215.14',
      answer: 'ok',
    },
    next: { state: 'delivered' },
    health: { url, ok: true, failure: null, probe: false, openCircuit: false },
  })
  expect(posted).toHaveLength(1)
  expect(posted[0]!.body.equals(claimed.body)).toBe(true)
  expect(posted[0]!.headers).toMatchObject({
    'x-service-attempt': '3',
    'x-service-timestamp': String(start / 1_000),
    'user-agent': 'device-intelligence-webhook/1',
  })
})

test('a secret that was read too long ago never signs; it is read again', async () => {
  const { world, posted, deliver } = play({
    readWebhook: async () => {
      const read = { ...world.webhook, signUntilMs: world.monotonicMs + webhookSecretLeaseMs }
      if (world.webhook.sealedSecret === 'sealed:one') {
        // The process pauses between the read and the signature, and the secret is rotated
        // meanwhile.
        world.monotonicMs += webhookSecretLeaseMs + 1
        world.webhook.sealedSecret = 'sealed:two'
      }
      return read
    },
  })
  expect((await deliver()).next).toEqual({ state: 'delivered' })
  expect(posted).toHaveLength(1)
  const { body, headers } = posted[0]!
  expect(verifyDelivery(body, headers['x-service-signature'], 'whsec_two')).toBe(true)
})

test('a process whose claim expired during a pause sends nothing', async () => {
  const { world, posted, releases, deliver } = play()
  world.monotonicMs = claimed.claimedUntilMs - 14_999
  expect(await deliver()).toEqual(released(world.monotonicMs))
  expect([posted, releases]).toEqual([[], ['claim_too_old']])
})

test('no connection opens before the webhook is read and the claim has time left', async () => {
  const { world, posted, releases, deliver } = play({
    readWebhook: async () => {
      expect(world.freshRequested).toEqual([])
      world.monotonicMs += claimed.claimedUntilMs - webhookTimeoutMs + 1
      return { ...world.webhook, signUntilMs: Number.POSITIVE_INFINITY }
    },
  })
  expect((await deliver()).attempt).toBeNull()
  expect([world.freshRequested, posted, releases]).toEqual([[], [], ['claim_too_old']])
})

test('a closed reused connection costs no attempt: one fresh one is opened', async () => {
  const { world, posted, deliver } = play()
  const { post } = world
  world.post = async () => {
    if (posted.length < 2) throw new StaleConnectionError()
    return post()
  }
  expect((await deliver()).attempt).toMatchObject({ attempt: 3, status: 200 })
  expect(world.freshRequested).toEqual([false, true])
})

test.each([
  ['the URL was changed', { url: 'https://other.example/' }, 'webhook_changed', 0],
  ['the webhook was switched off', { state: 'off' }, 'webhook_changed', 0],
  ['the webhook was paused', { state: 'paused' }, 'waiting', 0],
  ['the tenant was suspended', { suspended: true }, 'waiting', 0],
  ['a rotation is under way', { sealedSecret: null }, 'no_secret', 1_000],
] as const)('nothing is sent, and no attempt counts, when %s', async (_what, change, why, inMs) => {
  const { world, posted, releases, deliver } = play()
  Object.assign(world.webhook, change)
  expect(await deliver()).toEqual(released(inMs))
  expect([posted, releases]).toEqual([[], [why]])
})

test.each([
  [
    'the secret cannot be opened',
    new UnsealError({ tenantId: 'acme', kind: 'webhook' }, 'x'),
    60_000,
  ],
  ['something unforeseen happens', new RangeError('x'), 10_000],
])('nothing is sent, and no attempt counts, when %s', async (_what, error, inMs) => {
  const { posted, deliver } = play({
    openKeys: () => {
      throw error
    },
  })
  expect(await deliver()).toEqual(released(inMs))
  expect(posted).toEqual([])
})

test('an outage of our own database is no failure of the receiver', async () => {
  const { posted, releases, deliver } = play({
    readWebhook: () => Promise.reject(new PostgresUnavailableError(new Error('x'))),
  })
  expect(await deliver()).toEqual(released(0))
  expect([posted, releases]).toEqual([[], ['database']])
  // The wait for our own database does not count against the receiver's timeout.
  const slow = play({
    timeoutMs: 20,
    readWebhook: async () => {
      await new Promise((resolve) => setTimeout(resolve, 60))
      return { ...slow.world.webhook, signUntilMs: 1 }
    },
  })
  expect((await slow.deliver()).next).toEqual({ state: 'delivered' })
})

test('a delivery without a webhook is skipped; a forbidden URL is a failed attempt', async () => {
  const { world, posted, deliver } = play()
  expect((await deliver({ ...claimed, webhook: { ...claimed.webhook, url: null } })).next).toEqual({
    state: 'skipped',
    reason: 'no_webhook',
  })
  const plain = { ...claimed.webhook, url: 'http://receiver.example/hook' }
  expect(await deliver({ ...claimed, webhook: plain })).toMatchObject({
    attempt: { attempt: 3, status: null, errorKind: 'refused_address' },
    next: { state: 'pending', dueAtMs: 120_000 },
  })
  expect([world.freshRequested, posted]).toEqual([[], []])
})

test('a connection error is an attempt with its kind; a shutdown is not', async () => {
  const failing = play({
    connect: () => Promise.reject(new OutboundError('tls', 'TLS failed', '93.184.215.14')),
  })
  expect(await failing.deliver()).toMatchObject({
    attempt: { errorKind: 'tls', error: 'TLS failed', address: '93.184.215.14', answer: null },
  })
  const stop = createStopSignal()
  const stopped = play({
    connect: (_target, signal) => {
      stop.stop()
      return Promise.reject(signal.reason)
    },
  })
  expect(await stopped.deliver(claimed, stop)).toEqual(released(0))
  expect(stopped.releases).toEqual(['stopping'])
})

test('the webhook that the claim read is used only while it is fresh', async () => {
  let reads = 0
  const { world, posted, deliver } = play({
    readWebhook: async () => {
      reads += 1
      return { ...world.webhook, signUntilMs: world.monotonicMs + webhookSecretLeaseMs }
    },
  })
  const fresh = { ...claimed, webhook: { ...claimed.webhook, signUntilMs: webhookSecretLeaseMs } }
  world.monotonicMs = webhookSecretLeaseMs - 1
  await deliver(fresh)
  expect(reads).toBe(0)
  world.monotonicMs += 1
  await deliver(fresh)
  expect(reads).toBe(1)
  const signatures = posted.map(({ headers }) => headers['x-service-signature']!)
  expect(verifyDelivery(claimed.body, signatures[0], 'whsec_old')).toBe(true)
  expect(verifyDelivery(claimed.body, signatures[1], 'whsec_one')).toBe(true)
})

test('a replay continues the attempt numbers and has its full schedule again', async () => {
  const { world, posted, deliver } = play()
  world.post = async () => ({
    status: 500,
    ...plain,
    body: Buffer.from('no'),
    address: '93.184.215.14',
  })
  const replayed = { ...claimed, attempts: 11, attemptsBefore: 11 }
  expect(await deliver(replayed)).toMatchObject({
    attempt: { attempt: 12 },
    next: { state: 'pending', dueAtMs: 5_000 },
    health: { url, ok: false, failure: 'status 500', probe: false, openCircuit: false },
  })
  expect(posted[0]!.headers['x-service-attempt']).toBe('12')
})

test('a test event is attempted once, and its failure does not count for the webhook', async () => {
  const noted: boolean[] = []
  const { world, deliver } = play({ recordAttempt: (_tenant, _url, { ok }) => noted.push(ok) < 0 })
  const test = { ...claimed, event: 'webhook.test', attempts: 0 }
  expect(await deliver(test)).toMatchObject({ next: { state: 'delivered' }, health: { ok: true } })
  world.post = () => Promise.reject(new OutboundError('timeout', 'no answer'))
  const failed = await deliver(test)
  expect(failed.next).toEqual({ state: 'failed', reason: 'exhausted' })
  expect([failed.health, noted]).toEqual([undefined, [true]])
})

test('attempts share a read only if they requested it before it began', async () => {
  const reads: string[][] = []
  const finish: (() => void)[] = []
  let clock = 0
  const read = createReadWebhook({
    read: async (tenantIds) => {
      reads.push([...tenantIds])
      await new Promise<void>((resolve) => finish.push(resolve))
      const webhook = { ...play().world.webhook }
      const found = tenantIds.filter((id) => id !== 'gone').map((id) => [id, webhook] as const)
      return { webhooks: new Map(found), secretLeaseMs: 100 }
    },
    extendLease: async () => undefined,
    monotonicMs: () => clock,
    readsMax: 1,
  })
  const first = read('a')
  clock = 10
  const later = [read('a'), read('b'), read('b'), read('gone')]
  expect(reads).toEqual([['a']])
  finish[0]!()
  expect((await first)!.signUntilMs).toBe(100)
  finish[1]!()
  const webhooks = await Promise.all(later)
  expect(reads).toEqual([['a'], ['a', 'b', 'gone']])
  expect(webhooks.map((webhook) => webhook?.signUntilMs)).toEqual([110, 110, 110, undefined])
})

test.each([50, 51, 99, 150, 2_000, 12_000])(
  'a database that takes %d ms per answer still returns a secret that may sign',
  async (latencyMs) => {
    let clock = 0
    let leaseMs = 100
    const extended: number[] = []
    const read = createReadWebhook({
      read: async (tenantIds) => {
        const secretLeaseMs = leaseMs
        clock += latencyMs
        const webhook = play().world.webhook
        return { webhooks: new Map(tenantIds.map((id) => [id, webhook])), secretLeaseMs }
      },
      extendLease: async (ms) => {
        clock += latencyMs
        extended.push(ms)
        leaseMs = ms
      },
      monotonicMs: () => clock,
    })
    for (let n = 0; n < 3; n++) {
      // Half of the lease is left for signing.
      const left = (await read('a'))!.signUntilMs - clock
      expect(left).toBeGreaterThanOrEqual(Math.min(50, latencyMs))
    }
    expect(extended).toEqual(latencyMs > 50 ? [2 * latencyMs] : [])
  },
)

test('a connection that comes when the time is over makes no negative timer', async () => {
  const warnings: string[] = []
  const onWarning = ({ name }: Error) => warnings.push(name)
  process.on('warning', onWarning)
  const { world, deps } = play()
  const connect: AttemptDeps['connect'] = async (...args) => {
    world.monotonicMs += webhookTimeoutMs + 1
    return deps.connect(...args)
  }
  const held = { ...claimed, claimedUntilMs: Number.POSITIVE_INFINITY }
  await attemptDelivery(held, { ...deps, connect }, createStopSignal())
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', onWarning)
  expect(warnings).toEqual([])
})
