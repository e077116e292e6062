// The phones of the latest installs with a key, and that comparing costs a bounded number of steps.
import { describe, expect, it } from 'vitest'
import {
  candidatesMax,
  comparedInstallsMax,
  latestHoldersMax,
  phoneInstallsMax,
  phonesOfKeyMax,
} from '#shared/core/base/limits/entities.ts'
import { type InstallTraits, listKeys } from '#shared/core/identity/comparison.ts'
import {
  findCandidates,
  type LinksByPhone,
  type PhoneLink,
} from '#shared/core/identity/decide-link.ts'
import { createKeyPhones } from '#shared/core/identity/key-phones.ts'

const toLink = (n: number, more: Partial<PhoneLink> = {}): PhoneLink => ({
  tenantId: 'acme',
  deviceId: `i-${n}`,
  phoneId: 'p',
  kind: 'linked',
  possible: null,
  confidence: 1,
  identifiersShared: false,
  doubtful: [],
  fixed: null,
  isCompared: true,
  installs: [],
  parametersVersion: 0,
  streamOffset: n,
  receivedAtMs: n,
  ...more,
})

describe('the phones of a key', () => {
  const fill = (links: readonly (PhoneLink | undefined)[], identifier: string | null = 'a') => {
    const known = createKeyPhones({ identifier })
    for (const link of links) known.add(link)
    return [...known.phones].map(([phoneId, own]) => [phoneId, own.map((one) => one.streamOffset)])
  }

  it('are those of its latest installs', () => {
    const first = toLink(0, { phoneId: 'first' })
    const others = Array.from({ length: latestHoldersMax - 1 }, (_, n) => toLink(n + 1))
    const offsets = others.map(({ streamOffset }) => streamOffset)
    expect(fill([first, ...others])).toEqual([
      ['first', [0]],
      ['p', offsets],
    ])
    expect(fill([first, ...others, toLink(99)])).toEqual([['p', [...offsets, 99]]])
    // An erased one counts as one that had the key.
    expect(fill([first, ...others, undefined])).toEqual([['p', offsets]])
  })

  it('are without installs that were not compared, and those of shared identifiers', () => {
    const links = [
      toLink(1),
      toLink(2, { phoneId: 'left', isCompared: false }),
      toLink(3, { phoneId: 'shared', identifiersShared: true }),
    ]
    expect(fill(links)).toEqual([['p', [1]]])
    expect(fill(links, null)).toEqual([
      ['p', [1]],
      ['shared', [3]],
    ])
  })
})

describe('the steps of an install', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'attested_key']
  const traits: InstallTraits = {
    identifiers: Object.fromEntries(names.map((name) => [name, name])),
    hardware: 'model',
    model: 'model',
    memoryBytes: null,
    setup: 'model de',
    network: 'home',
    users: ['account', 'user'],
    bootAtMs: 1,
  }
  const keys = listKeys(traits)
  const findSteps = (holdersOf: () => LinksByPhone) => {
    let compared = 0
    const { phones, steps } = findCandidates(traits, {
      holdersOf: () => ({ count: latestHoldersMax, doubtful: 0, phones: holdersOf() }),
      linkOf: () => undefined,
      firstOf: () => {
        compared++
        return { traits, receivedAtMs: 1 }
      },
    })
    return { phones: phones.size, steps, compared }
  }

  it('are one a key where nobody has it', () => {
    expect(findSteps(() => new Map())).toEqual({ phones: 0, steps: keys.length, compared: 0 })
  })

  it('do not rise with the installs of a phone', () => {
    const earlier = Array.from({ length: phoneInstallsMax }, (_, n) => `earlier-${n}`)
    const links = Array.from({ length: latestHoldersMax }, (_, n) =>
      toLink(n, { installs: earlier }),
    )
    // The first and the latest link, the installs that are compared, and what is in common.
    expect(findSteps(() => new Map([['p', links]]))).toEqual({
      phones: 1,
      steps: keys.length + 2 + comparedInstallsMax + 1,
      compared: comparedInstallsMax,
    })
  })

  it('have a bound, however many phones and installs its keys lead to', () => {
    let key = 0
    const many = () => {
      const ofKey = key++
      const phones = Array.from({ length: phonesOfKeyMax }, (_, n) => `p-${ofKey}-${n}`)
      return new Map(
        phones.map((phoneId, at) => {
          const own = Array.from({ length: phoneInstallsMax + 9 }, (_, n) => {
            const place = 1_000 * (phonesOfKeyMax * ofKey + at) + n
            return toLink(place, { phoneId })
          })
          return [phoneId, own]
        }),
      )
    }
    const { phones, steps } = findSteps(many)
    expect(phones).toBe(candidatesMax)
    const ofPhone = phoneInstallsMax + 1 + comparedInstallsMax + 1
    expect(steps).toBe(keys.length * phonesOfKeyMax + candidatesMax * ofPhone)
  })
})
