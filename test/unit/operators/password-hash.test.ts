// Password hashes: argon2id at the cost of RFC 9106, equal work without an account, and a
// bounded number at once, with bounded queues.
import { argon2Sync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createPasswordHasher } from '#shared/io/operators/password-hash.ts'

const cheap = { memory: 64, passes: 1, parallelism: 1 }
const password = 'a sentence that only this person types'

describe('password hashes', () => {
  it('are argon2id as RFC 9106 recommends, in the PHC string format', async () => {
    const hasher = createPasswordHasher()
    const stored = (await hasher.hash(password))!
    const [, salt, tag] = /^\$argon2id\$v=19\$m=65536,t=3,p=4\$(.{22})\$(.{43})$/.exec(stored)!
    const expected = argon2Sync('argon2id', {
      message: password,
      nonce: Buffer.from(salt!, 'base64'),
      memory: 65_536,
      passes: 3,
      parallelism: 4,
      tagLength: 32,
    })
    expect(Buffer.from(tag!, 'base64').equals(expected)).toBe(true)
    expect(await hasher.verify(password, stored)).toBe(true)
    expect(await hasher.verify(`${password}.`, stored)).toBe(false)
  })

  it('cost as much without an account as with one', async () => {
    const costs: object[] = []
    const hasher = createPasswordHasher(cheap, async (_, { memory, passes, parallelism }) => {
      costs.push({ memory, passes, parallelism })
      return Buffer.alloc(32)
    })
    const stored = await hasher.hash(password)
    await hasher.verify('wrong', stored)
    await hasher.verify('wrong', null)
    expect(costs).toEqual([cheap, cheap, cheap])
  })

  it('each have a salt, and keep the cost of their creation', async () => {
    const [one, two] = await Promise.all([
      createPasswordHasher(cheap).hash(password),
      createPasswordHasher(cheap).hash(password),
    ])
    expect(one).not.toBe(two)
    expect(await createPasswordHasher().verify(password, one)).toBe(true)
  })

  it('never match without an account', async () => {
    const hasher = createPasswordHasher(cheap)
    for (const typed of ['', password]) expect(await hasher.verify(typed, null)).toBe(false)
  })

  it('are equal for every Unicode form of a character', async () => {
    const hasher = createPasswordHasher(cheap)
    const stored = await hasher.hash('Zürich im Café'.normalize('NFD'))
    expect(await hasher.verify('Zürich im Café'.normalize('NFC'), stored)).toBe(true)
  })

  it('wait in bounded queues: strangers delay no known caller, one address no other', async () => {
    const hasher = createPasswordHasher({ memory: 8_192, passes: 2, parallelism: 1 })
    const order: string[] = []
    const strangers = Array.from({ length: 40 }, async () => {
      const answer = await hasher.verify('guess', null, '192.0.2.1')
      if (answer !== null) order.push('stranger')
      return answer
    })
    const other = hasher.verify('guess', null, '192.0.2.2').then((answer) => {
      order.push('other')
      return answer
    })
    const known = hasher.verify('guess', null).then((answer) => {
      order.push('known')
      return answer
    })
    expect([await known, await other]).toEqual([false, false])
    const answers = await Promise.all(strangers)
    // Two run, eight wait, the others are rejected at once.
    expect(answers.filter((answer) => answer === false)).toHaveLength(2 + 8)
    expect(answers.filter((answer) => answer === null)).toHaveLength(30)
    // Hardly any hash that waits for one address runs before those of others.
    expect(order.indexOf('known')).toBeLessThan(6)
    expect(order.indexOf('other')).toBeLessThan(8)
  })
})
