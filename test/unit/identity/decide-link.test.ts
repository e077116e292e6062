// Which phone an install is on, decided in the order of the stream.
import { describe, expect, it } from 'vitest'
import { phoneInstallsMax } from '#shared/core/base/limits/entities.ts'
import type { InstallTraits } from '#shared/core/identity/comparison.ts'
import { toPhoneId } from '#shared/core/identity/phone-id.ts'
import { createPhoneWalk } from '../../support/identity/walk-phones.ts'

const phones = 100_000
/** A phone of its own in every respect, and what is to be different of it. */
const toTraits = (n: number, traits: Partial<InstallTraits> = {}): InstallTraits => ({
  identifiers: { keychain_id: `keychain-${n}` },
  hardware: `model-${n}`,
  model: `model-${n}`,
  memoryBytes: null,
  setup: `model-${n} de`,
  network: `network-${n}`,
  users: [`user-${n}`],
  bootAtMs: n * 1_000_000,
  ...traits,
})
const createWalk = (countOf: (key: string) => number | null = () => null) =>
  createPhoneWalk('acme', { phones, countOf })

describe('a reinstall', () => {
  it('is on the phone of the first install, and knows the earlier ones', () => {
    const walk = createWalk()
    const phoneId = toPhoneId('acme', 'a')
    const first = { kind: 'first', phoneId, confidence: 1, installs: [] }
    expect(walk.add('a', toTraits(1))).toMatchObject(first)
    const again = walk.add('b', toTraits(1, { users: [] }))
    expect(again).toMatchObject({ kind: 'linked', phoneId, installs: ['a'], possible: null })
    expect(again.confidence).toBeGreaterThan(0.99)
    const third = walk.add('c', toTraits(1, { users: ['other'], network: 'elsewhere' }))
    expect(third).toMatchObject({ kind: 'linked', phoneId, installs: ['a', 'b'] })
    expect(walk.add('d', toTraits(2))).toMatchObject({ kind: 'first', installs: [] })
  })

  it('has a confidence as it is stored', () => {
    const walk = createWalk()
    walk.add('a', toTraits(1))
    const { confidence } = walk.add('b', toTraits(1, { setup: null, bootAtMs: null }))
    expect(Math.fround(confidence)).toBe(confidence)
  })

  it('is decided once, at its first event', () => {
    const walk = createWalk()
    walk.add('a', toTraits(1))
    const link = walk.add('b', toTraits(2))
    expect(link.kind).toBe('first')
    expect(walk.add('b', toTraits(1))).toBe(link)
  })

  it('is found by what an earlier install had at a later event', () => {
    const signedIn = { identifiers: {}, users: ['ada'] }
    const walk = createWalk()
    walk.add('a', toTraits(1, { ...signedIn, users: [] }))
    walk.add('a', toTraits(1, signedIn))
    expect(walk.add('b', toTraits(1, signedIn))).toMatchObject({ kind: 'linked', installs: ['a'] })
  })
})

describe('a phone of many installs', () => {
  const reinstall = (count: number) => {
    const walk = createWalk()
    for (let n = 0; n < count; n++) walk.add(`i-${n}`, toTraits(1))
    return walk
  }
  const last = `i-${phoneInstallsMax + 9}`

  it('grows by a strong identifier, and its links know the first and the latest installs', () => {
    const { installs, ...link } = reinstall(phoneInstallsMax + 10).links.get(last)!
    expect(link).toMatchObject({ kind: 'linked', phoneId: toPhoneId('acme', 'i-0') })
    expect(installs).toHaveLength(phoneInstallsMax)
    expect(installs[0]).toBe('i-0')
    expect(installs.at(-1)).toBe(`i-${phoneInstallsMax + 8}`)
  })

  it('grows by nothing else', () => {
    const byUser = toTraits(1, { identifiers: {} })
    expect(reinstall(3).add('more', byUser).kind).toBe('linked')
    expect(reinstall(phoneInstallsMax + 10).add('more', byUser).kind).not.toBe('linked')
  })
})

describe('an attacker who sends the identifiers of many phones', () => {
  const names = [1, 2, 3, 4, 5]
  const attack = () => {
    const walk = createWalk()
    for (const n of names) {
      walk.add(`owner-${n}`, toTraits(n, { identifiers: { a: `a-${n}`, b: `b-${n}` } }))
    }
    // One identifier of each of two phones, all that there are, and then again by themselves.
    for (const n of names) {
      const copied = { a: `a-${n}`, b: `b-${(n % 5) + 1}` }
      walk.add(`attack-${n}`, toTraits(9, { identifiers: copied }))
    }
    return walk
  }

  it('has shared identifiers, and joins no phones', () => {
    const { links } = attack()
    for (const n of names) {
      expect(links.get(`attack-${n}`)).toMatchObject({ identifiersShared: true })
      expect(links.get(`attack-${n}`)!.kind).not.toBe('linked')
    }
    expect(new Set([...links.values()].map(({ phoneId }) => phoneId)).size).toBe(10)
  })

  it('does not keep their owners from being recognised', () => {
    const walk = attack()
    for (const n of names) {
      const again = toTraits(n, { identifiers: { a: `a-${n}`, b: `b-${n}` } })
      expect(walk.add(`again-${n}`, again)).toMatchObject({
        kind: 'linked',
        phoneId: toPhoneId('acme', `owner-${n}`),
        identifiersShared: false,
      })
    }
  })

  it('is not found by copied identifiers through another install of the same phone', () => {
    const walk = attack()
    const ofUser = toTraits(9, { identifiers: {} })
    expect(walk.add('next', ofUser).identifiersShared).toBe(false)
    // It has identifiers of its own: those that were copied say nothing of its phone.
    const own = toTraits(9, { identifiers: { a: 'own' } })
    const evidence = walk.add('after', own).evidence.map(({ field }) => field)
    expect(evidence).not.toContain('identifier a')
  })
})

describe('phones of one model whose firmware gives them one identifier', () => {
  const toOwner = (n: number, traits: Partial<InstallTraits> = {}): InstallTraits =>
    toTraits(1, {
      identifiers: { media_drm_id: 'firmware', android_id: `android-${n}` },
      setup: 'model-1 de',
      network: `network-${n}`,
      users: [`user-${n}`],
      bootAtMs: n * 86_400_000,
      ...traits,
    })
  const farm = (n: number) => toOwner(n, { network: 'farm', bootAtMs: n * 1_000 })
  const many = 100

  it.each([
    ['owners', 40, toOwner],
    ['emulators of a farm', 20, farm],
    ['more than are looked at', many, toOwner],
  ])('are no phone, and their identifiers are shared: %s', (_, count, toInstall) => {
    const walk = createWalk()
    const links = Array.from({ length: count }, (_, n) => walk.add(`i-${n}`, toInstall(n)))
    const phoneIds = new Set(links.map(({ phoneId }) => phoneId))
    // Of the first two nothing tells yet that there will be more.
    expect(phoneIds.size).toBeGreaterThanOrEqual(count - 1)
    expect(links.slice(2).map(({ identifiersShared }) => identifiersShared)).toEqual(
      Array.from({ length: count - 2 }, () => true),
    )
    for (const { kind } of links.slice(2)) expect(kind).not.toBe('linked')
  })

  it('are each recognised by what is their own', () => {
    const walk = createWalk()
    for (let n = 0; n < 10; n++) walk.add(`i-${n}`, toOwner(n))
    const again = walk.add('again', toOwner(7))
    expect(again.confidence).toBeGreaterThan(0.9)
    expect(again.possible?.phoneId ?? again.phoneId).toBe(toPhoneId('acme', 'i-7'))
  })

  it('differ from one phone that was reset once, which is recognised', () => {
    const walk = createWalk()
    walk.add('a', toOwner(1, { users: ['ada'] }))
    const reset = walk.add('b', toOwner(2, { users: ['ada'] }))
    expect(reset).toMatchObject({ kind: 'linked', installs: ['a'], doubtful: [] })
    expect(walk.add('c', toOwner(2, { users: ['bob'] }))).toMatchObject({ installs: ['a', 'b'] })
  })
})

describe('a copier who sends the identifiers of a phone and no traits', () => {
  const nothing = { hardware: null, model: null, setup: null, users: [], bootAtMs: null }

  it('is on no phone, also not on the one that its owner installs next', () => {
    const walk = createWalk()
    walk.add('owner', toTraits(1))
    expect(walk.add('copier', toTraits(1, nothing))).toMatchObject({
      kind: 'first',
      identifiersShared: true,
    })
    expect(walk.add('next', toTraits(1))).toMatchObject({
      kind: 'linked',
      phoneId: toPhoneId('acme', 'owner'),
      installs: ['owner'],
    })
  })
})

describe('a value of thousands of installs', () => {
  const constant = (n: number) => toTraits(n, { identifiers: { serial: 'constant' }, users: [] })

  it('leads to none of them, and is no shared identifier', () => {
    const walk = createWalk((key) => (key.includes('constant') ? 50_000 : null))
    walk.add('a', constant(1))
    expect(walk.add('b', constant(2))).toMatchObject({ kind: 'first', identifiersShared: false })
  })

  it('weighs as many as have it', () => {
    const walk = createWalk((key) => (key.includes('model-1') ? 3_000 : null))
    walk.add('a', toTraits(1))
    const { evidence } = walk.add('b', toTraits(1))
    expect(evidence.find(({ field }) => field === 'traits')).toMatchObject({ holders: 3_000 })
  })
})
