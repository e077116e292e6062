import { describe, expect, it } from 'vitest'
import {
  type CountedCorrection,
  countInstalls,
  toPresentPhone,
} from '#shared/core/identity/phone.ts'
import { readPhoneFields } from '#shared/io/identity/read-phone-fields.ts'
import {
  toFactor,
  toFieldName,
  toFound,
  toSigned,
} from '../../../services/console/web/pages/phone/evidence-words.ts'

const correction = (deviceId: string, fromPhoneId: string, phoneId: string): CountedCorrection => ({
  correctionId: `phc_${deviceId}`,
  deviceId,
  fromPhoneId,
  phoneId,
})

describe('the phone of an install', () => {
  it('is what was decided, with what an uncertain link leaves for its own phone', () => {
    const decided = { phoneId: 'own', confidence: 0.85 }
    expect(toPresentPhone({ ...decided, kind: 'linked' }, undefined)).toEqual(decided)
    expect(toPresentPhone({ ...decided, kind: 'possible' }, undefined)).toEqual({
      phoneId: 'own',
      confidence: 0.15,
    })
    expect(toPresentPhone({ phoneId: 'own', confidence: 1, kind: 'first' }, undefined)).toEqual({
      phoneId: 'own',
      confidence: 1,
    })
  })

  it('is what an analyst says, for certain', () => {
    const link = { phoneId: 'a', confidence: 0.85, kind: 'linked' as const }
    expect(toPresentPhone(link, correction('d', 'a', 'b'))).toEqual({ phoneId: 'b', confidence: 1 })
  })

  it('counts installs as corrected: moved ones once, unmoved ones as decided', () => {
    const moved = [
      correction('d1', 'a', 'b'),
      correction('d2', 'c', 'a'),
      correction('d3', 'a', 'a'),
    ]
    expect(countInstalls('a', 4, moved)).toBe(4)
    expect(countInstalls('b', 0, moved)).toBe(1)
    expect(countInstalls('c', 1, moved)).toBe(0)
    // Of an install that is being erased one of the two stores still knows.
    expect(countInstalls('c', 0, moved)).toBe(0)
  })

  it('is left out of an answer while phones cannot be read, and null where nothing was decided', async () => {
    const query = { tenantId: 't', deviceIds: ['d'] }
    const failing = await readPhoneFields(() => Promise.reject(new Error('away')), query)
    expect(failing('d')).toEqual({})
    const read = await readPhoneFields(async () => new Map(), query)
    expect(read('d')).toEqual({ phone: null })
  })
})

describe('evidence in words', () => {
  it.each([
    ['identifier keychain_id', 1, 'Identifier keychain_id', 'equal'],
    ['identifier keychain_id', 0, 'Identifier keychain_id', 'differs'],
    ['traits', 2, 'Hardware and settings', 'the same hardware, system and settings'],
    ['user', 0, 'Users', 'other users'],
    ['constructor', 1, 'constructor', 'equal'],
    ['traits', 9, 'Hardware and settings', 'equal'],
  ])('names %s at level %i', (field, level, name, found) => {
    expect([toFieldName({ field }), toFound({ field, level })]).toEqual([name, found])
  })

  it.each([
    [Math.log(480), '480 times as likely', '+6.2'],
    [-Math.log(2), '1/2 as likely', '−0.7'],
    [0, 'as likely', '0.0'],
  ])('says a weight of %f as a factor', (weight, factor, signed) => {
    expect([toFactor(weight), toSigned(weight)]).toEqual([factor, signed])
  })
})
