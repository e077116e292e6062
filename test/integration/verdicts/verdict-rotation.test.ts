/**
 * Verdict keys on real servers: while they are rotated and a fleet asks for verdicts, every token
 * verifies with the keys that are served, and with any copy of them that may still be kept.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verdictKeysStaleMsMax } from '#shared/core/base/limits/rest-api.ts'
import {
  verdictKeyPublishedMsMin,
  verdictKeysCacheSeconds,
} from '#shared/core/base/limits/tenants.ts'
import {
  type VerdictKeySet,
  verdictKeyEntryKey,
  verdictKeyEntrySchema,
} from '#shared/core/verdicts/verdict-keys.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { openDirectory, readProven } from '#shared/io/tenants/directory/directory-entries.ts'
import {
  ensureVerdictKeys,
  listVerdictKeys,
  removeExpiredVerdictKeys,
} from '#shared/io/verdicts/verdict-key-store.ts'
import {
  rotateKeys,
  settleVerdictKeys,
} from '../../../services/console/keys/manage-verdict-keys.ts'
import { createDirectoryWriter } from '../../../services/console/tenants/directory.ts'
import { verifyVerdict } from '../../../shared/client/client.ts'
import { type ApiRig, createApiRig } from '../../support/http/api-rig.ts'
import { until } from '../../support/process/until.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import {
  bodyOf,
  type EdgeRig,
  nowMs,
  quietLog,
  send,
  startEdgeRig,
  startProxy,
  type TestEdge,
  type TestTenant,
} from '../../support/telemetry/edge-rig.ts'

let server: TestPostgres
let rig: EdgeRig
let postgres: Postgres
let api: ApiRig
let acme: TestTenant
let edges: TestEdge[]
let databases: { postgres: string; clickhouse: string }
/** The clocks of every process, which the tests put forward. */
let aheadMs = 0
const wallMs = () => Date.now() + aheadMs
const monotonicMs = () => nowMs() + aheadMs
const verdictsOf = (nonce: string) => ({ verdict: { audience: 'checkout', nonce } })

beforeAll(async () => {
  ;[server, rig] = await Promise.all([startPostgres(), startEdgeRig()])
  const url = await server.createMigratedDatabase()
  postgres = createPostgres(url, { role: 'test', log: quietLog })
  // No query of these tests needs ClickHouse.
  databases = { postgres: url, clickhouse: 'http://127.0.0.1:1/absent' }
  api = await createApiRig(databases, { wallMs, monotonicMs })
  acme = await rig.projectTenant('acme')
  edges = await Promise.all([1, 2, 3].map(() => rig.startEdge({ wallMs })))
  const known = () => edges.every(({ directory }) => directory.revision() >= acme.revision)
  await until('the edges know the tenant', known)
})
afterAll(async () => {
  await api?.close()
  await rig?.stop()
  await postgres?.close()
  await server?.stop()
})

const deps = () => ({
  postgres,
  sealer: rig.sealer,
  directory: createDirectoryWriter(() => rig.nats, rig.sealer, nowMs),
  wallMs,
})
const forward = (ms: number) => {
  aheadMs += ms
}
/** Looks after the keys once, as the console's job does. */
async function look(): Promise<void> {
  await ensureVerdictKeys(postgres, rig.sealer, wallMs())
  await removeExpiredVerdictKeys(postgres, wallMs())
  await settleVerdictKeys(deps())
}
const readKeys = async (): Promise<VerdictKeySet> =>
  (await api.call('/v1/di/verdict-keys')).json<VerdictKeySet>()
const statesOf = async () => (await listVerdictKeys(postgres)).map(({ state }) => state)
const kidOf = (token: string) => decodeProtectedHeader(token).kid!

let nonces = 0
async function ask(edge: TestEdge): Promise<{ token: string; nonce: string }> {
  const nonce = `nonce-${++nonces}`
  const answer = await send(edge, bodyOf('acme', verdictsOf(nonce)), acme)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  expect(answer.body.verdict_token).toBeTypeOf('string')
  return { token: answer.body.verdict_token as string, nonce }
}

/** By a kept library, and by the client. @throws when the token does not verify */
async function verify(
  { token, nonce }: { token: string; nonce: string },
  keys: VerdictKeySet,
  atMs = wallMs(),
) {
  const currentDate = new Date(atMs)
  const options = { algorithms: ['ES256'], audience: 'acme', currentDate, clockTolerance: 60 }
  await jwtVerify(token, createLocalJWKSet(keys), options)
  const question = { keys, audience: 'checkout', nonce, tenantId: 'acme', nowMs: atMs }
  return verifyVerdict(token, question)
}

/** The keys of this moment, with ten requests a second: an address has a limit. */
function createReader(): () => Promise<VerdictKeySet> {
  let read: { keys: Promise<VerdictKeySet>; atMs: number } | null = null
  return () => {
    const atMs = monotonicMs()
    if (read === null || atMs - read.atMs > 100) read = { keys: readKeys(), atMs }
    return read.keys
  }
}

describe('before there is a key', () => {
  it('an event is accepted without a token, counted, and gets one with the same bytes later', async () => {
    const [edge] = edges as [TestEdge, ...TestEdge[]]
    const none = await api.call('/v1/di/verdict-keys')
    expect(none.json()).toEqual({ keys: [] })
    expect(none.headers['cache-control']).toBe('no-store')
    const body = bodyOf('acme', verdictsOf('first'))
    const without = await send(edge, body, acme)
    expect(without.status).toBe(200)
    expect(without.body).not.toHaveProperty('verdict_token')
    expect(await edge.count('di_ingest_verdicts_total', { result: 'no_key' })).toBe(1)
    const { warnings } = (await (await fetch(`${edge.internalUrl}/readyz`)).json()) as {
      warnings: Record<string, string>
    }
    expect(warnings['verdict key']).toMatch(/is not known/)

    await look()
    await until('the edges have the key', () =>
      edges.every(({ directory }) => directory.verdictSigner() !== null),
    )
    const again = await send(edge, body, acme)
    expect(again.body.event_id).toBe(without.body.event_id)
    const token = again.body.verdict_token as string
    await verify({ token, nonce: 'first' }, await readKeys())
    expect(await edge.count('di_ingest_verdicts_total', { result: 'issued' })).toBe(1)
  })
})

describe('the published keys', () => {
  it('need no API key, may be kept, and are a 304 while they are the same', async () => {
    const answer = await api.call('/v1/di/verdict-keys')
    expect(answer.status).toBe(200)
    expect(answer.headers['cache-control']).toBe(`public, max-age=${verdictKeysCacheSeconds}`)
    const { keys } = answer.json<VerdictKeySet>()
    expect(keys).toHaveLength(2)
    for (const key of keys) {
      expect(Object.keys(key).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'])
    }
    const tag = answer.headers.etag!
    const same = await api.call('/v1/di/verdict-keys', { headers: { 'if-none-match': tag } })
    expect(same.status).toBe(304)
    expect(same.headers['cache-control']).toBe(`public, max-age=${verdictKeysCacheSeconds}`)
    const wrongKey = await api.call('/v1/di/verdict-keys', { key: 'dpk_live_nobody' })
    expect(wrongKey.status).toBe(200)
  })

  it('have no private half in the API, in the directory or in the database in the clear', async () => {
    const directory = await openDirectory(rig.nats, rig.sealer)
    const held = await directory.bucket.get(verdictKeyEntryKey)
    const entry = verdictKeyEntrySchema.parse(readProven(directory, held!)!.value)
    const owner = { verdictKeyId: entry.kid, kind: 'verdict' } as const
    const secret = rig.sealer.unseal(entry.private_key_sealed, owner)
    expect(Buffer.from(secret, 'base64').length).toBeGreaterThan(100)
    const { rows } = await postgres.query('select * from verdict_keys')
    const places = [held!.string(), JSON.stringify(rows), JSON.stringify(await readKeys())]
    for (const place of places) {
      // The private number itself begins after 36 bytes of PKCS #8.
      expect(place).not.toContain(secret)
      expect(place).not.toContain(
        Buffer.from(secret, 'base64').subarray(36, 68).toString('base64url'),
      )
    }
  })
})

describe('a rotation', () => {
  it('waits until every copy of the keys has the next one', async () => {
    await expect(rotateKeys(deps(), { actor: 'test', revoke: false })).rejects.toThrow(
      /the next key is published since/i,
    )
    expect(await statesOf()).toEqual(['next', 'current'])
  })

  it('fails no token, while a fleet asks and copies of the keys are as old as they may be', async () => {
    const rotations = 4
    const seen: { token: string; nonce: string; byCopy: boolean }[] = []
    const failures: string[] = []
    let copy = await readKeys()
    let copiedAtMs = wallMs()
    let done = false
    const readNow = createReader()
    const phone = async (edge: TestEdge) => {
      while (!done) {
        const beforeMs = wallMs()
        const asked = await ask(edge)
        const atMs = wallMs()
        // A verifier with a copy of the keys, and one that asks now.
        const kept = atMs - copiedAtMs <= verdictKeysCacheSeconds * 1000 ? [copy] : []
        const all = [...kept, await readNow()]
        // Put forward by minutes meanwhile: neither the token nor its keys are of this time.
        if (wallMs() - beforeMs > 60_000) continue
        for (const keys of all) {
          await verify(asked, keys, atMs).catch((error: Error) => failures.push(error.message))
        }
        seen.push({ ...asked, byCopy: kept.length > 0 })
        await pause(5)
      }
    }
    const fleet = edges.flatMap((edge) => [phone(edge), phone(edge)])
    const signed = (kid: string) => seen.filter(({ token }) => kidOf(token) === kid)
    const countOf = (kid: string) => signed(kid).length
    try {
      for (let rotation = 0; rotation < rotations; rotation++) {
        const [next, current] = await listVerdictKeys(postgres)
        await until('the present key signs', () => countOf(current!.kid) > 10)
        // A reading that began before the next key was made takes less than the time that follows.
        await readKeys()
        // The oldest copy that a verifier may have when the next key begins to sign.
        forward(verdictKeyPublishedMsMin - verdictKeysCacheSeconds * 1000 + 10_000)
        copy = await readKeys()
        copiedAtMs = wallMs()
        forward(verdictKeysCacheSeconds * 1000 - 10_000)
        const rotated = await rotateKeys(deps(), { actor: 'test', revoke: false })
        expect(rotated.map(({ state }) => state).slice(0, 3)).toEqual([
          'next',
          'current',
          'previous',
        ])
        expect(rotated[1]!.kid).toBe(next!.kid)
        // When the call has returned no edge signs with the key before.
        const tokens = await Promise.all(edges.map(ask))
        expect(tokens.map(({ token }) => kidOf(token))).toEqual(tokens.map(() => next!.kid))
        const byCopy = () => signed(next!.kid).filter((one) => one.byCopy).length
        await until('the copy verifies the next key', () => byCopy() > 10)
      }
    } finally {
      done = true
      await Promise.all(fleet)
    }
    expect(failures).toEqual([])
    expect(new Set(seen.map(({ token }) => kidOf(token))).size).toBe(rotations + 1)
    expect(seen.length).toBeGreaterThan(100)
  })

  it('waits for the copies that an api gave out of its memory while it had no Postgres', async () => {
    const proxy = await startProxy(databases.postgres)
    const urls = { ...databases, postgres: proxy.url }
    const cut = await createApiRig(urls, { wallMs, monotonicMs })
    const readCut = () => cut.call('/v1/di/verdict-keys')
    try {
      forward(verdictKeyPublishedMsMin)
      expect((await readCut()).status).toBe(200)
      proxy.close()
      await rotateKeys(deps(), { actor: 'test', revoke: false })
      const [next] = await listVerdictKeys(postgres)
      const madeMs = Date.parse(next!.created_at)
      // The last answer that is given so, and the last moment at which its copy counts.
      forward(verdictKeysStaleMsMax - 5_000)
      const answer = await readCut()
      expect(answer.headers['cache-control']).toBe(`public, max-age=${verdictKeysCacheSeconds}`)
      const kids = answer.json<VerdictKeySet>().keys.map(({ kid }) => kid)
      expect(kids).toHaveLength(2)
      expect(kids).not.toContain(next!.kid)
      forward(verdictKeysCacheSeconds * 1000 - 5_000)
      await expect(rotateKeys(deps(), { actor: 'test', revoke: false })).rejects.toThrow(
        /the next key is published since/i,
      )
      forward(madeMs + verdictKeyPublishedMsMin - wallMs())
      const rotated = await rotateKeys(deps(), { actor: 'test', revoke: false })
      expect(rotated[1]!.kid).toBe(next!.kid)
      expect((await readCut()).status).toBe(503)
    } finally {
      await cut.close()
      proxy.close()
    }
  })

  it('removes a key once its last token has expired, and its private half at once', async () => {
    const [, current] = await listVerdictKeys(postgres)
    forward(verdictKeyPublishedMsMin)
    await look()
    const last = await ask(edges[0]!)
    await rotateKeys(deps(), { actor: 'test', revoke: false })
    const { rows } = await postgres.query<{ sealed: string | null }>(
      'select sealed from verdict_keys where kid = $1',
      [current!.kid],
    )
    expect(rows).toEqual([{ sealed: null }])
    forward((decodeJwt(last.token).exp! + 59) * 1000 - wallMs())
    await look()
    await until('a new reading', async () => (await readKeys()).keys.length >= 3)
    await verify(last, await readKeys())
    forward(2 * 60_000)
    await look()
    await until('the key is gone', async () => (await readKeys()).keys.length === 2)
    expect(await statesOf()).toEqual(['next', 'current'])
  })

  it('with revoke withdraws the key at once, and needs no waiting', async () => {
    const stolen = await ask(edges[1]!)
    await rotateKeys(deps(), { actor: 'test', revoke: true })
    await until('the keys are read again', async () =>
      (await readKeys()).keys.every(({ kid }) => kid !== kidOf(stolen.token)),
    )
    await expect(verify(stolen, await readKeys())).rejects.toThrow(/no applicable key/)
    await verify(await ask(edges[1]!), await readKeys())
    const { rows } = await postgres.query<{ after: { revoked: boolean } }>(
      `select after from audit_log where action = 'verdict_keys.rotated' order by audit_id desc`,
    )
    expect(rows[0]!.after.revoked).toBe(true)
    await look()
    expect(await statesOf()).toEqual(['next', 'current'])
  })
})

describe('the entry of the edges', () => {
  it('that no console wrote leaves an edge without a key, until a console mends it', async () => {
    const [edge] = edges as [TestEdge, ...TestEdge[]]
    const directory = await openDirectory(rig.nats, rig.sealer)
    const held = (await directory.bucket.get(verdictKeyEntryKey))!
    const { private_key_sealed: sealed } = verdictKeyEntrySchema.parse(
      readProven(directory, held)!.value,
    )
    // The very entry again, which stands at another revision; and one without any proof.
    for (const text of [held.string(), JSON.stringify({ kid: 'k', private_key_sealed: sealed })]) {
      await directory.bucket.put(verdictKeyEntryKey, text)
      await until('the edge drops the key', () => edge.directory.verdictSigner() === null)
      const answer = await send(edge, bodyOf('acme', verdictsOf('x')), acme)
      expect(answer.status).toBe(200)
      expect(answer.body).not.toHaveProperty('verdict_token')
      await look()
      await until('the edge has the key again', () => edge.directory.verdictSigner() !== null)
    }
    await verify(await ask(edge), await readKeys())
  })

  it('is no use to an edge without the installation’s keys', async () => {
    const { toEdgeKeyTexts, createEdgeKeys } = await import('#shared/io/keys/edge-keys.ts')
    const own = toEdgeKeyTexts([rig.masterKey])
    const stranger = Buffer.alloc(32, 7).toString('base64')
    const keys = createEdgeKeys({ ...own, edge: [stranger] })
    const edge = await rig.startEdge({ keys, wallMs })
    expect(edge.directory.verdictSigner()).toBeNull()
    expect(
      await edge.count('di_directory_faults_total', { reason: 'unsealable_verdict_key' }),
    ).toBe(1)
  })
})

describe('an ingest process', () => {
  it('signs with the issuer of its settings, in the answers of batches too', async () => {
    const edge = await rig.spawnEdge({ env: { SERVICE_ISSUER: 'https://di.example.com' } })
    const body = bodyOf('acme', verdictsOf('single'))
    const single = await send(edge, body, acme)
    const batch = await send(
      edge,
      `{"tenant_id":"acme","events":[${bodyOf('acme', verdictsOf('batched'))}]}`,
      { secret: acme.secret, path: '/v1/rasp/ingest/batch' },
    )
    const [entry] = batch.body.events as { verdict_token: string }[]
    const claims = [single.body.verdict_token as string, entry!.verdict_token].map((token) =>
      decodeJwt(token),
    )
    expect(claims.map(({ iss }) => iss)).toEqual(Array(2).fill('https://di.example.com'))
    expect(claims.map(({ nonce }) => nonce)).toEqual(['single', 'batched'])
  })
})

describe('an address', () => {
  it('that asks too often is refused with a time to wait', async () => {
    let refused = await api.call('/v1/di/verdict-keys')
    for (let calls = 0; calls < 2_000 && refused.status === 200; calls++) {
      refused = await api.call('/v1/di/verdict-keys')
    }
    expect(refused.status).toBe(429)
    expect(refused.json()).toMatchObject({ code: 'rate_limited' })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    const metrics = await api.metrics.registry.metrics()
    expect(metrics).toMatch(/di_api_address_limited_total\S* [1-9]/)
  })
})
