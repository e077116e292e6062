/**
 * Quotas at the edge: a tenant over its rate in bytes, or with too many undecided bytes in the
 * stream, gets a 429; other tenants are not affected.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { ingestBytesMin, refusalDelayMs } from '#shared/core/base/limits/ingest.ts'
import {
  tenantUndecidedBytesMin,
  undecidedRetryAfterSeconds,
} from '#shared/core/base/limits/stream.ts'
import {
  deciderConsumer,
  scorerConsumer,
  telemetryStream,
} from '#shared/core/telemetry/nats-names.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { until } from '../../support/process/until.ts'
import {
  type Answer,
  bodyOf,
  type EdgeRig,
  send,
  startEdgeRig,
  type TestEdge,
  type TestTenant,
} from '../../support/telemetry/edge-rig.ts'

const mb = 1024 ** 2
const streamBytes = 16 * mb
let rig: EdgeRig
const open: TestEdge[] = []

beforeAll(async () => {
  rig = await startEdgeRig()
  await ensureStreams({ ...rig.nats, telemetryBytesMax: streamBytes })
})
afterEach(async () => {
  await Promise.all(open.splice(0).map((edge) => edge.close()))
  await decideAll()
})
afterAll(() => rig?.stop())

async function startEdge(): Promise<TestEdge> {
  const edge = await rig.startEdge()
  open.push(edge)
  return edge
}

/** Stores, decides and trims everything in the stream. */
async function decideAll(): Promise<void> {
  await rig.nats.manager.streams.purge(telemetryStream)
  for (const durable of [scorerConsumer, deciderConsumer]) {
    await rig.nats.manager.consumers.delete(telemetryStream, durable)
  }
  await ensureStreams(rig.nats)
}

type Change = Parameters<EdgeRig['projectTenant']>[1]

async function addTenant(edges: TestEdge[], tenantId: string, change: Change) {
  const tenant = await rig.projectTenant(tenantId, change)
  await until('the edges know the tenant', () =>
    edges.every((edge) => edge.directory.revision() >= tenant.revision),
  )
  return tenant
}

let count = 0
/** @param bytes of padding */
const post = (edge: TestEdge, tenant: TestTenant, bytes: number) => {
  const more = { device_id: `d-${++count}`, padding: 'x'.repeat(bytes) }
  return send(edge, bodyOf(tenant.tenantId, more), { secret: tenant.secret })
}

/**
 * Posts until a rejection, eight at a time. @returns the number of accepted ones, and the rejection
 */
async function postUntilRefused(edge: TestEdge, tenant: TestTenant, bytes: number, most: number) {
  let accepted = 0
  for (;;) {
    const answers = await Promise.all(Array.from({ length: 8 }, () => post(edge, tenant, bytes)))
    accepted += answers.filter(({ status }) => status === 200).length
    const refusal = answers.find(({ status }) => status !== 200)
    if (refusal !== undefined) return { accepted, refusal }
    if (accepted > most) throw new Error(`${accepted} were accepted`)
  }
}

function expectLimited(answer: Answer, detail: string): void {
  expect(answer.status).toBe(429)
  expect(answer.body).toMatchObject({ code: 'rate_limited', detail })
}

const byteDetail = 'The tenant sends more bytes than its rate.'
const undecidedDetail = 'Too much of what the tenant has sent waits to be processed.'

describe('a rate in bytes', () => {
  it('is enforced per tenant: only the tenant over it gets 429', async () => {
    const edge = await startEdge()
    const ingest_bytes = { perSecond: 2_000, burst: 500_000 }
    const flood = await addTenant([edge], 'flood', { ingest_bytes })
    const other = await addTenant([edge], 'other', { ingest_bytes: null })
    expect(edge.directory.find('other')!.byteLimiter).toBeNull()
    const { accepted, refusal } = await postUntilRefused(edge, flood, 60_000, 20)
    expectLimited(refusal, byteDetail)
    expect(Number(refusal.headers.get('retry-after'))).toBeGreaterThan(10)
    expect(accepted).toBe(8)
    expect((await post(edge, other, 1_000)).status).toBe(200)
    expect(
      await edge.count('di_ingest_limited_total', { tenant: 'flood', limit: 'byte_rate' }),
    ).toBeGreaterThan(0)
    expect(await edge.count('di_ingest_limited_total', { tenant: 'other' })).toBe(0)
    await until('it may send again', async () => (await post(edge, flood, 1_000)).status === 200)
  })

  it('delays its rejections by a moment, so that an immediate retry costs little', async () => {
    const edge = await startEdge()
    const eager = await addTenant([edge], 'eager', {
      ingest_bytes: { perSecond: 1, burst: 65_536 },
    })
    const other = await addTenant([edge], 'other', {})
    await postUntilRefused(edge, eager, 60_000, 8)
    const begunMs = performance.now()
    const refused = post(edge, eager, 60_000)
    await until('it is held', async () => (await edge.count('di_ingest_delayed_refusals')) === 1)
    expect((await post(edge, other, 1_000)).status).toBe(200)
    expect((await refused).status).toBe(429)
    expect(performance.now() - begunMs).toBeGreaterThan(0.9 * refusalDelayMs)
  })

  it('may be set per tenant, and counts a small body as 1 KiB', async () => {
    const edge = await startEdge()
    const ingest_bytes = { perSecond: 1, burst: 10 * ingestBytesMin }
    const small = await addTenant([edge], 'small', { ingest_bytes })
    const answers: Answer[] = []
    for (let n = 0; n < 11; n++) answers.push(await post(edge, small, 0))
    expect(answers.map(({ status }) => status)).toEqual([...Array(10).fill(200), 429])
    // 1,024 bytes refill at one per second; the wait is bounded.
    expect(answers[10]!.headers.get('retry-after')).toBe('1024')
  })
})

describe('the undecided bytes of a tenant', () => {
  it('are bounded to a share of the stream: others have space, and later it has too', async () => {
    const edge = await startEdge()
    const flood = await addTenant([edge], 'flood', {})
    const other = await addTenant([edge], 'other', {})
    const { refusal } = await postUntilRefused(edge, flood, 60_000, streamBytes / 60_000)
    expectLimited(refusal, undecidedDetail)
    expect(refusal.headers.get('retry-after')).toBe(String(undecidedRetryAfterSeconds))
    const { state } = await rig.nats.manager.streams.info(telemetryStream)
    // Three quarters by default. The rest is for others, who come at once with a tenth and more.
    expect(state.bytes).toBeGreaterThan(0.7 * streamBytes)
    expect(state.bytes).toBeLessThan(0.8 * streamBytes)
    const first = Array.from({ length: (0.1 * streamBytes) / 60_000 }, () =>
      post(edge, other, 60_000),
    )
    const statuses = (await Promise.all(first)).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([200]))
    await decideAll()
    await until('it may send again', async () => (await post(edge, flood, 1_000)).status === 200)
  })

  it('have a share that may be set per tenant, and is divided among edges', async () => {
    const edges = [await startEdge(), await startEdge()]
    await until('they know of each other', () =>
      edges.every(({ directory }) => directory.countEdges() === 2),
    )
    const wide = await addTenant(edges, 'wide', { ingest_share: 0.5 })
    const first = await postUntilRefused(edges[0]!, wide, 60_000, streamBytes / 60_000)
    expectLimited(first.refusal, undecidedDetail)
    // Alone it may use half on two edges, a third on one of them.
    const share = (first.accepted * 60_000) / streamBytes
    expect(share).toBeGreaterThan(0.28)
    expect(share).toBeLessThan(0.4)
    expect((await post(edges[1]!, wide, 1_000)).status).toBe(200)
  })

  it('never cause a rejection while there are few, and have a warning', async () => {
    const edge = await startEdge()
    const flood = await addTenant([edge], 'flood', { ingest_share: 0.9 })
    const light = await addTenant([edge], 'light', { ingest_share: 0.001 })
    await postUntilRefused(edge, flood, 60_000, streamBytes / 60_000)
    await until('the edge warns', async () => {
      const answer = await fetch(`${edge.internalUrl}/readyz`)
      const { warnings } = (await answer.json()) as { warnings?: Record<string, string> }
      return answer.ok && /% full of undecided events$/.test(warnings?.stream ?? '')
    })
    const most = tenantUndecidedBytesMin / 10_000
    for (let n = 0; n < most - 1; n++) {
      expect((await post(edge, light, 9_000)).status).toBe(200)
    }
  })
})
