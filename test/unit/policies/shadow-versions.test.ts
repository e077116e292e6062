// The scorers' cache of shadow policies: queried only when a newer version may decide an event, and
// never awaited.
import { describe, expect, it } from 'vitest'
import { shadowLeadMs } from '#shared/core/policies/shadow.ts'
import type { Queryable, Sql } from '#shared/io/postgres/postgres.ts'
import { createShadowVersions } from '../../../services/scorer/shadow/shadow-versions.ts'

/** Postgres with one tenant's shadow; `now` is the clock of both. */
function makeDatabase() {
  const state = {
    now: 1_000_000,
    changes: 1,
    changesQueried: 0,
    listed: 0,
    answer: Promise.resolve(),
  }
  const query = async (sql: string | Sql) => {
    const text = typeof sql === 'string' ? sql : sql.text
    const isList = !text.includes('shadow_policy_changes')
    if (isList) state.listed++
    else state.changesQueried++
    await state.answer
    const row = isList
      ? { tenant_id: 'acme', version: state.changes, policy_hash: 'a', effective_ms: 0 }
      : { changes: state.changes, at_ms: state.now }
    return { rows: [row], rowCount: 1 }
  }
  const versions = createShadowVersions({ query } as unknown as Queryable, () => state.now)
  return { state, versions, versionOf: () => versions.of('acme').at(-1)?.version ?? null }
}

describe('versions of shadow policies', () => {
  it('are read once, and again only after a change', async () => {
    const { state, versions, versionOf } = makeDatabase()
    expect(versions.any()).toBe(false)
    await versions.refresh(state.now)
    expect(versionOf()).toBe(1)
    expect(versions.of('globex')).toEqual([])
    // A version that is set after this decides no event of this second.
    for (let ms = 0; ms < 1_000; ms += 50) await versions.refresh(1_000_000 + ms)
    expect([state.changesQueried, state.listed]).toEqual([1, 1])
    state.now += 1_000
    await versions.refresh(state.now)
    expect([state.changesQueried, state.listed]).toEqual([2, 1])
    state.changes = 2
    state.now += 1_000
    await versions.refresh(state.now)
    expect([state.changesQueried, state.listed, versionOf()]).toEqual([3, 2, 2])
  })

  it('are queried for an event from the future, with any clock of ours', async () => {
    const { state, versions, versionOf } = makeDatabase()
    await versions.refresh(state.now)
    state.changes = 2
    await versions.refresh(state.now + shadowLeadMs)
    expect(versionOf()).toBe(2)
  })

  it('are not awaited: cached versions stay in use, and a late answer is accepted', async () => {
    const { state, versions, versionOf } = makeDatabase()
    await versions.refresh(state.now)
    let answer: () => void = () => undefined
    state.answer = new Promise((resolve) => {
      answer = resolve
    })
    state.changes = 2
    state.now += 2_000
    await expect(versions.refresh(state.now)).rejects.toThrow('did not answer within')
    expect(versionOf()).toBe(1)
    // No later refresh waits meanwhile.
    await versions.refresh(state.now)
    expect(state.changesQueried).toBe(2)
    answer()
    await expect.poll(versionOf, { timeout: 10_000 }).toBe(2)
  })
})
