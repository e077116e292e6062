// Look-ups of API keys while others guess keys.
import { hash } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { unknownKeyCacheMs, unverifiedKeyLookups } from '#shared/core/base/limits/rest-api.ts'
import { createMetrics, type Metrics } from '#shared/io/process/metrics.ts'
import type { KeyHolder, TenantStore } from '#shared/io/tenants/tenant-store.ts'
import { createFindKeyHolder } from '../../../services/api/http/find-key-holder.ts'

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
/** Look-ups that Postgres has not answered yet. */
let open: (() => void)[]
let lookups: number
let nowMs: number
let find: TenantStore['findTenantByApiKey']

beforeEach(() => {
  metrics = createMetrics('api')
  holders = new Map([[hashOf('known').toString('hex'), holder]])
  open = []
  lookups = 0
  nowMs = 1
  const lookUp = (keyHash: Buffer) => {
    lookups++
    return new Promise<KeyHolder | null>((resolve) => {
      open.push(() => resolve(holders.get(keyHash.toString('hex')) ?? null))
    })
  }
  find = createFindKeyHolder(lookUp, metrics, () => nowMs)
})

const settle = () => new Promise((resolve) => setImmediate(resolve))

/** Lets Postgres answer all queries, later ones too. */
async function answerAll(): Promise<void> {
  for (await settle(); open.length > 0; await settle())
    for (const answer of open.splice(0)) answer()
}

async function findAnswered(text: string): Promise<KeyHolder | null> {
  const found = find(hashOf(text))
  await answerAll()
  return await found
}

describe('look-ups of API keys', () => {
  it('of a cached key do not wait behind guesses', async () => {
    expect(await findAnswered('known')).toEqual(holder)
    const guesses = Array.from({ length: 1_000 }, (_, n) => find(hashOf(`guess ${n}`)))
    for (const guess of guesses) guess.catch(() => undefined)
    await settle()
    expect(open).toHaveLength(unverifiedKeyLookups.total)
    const known = find(hashOf('known'))
    await settle()
    expect(open).toHaveLength(unverifiedKeyLookups.total + 1)
    open.pop()!()
    expect(await known).toEqual(holder)
    await answerAll()
    const outcomes = await Promise.allSettled(guesses)
    const refused = outcomes.filter(({ status }) => status === 'rejected')
    expect(refused).toHaveLength(
      1_000 - unverifiedKeyLookups.total - unverifiedKeyLookups.queuePerTenant,
    )
    expect(lookups).toBe(2 + unverifiedKeyLookups.total + unverifiedKeyLookups.queuePerTenant)
    expect(await metrics.registry.metrics()).toMatch(
      new RegExp(`di_api_key_lookups_total\\{[^}]*outcome="refused"[^}]*\\} ${refused.length}\\s`),
    )
  })

  it('of an unknown key cost no query for a second, and then one', async () => {
    expect(await findAnswered('guess')).toBeNull()
    for (let n = 0; n < 100; n++) expect(await findAnswered('guess')).toBeNull()
    expect(lookups).toBe(1)
    holders.set(hashOf('guess').toString('hex'), holder)
    nowMs += unknownKeyCacheMs + 1
    expect(await findAnswered('guess')).toEqual(holder)
    expect(lookups).toBe(2)
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
    expect(lookups).toBe(2)
  })
})
