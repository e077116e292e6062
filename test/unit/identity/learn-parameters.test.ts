// Which version of the parameters counts, and how far what is learned may go.
import { describe, expect, it } from 'vitest'
import {
  comparedInstallsMin,
  learnedInstallsMin,
  tenantPhonesMin,
} from '#shared/core/base/limits/entities.ts'
import type { ObservedInstall } from '#shared/core/identity/estimate-parameters.ts'
import { isEnough, learnParameters } from '#shared/core/identity/learn-parameters.ts'
import { chooseVersion, toInitialParameters } from '#shared/core/identity/parameters.ts'

const initial = toInitialParameters(5_000)

describe('a version', () => {
  const versions = [30, 20, 10].map((validFromMs, at) => ({
    validFromMs,
    parameters: { ...initial, version: 3 - at },
  }))

  it.each([
    [9, undefined],
    [10, 1],
    [19, 1],
    [20, 2],
    [30, 3],
    [9_999, 3],
  ])('for an event that was received at %i is the latest that held then', (at, version) => {
    expect(chooseVersion(versions, at)?.version).toBe(version)
  })
})

/** Installs of one network and setup that an attacker makes up, all with the same user. */
const madeUp = (count: number): ObservedInstall[] =>
  Array.from({ length: count }, (_, at) => ({
    phones: 5_000,
    candidates: [
      [
        { one: { field: 'traits', name: null, level: 3, key: `setup-${at}` }, holders: 1 },
        { one: { field: 'user', name: null, level: 1, key: `user-${at}` }, holders: 1 },
        { one: { field: 'identifier', name: 'a', level: 0, key: null }, holders: 1 },
      ],
    ],
  }))

describe('what is learned', () => {
  it('needs enough installs, and enough with a phone to compare with', () => {
    const alone = { phones: 5_000, candidates: [] }
    const some = madeUp(comparedInstallsMin)
    const others = Array.from({ length: learnedInstallsMin - some.length }, () => alone)
    expect(isEnough([...some, ...others])).toBe(true)
    expect(isEnough([...some, ...others.slice(1)])).toBe(false)
    expect(isEnough([...some.slice(1), ...others, alone])).toBe(false)
  })

  it('never takes a value in common for much rarer than the first guess, nor differences for nothing', () => {
    const learned = learnParameters(initial, madeUp(200), 10)
    expect(learned.version).toBe(initial.version + 1)
    expect(learned.returning).toBeLessThanOrEqual(0.5)
    expect(learned.phones).toBe(tenantPhonesMin)
    for (const [name, field] of Object.entries(initial.fields)) {
      for (const [at, count] of (field.sharers ?? []).entries()) {
        expect(learned.fields[name]!.sharers![at]!).toBeGreaterThanOrEqual(count / 1_000)
      }
      expect(learned.fields[name]).toMatchObject({ differs: field.differs, chance: field.chance })
    }
    // All that came back had another identifier.
    expect(learned.fields['identifier a']!.same[0]).toBe(0.9)
  })
})
