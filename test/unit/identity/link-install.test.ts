// Whether a new install is on a known phone.
import { describe, expect, it } from 'vitest'
import type { InstallTraits } from '#shared/core/identity/comparison.ts'
import { toKeys } from '#shared/core/identity/comparison.ts'
import { learnParameters } from '#shared/core/identity/learn-parameters.ts'
import { type KnownPhone, linkInstall } from '#shared/core/identity/link-install.ts'
import { toInitialParameters, toWeight } from '#shared/core/identity/parameters.ts'

const parameters = toInitialParameters(100_000)
const base: InstallTraits = {
  identifiers: { media_drm_id: 'drm-1', android_id: 'ssaid-1' },
  hardware: 'pixel',
  model: 'pixel',
  memoryBytes: null,
  setup: 'pixel de',
  network: 'home',
  users: ['ada'],
  bootAtMs: 1_000_000,
}
const phone = (phoneId: string, traits: Partial<InstallTraits> = {}): KnownPhone => ({
  phoneId,
  installs: [{ ...base, ...traits, seenAtMs: 2_000_000 }],
  installCount: 1,
  possible: null,
})
/** Each of these values is of as many phones; all others of one. */
const holders =
  (counts: Record<string, number> = {}) =>
  (key: string) => {
    const found = Object.entries(counts).find(([value]) => key.includes(value))
    return found?.[1] ?? 1
  }
const link = (
  install: Partial<InstallTraits>,
  phones: readonly KnownPhone[],
  counts: Record<string, number> = {},
) => linkInstall({ ...base, ...install }, phones, holders(counts), { parameters })

describe('an install', () => {
  it('is on the phone whose identifiers it has, with its evidence', () => {
    const { link: found, identifiersShared } = link({ users: [], network: 'other' }, [phone('p1')])
    expect(found).toMatchObject({ kind: 'linked', phoneId: 'p1' })
    expect(found!.confidence).toBeGreaterThan(0.999)
    expect(identifiersShared).toBe(false)
    expect(found!.evidence.map(({ field, level }) => [field, level])).toEqual([
      ['identifier media_drm_id', 1],
      ['identifier android_id', 1],
      ['traits', 2],
      ['boot', 1],
    ])
    for (const { weight } of found!.evidence) expect(weight).toBeGreaterThan(0)
  })

  it('is a phone of its own when nothing is in common', () => {
    const other = { identifiers: { media_drm_id: 'drm-2' }, hardware: 'nokia', setup: 'nokia de' }
    const stranger = { ...other, users: ['bob'], network: 'office', bootAtMs: 5_000_000 }
    expect(link(stranger, [phone('p1')]).link).toBeNull()
    expect(link({}, []).link).toBeNull()
  })

  it('is found by a user and traits where no identifiers are known', () => {
    const none = { identifiers: {} }
    const { link: found } = link(none, [phone('p1', none)])
    expect(found).toMatchObject({ kind: 'linked', phoneId: 'p1' })
  })

  it('of equal phones without identifiers and users is on none, however alike', () => {
    const equal = { identifiers: {}, users: [] }
    // The second phone of the shop: nobody knows yet that there will be more.
    expect(link(equal, [phone('p1', equal)]).link?.kind).not.toBe('linked')
    const shop = Array.from({ length: 15 }, (_, at) => phone(`p${at}`, equal))
    expect(link(equal, shop, { pixel: 15 }).link).toBeNull()
  })

  it('is at most possibly on a phone whose identifiers are all other ones', () => {
    const replaced = { identifiers: { media_drm_id: 'drm-2', android_id: 'ssaid-2' } }
    expect(link(replaced, [phone('p1')]).link?.kind).not.toBe('linked')
  })

  it('is recognised when its phone was sold', () => {
    const sold = { users: ['bob'], network: 'elsewhere', bootAtMs: 8_000_000 }
    const { link: found } = link(sold, [phone('p1')])
    expect(found).toMatchObject({ kind: 'linked', phoneId: 'p1' })
    // What disagrees counts against it, and not enough beside two identifiers in common.
    const user = found!.evidence.find(({ field }) => field === 'user')!
    expect(user).toMatchObject({ level: 0, holders: null })
    expect(user.weight).toBeLessThan(0)
  })

  it('of equal phones with a constant identifier is on none', () => {
    const constant = { identifiers: { android_id: 'constant' }, users: [] }
    expect(link(constant, [phone('p1', constant)], { constant: 50 }).link?.kind).not.toBe('linked')
  })
})

describe('an install that leaves out its hardware, or has another model', () => {
  const bare = { hardware: null, model: null, memoryBytes: null, setup: null, bootAtMs: null }
  const restored = { model: 'nokia', hardware: 'nokia', setup: 'nokia de', bootAtMs: 9_000_000 }

  it('is not on the phone whose identifiers it has, however many, and they count as shared', () => {
    const one = { media_drm_id: 'drm-1' }
    for (const identifiers of [base.identifiers, one]) {
      for (const traits of [bare, restored]) {
        const eve = { ...traits, identifiers, network: 'office', users: [] }
        expect(link(eve, [phone('p1')])).toMatchObject({ link: null, identifiersShared: true })
      }
    }
  })

  it('has this as evidence beside its attested key, which nothing can copy', () => {
    const keyed = { identifiers: { ...base.identifiers, attested_key: 'key' } }
    const { link: found } = link({ ...keyed, ...bare }, [phone('p1', keyed)])
    const weightOf = (name: string) => found!.evidence.find(({ field }) => field === name)!.weight
    expect(weightOf('identifier attested_key')).toBeGreaterThan(10)
    expect(weightOf('identifier media_drm_id')).toBe(0)
    expect(weightOf('omitted')).toBeLessThan(-5)
  })

  it('is on a phone that never told its hardware either', () => {
    expect(link(bare, [phone('p1', bare)]).link?.kind).toBe('linked')
  })
})

describe('copied identifiers', () => {
  const attacker = { hardware: 'nokia', setup: 'nokia de', network: 'office', users: ['eve'] }

  it('of a phone with other hardware are noticed', () => {
    const { identifiersShared, link: found } = link({ ...attacker, bootAtMs: 1 }, [phone('p1')])
    expect(identifiersShared).toBe(true)
    expect(found?.kind).not.toBe('linked')
  })

  it('are not those of one phone that was once not recognised', () => {
    const phones = [phone('p1'), phone('p2', { identifiers: { media_drm_id: 'drm-1' } })]
    const { identifiersShared, link: found } = link({}, phones, { 'drm-1': 2 })
    expect(identifiersShared).toBe(false)
    expect(found?.phoneId).toBe('p1')
  })
})

describe('a decision', () => {
  const phones = [
    phone('p1', { identifiers: {} }),
    phone('p2', { identifiers: {}, network: 'other' }),
    phone('p3', { identifiers: {}, users: ['bob'] }),
  ]

  it('does not depend on the order of the candidates', () => {
    const one = link({ identifiers: {} }, phones, { ada: 2 })
    expect(link({ identifiers: {} }, phones.toReversed(), { ada: 2 })).toEqual(one)
  })

  it('counts a phone that may be the same one as far as that is certain', () => {
    const same = { identifiers: {} }
    const alone = link(same, [phone('p1', same), phone('p2', same)], { ada: 2, pixel: 2 })
    const possible = { phoneId: 'p1', confidence: 0.9 }
    const two = [phone('p1', same), { ...phone('p2', same), possible }]
    const together = link(same, two, { ada: 2, pixel: 2 })
    expect(alone.link).toBeNull()
    expect(together.link!.confidence).toBeGreaterThan(0.9)
  })
})

describe('a weight', () => {
  const equal = {
    field: 'identifier',
    name: 'media_drm_id',
    level: 1,
    key: 'k',
  } as const

  it('falls with the number of phones that have the value, down to nothing', () => {
    const weights = [1, 2, 50, 20_000, 99_000].map((count) =>
      toWeight(parameters, equal, { holders: count, ofOneUser: false }),
    )
    expect(weights).toEqual(weights.toSorted((a, b) => b - a))
    expect(weights[0]).toBeGreaterThan(10)
    expect(weights.at(-1)).toBe(0)
  })

  it('of equal traits is less between phones of one user', () => {
    const traits = { field: 'traits', name: null, level: 3, key: 'k' } as const
    const [strangers, own] = [false, true].map((ofOneUser) =>
      toWeight(parameters, traits, { holders: 1, ofOneUser }),
    )
    expect(own!).toBeLessThan(strangers! / 2)
  })
})

describe('parameters', () => {
  it('are learned without anybody saying which installs are on one phone', () => {
    const identifier = (level: number) => ({
      one: { field: 'identifier', name: 'media_drm_id', level, key: level ? 'k' : null } as const,
      holders: 1,
    })
    const traits = (level: number) => ({
      one: { field: 'traits', name: null, level, key: level ? 'k' : null } as const,
      holders: level > 1 ? 1 : 500,
    })
    const user = (level: number) => ({
      one: { field: 'user', name: null, level, key: level ? 'k' : null } as const,
      holders: 1,
    })
    // Nine in ten of the returning keep their identifier; strangers share a model alone.
    const returning = Array.from({ length: 1_000 }, (_, at) => ({
      phones: 5_000,
      candidates: [[identifier(at % 10 === 0 ? 0 : 1), traits(3), user(1)]],
    }))
    const strangers = Array.from({ length: 4_000 }, () => ({
      phones: 5_000,
      candidates: [[identifier(0), traits(1), user(0)]],
    }))
    const learned = learnParameters(parameters, [...returning, ...strangers], 9_000)
    expect(learned).toMatchObject({ version: 1, phones: 9_000 })
    expect(learned.returning).toBeGreaterThan(0.17)
    expect(learned.returning).toBeLessThan(0.21)
    const { same } = learned.fields['identifier media_drm_id']!
    expect(same[1]).toBeGreaterThan(0.85)
    expect(same[1]).toBeLessThan(0.95)
  })
})

describe('keys', () => {
  it('tell values of one field from those of another', () => {
    const keys = toKeys({ ...base, identifiers: { a: 'x' }, users: ['x'], hardware: 'x' })
    expect(new Set(keys).size).toBe(keys.length)
    expect(toKeys({ ...base, setup: null, hardware: null, identifiers: {}, users: [] })).toEqual([])
  })
})
