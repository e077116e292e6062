/** Reading a KV bucket while others write to it, on a real nats-server. */
import { randomBytes } from 'node:crypto'
import type { KV, KvEntry } from 'nats'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { acceptedKey } from '#shared/core/reconciliation/accepted-claims.ts'
import { acceptedBucket, staleSecretBucket } from '#shared/core/telemetry/nats-names.ts'
import {
  type StaleSecretReport,
  staleSecretKey,
} from '#shared/core/tenants/stale-secret-reports.ts'
import { createProver } from '#shared/io/keys/proofs.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { readEntries } from '#shared/io/nats/kv-entries.ts'
import { openAcceptedBucket, openStaleSecretBucket } from '#shared/io/nats/streams/buckets.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import {
  listAcceptedClaims,
  startClaimReporter,
} from '#shared/io/reconciliation/accepted-claims.ts'
import { encodeReport } from '#shared/io/tenants/directory/kv-reporter.ts'
import { listStaleSecretRequests } from '#shared/io/tenants/stale-secret-requests.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { startNats } from '../../support/servers/nats/nats-server.ts'

const makeKey = () => randomBytes(32).toString('base64')
const prover = createProver([makeKey()])

let server: Awaited<ReturnType<typeof startNats>>
let nats: Nats
beforeAll(async () => {
  server = await startNats()
  nats = await connectNats(server.url, 'test', testLog)
  await ensureStreams(nats)
})
afterAll(async () => {
  await nats?.close()
  await server?.stop()
})

const openBucket = (name: string): Promise<KV> => nats.jetstream.views.kv(name, { history: 1 })

/** Writes continuously, each time the next of these keys, until `read` has ended. */
async function whileWritten(
  write: (n: number) => Promise<unknown>,
  read: () => Promise<void>,
): Promise<void> {
  let reading = true
  const writing = (async () => {
    for (let n = 0; reading; n++) await write(n)
  })()
  try {
    await read()
  } finally {
    reading = false
    await writing
  }
}

describe('the entries of a bucket', () => {
  it('are complete, each at least as new as before the call, during any writes', async () => {
    const bucket = await openBucket('written_test')
    await bucket.put('a.first', 'there from the beginning')
    await bucket.put('b.other', 'not asked for')
    const written = new Map<string, number>()
    const keys = Array.from({ length: 8 }, (_, n) => `a.${n}`)
    const put = async (key: string) => {
      written.set(key, await bucket.put(key, 'another'))
    }
    const write = () => Promise.all(keys.map(put))
    await write()
    await whileWritten(write, async () => {
      for (let round = 0; round < 500; round++) {
        const before = new Map(written)
        const entries = await readEntries(nats, bucket, 'a.*')
        expect([...entries.keys()].sort()).toEqual([...keys, 'a.first'])
        for (const [key, revision] of before) {
          expect(entries.get(key)!.revision).toBeGreaterThanOrEqual(revision)
        }
      }
    })
  })

  it('are complete where the reading of the history ends too soon', async () => {
    const bucket = await openBucket('short_test')
    for (const key of ['a.one', 'a.two', 'a.three', 'b.other']) await bucket.put(key, 'there')
    const cut = async function* (history: AsyncIterable<KvEntry>) {
      for await (const entry of history) {
        yield entry
        break
      }
    }
    const short: KV = Object.create(bucket, {
      history: { value: async (options: object) => cut(await bucket.history(options)) },
    })
    const entries = await readEntries(nats, short, 'a.*')
    expect([...entries.keys()].sort()).toEqual(['a.one', 'a.three', 'a.two'])
    expect([...entries.values()].every((entry) => entry.string() === 'there')).toBe(true)
  })

  it('are an error where the reading never ends, which is then stopped', async () => {
    const bucket = await openBucket('endless_test')
    await bucket.put('a.one', 'there')
    // The watch is unchanged except that it never ends.
    const watch = await bucket.watch({ key: 'a.*' })
    const stop = vi.spyOn(watch, 'stop')
    const endless: KV = Object.create(bucket, { history: { value: async () => watch } })
    await expect(readEntries(nats, endless, 'a.*', 200)).rejects.toThrow('cannot be read')
    expect(stop).toHaveBeenCalled()
  })

  it('are an empty list in an empty bucket, and a deletion is an entry', async () => {
    const bucket = await openBucket('empty_test')
    expect((await readEntries(nats, bucket, 'a.*')).size).toBe(0)
    await bucket.put('a.gone', 'for a moment')
    await bucket.delete('a.gone')
    const entries = await readEntries(nats, bucket, 'a.*')
    expect([...entries.values()].map(({ operation }) => operation)).toEqual(['DEL'])
  })
})

it('each report of retired secrets counts once, even when it is replaced meanwhile', async () => {
  const bucket = await openStaleSecretBucket(nats)
  let begun = 0
  let done = 0
  const write = async (n: number) => {
    begun = n + 1
    const version = { sdk_version: '4.2.0', requests: begun, age_ms: 0 }
    const report: StaleSecretReport = { last4: 'abcd', versions: [version] }
    const key = staleSecretKey('tenant', 'edge')
    await bucket.put(key, encodeReport(prover, { bucketName: staleSecretBucket, key }, report))
    done = begun
  }
  await write(0)
  await whileWritten(
    (n) => write(n + 1),
    async () => {
      for (let round = 0; round < 500; round++) {
        const least = done
        const use = await listStaleSecretRequests(nats, prover, {
          tenantId: 'tenant',
          last4: 'abcd',
        })
        expect(use.map(({ sdk_version: version }) => version)).toEqual(['4.2.0'])
        expect(use[0]!.requests).toBeGreaterThanOrEqual(least)
        expect(use[0]!.requests).toBeLessThanOrEqual(begun)
      }
    },
  )
})

describe('a report that no edge has written', () => {
  const hour = 480_000
  const hourMs = hour * 3_600_000
  const claim = { edge_id: 'edge', hour_ms: hourMs, accepted: { acme: 5 } }
  const forged = { edge_id: 'forged', hour_ms: hourMs, accepted: { acme: 99 } }
  const report = (requests: number) => ({
    last4: 'wxyz',
    versions: [{ sdk_version: '4.2.0', requests, age_ms: 0 }],
  })

  it('is not accepted as counts, well formed or proven for another place', async () => {
    const metrics = createMetrics('test')
    const parts = [{ hourMs, part: 0, accepted: claim.accepted }]
    const reporter = startClaimReporter({
      nats,
      prover,
      edgeId: 'edge',
      log: testLog,
      metrics,
      drainChanged: () => parts.splice(0),
      requeue: () => expect.unreachable(),
    })
    await reporter.close()
    expect(await listAcceptedClaims(nats, prover, hour)).toEqual([claim])

    const bucket = await openAcceptedBucket(nats)
    const proven = (await bucket.get(acceptedKey('edge', hour, 0)))!.string()
    await bucket.put(acceptedKey('copied', hour, 0), proven)
    await bucket.put(acceptedKey('plain', hour, 0), JSON.stringify(forged))
    await bucket.put(acceptedKey('broken', hour, 0), '{"type":"account_info_response"}\n{')
    const key = acceptedKey('forged', hour, 0)
    const at = { bucketName: acceptedBucket, key }
    await bucket.put(key, encodeReport(createProver([makeKey()]), at, forged))
    expect(await listAcceptedClaims(nats, prover, hour)).toEqual([claim])
    expect(await listAcceptedClaims(nats, prover, null)).toEqual([claim])
  })

  it('counts no stale-secret request', async () => {
    const bucket = await openStaleSecretBucket(nats)
    const list = () => listStaleSecretRequests(nats, prover, { tenantId: 'acme', last4: 'wxyz' })
    const key = staleSecretKey('acme', 'edge')
    const proven = encodeReport(prover, { bucketName: staleSecretBucket, key }, report(3))
    await bucket.put(key, proven)
    await bucket.put(staleSecretKey('acme', 'copied'), proven)
    await bucket.put(staleSecretKey('acme', 'plain'), JSON.stringify(report(90)))
    expect(await list()).toMatchObject([{ sdk_version: '4.2.0', requests: 3 }])
  })
})
