// Look-ups of API keys while others guess keys.
import { hash } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { guessesWaitingPerSourceMax } from '#shared/core/base/limits/http.ts'
import { unknownKeyCacheMs } from '#shared/core/base/limits/rest-api.ts'
import { createMetrics, type Metrics } from '#shared/io/process/metrics.ts'
import type { KeyHolder } from '#shared/io/tenants/tenant-store.ts'
import {
  createFindKeyHolder,
  type FindKeyHolder,
} from '../../../services/api/http/find-key-holder.ts'

const hashOf = (text: string): Buffer => hash('sha256', text, 'buffer')
const holder: KeyHolder = {
  tenantId: 'acme',
  environment: 'live',
  status: 'active',
  restRate: null,
  keyName: null,
  scopes: [],
  lastUsedMs: null,
}

let metrics: Metrics
let holders: Map<string, KeyHolder>
/** Queries that Postgres has not answered yet. */
let open: (() => void)[]
let lookups: number
let nowMs: number
let find: FindKeyHolder

const stranger = '192.0.2.1'

beforeEach(() => {
  metrics = createMetrics('api')
  holders = new Map([[hashOf('known').toString('hex'), holder]])
  open = []
  lookups = 0
  nowMs = 1
  const answered = <T>(read: () => T) => {
    lookups++
    return new Promise<T>((resolve) => {
      open.push(() => resolve(read()))
    })
  }
  const store = {
    findTenantByApiKey: (keyHash: Buffer) =>
      answered(() => holders.get(keyHash.toString('hex')) ?? null),
    findExistingApiKeys: (keyHashes: readonly Buffer[]) =>
      answered(() => keyHashes.filter((one) => holders.has(one.toString('hex')))),
  }
  find = createFindKeyHolder(store, metrics, () => nowMs)
})

const settle = () => new Promise((resolve) => setImmediate(resolve))

/** Lets Postgres answer all queries, later ones too. */
async function answerAll(): Promise<void> {
  for (await settle(); open.length > 0; await settle())
    for (const answer of open.splice(0)) answer()
}

async function findAnswered(text: string): Promise<KeyHolder | null> {
  const found = find(hashOf(text), stranger)
  await answerAll()
  return await found
}

describe('look-ups of API keys', () => {
  it('of a cached key do not wait behind guesses', async () => {
    expect(await findAnswered('known')).toEqual(holder)
    lookups = 0
    const guesses = Array.from({ length: 1_000 }, (_, n) => find(hashOf(`guess ${n}`), stranger))
    for (const guess of guesses) guess.catch(() => undefined)
    await settle()
    expect(open).toHaveLength(1)
    const known = find(hashOf('known'), stranger)
    await settle()
    expect(open).toHaveLength(2)
    open.pop()!()
    expect(await known).toEqual(holder)
    await answerAll()
    const outcomes = await Promise.allSettled(guesses)
    const refused = outcomes.filter(({ status }) => status === 'rejected')
    // The first one is queried alone.
    expect(refused).toHaveLength(1_000 - guessesWaitingPerSourceMax - 1)
    // Two queries answer the others, and one the known key.
    expect(lookups).toBe(1 + 2 + 1)
    expect(await metrics.registry.metrics()).toMatch(
      new RegExp(`di_api_key_lookups_total\\{[^}]*outcome="refused"[^}]*\\} ${refused.length}\\s`),
    )
  })

  it('of a new key are in the next query, however many guesses of another address wait', async () => {
    const guesses = Array.from({ length: 1_000 }, (_, n) => find(hashOf(`guess ${n}`), stranger))
    for (const guess of guesses) guess.catch(() => undefined)
    const fresh = find(hashOf('known'), '192.0.2.2')
    for (let query = 1; query <= 2; query++) {
      await settle()
      open.shift()!()
    }
    // It exists: its holder is queried beside the next guesses.
    await settle()
    expect(open).toHaveLength(2)
    for (const answer of open.splice(0)) answer()
    expect(await fresh).toEqual(holder)
    await answerAll()
  })

  it('of an unknown key cost no query for a second, and then one', async () => {
    expect(await findAnswered('guess')).toBeNull()
    for (let n = 0; n < 100; n++) expect(await findAnswered('guess')).toBeNull()
    expect(lookups).toBe(1)
    holders.set(hashOf('guess').toString('hex'), holder)
    nowMs += unknownKeyCacheMs + 1
    expect(await findAnswered('guess')).toEqual(holder)
    // Whether it exists, and its holder.
    expect(lookups).toBe(3)
  })

  it('of a new key find it at once', async () => {
    holders.set(hashOf('new').toString('hex'), holder)
    expect(await findAnswered('new')).toEqual(holder)
  })

  it('of a retired key find nothing, and later ones count as guesses', async () => {
    expect(await findAnswered('known')).toEqual(holder)
    holders.clear()
    expect(await findAnswered('known')).toBeNull()
    expect(await findAnswered('known')).toBeNull()
    expect(lookups).toBe(3)
  })
})
