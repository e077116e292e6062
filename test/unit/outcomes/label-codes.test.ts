// Which codes a label may have: an innocent word must not count as fraud.
import { expect, test } from 'vitest'
import { findCodeFault, findLabelFault, listCodes } from '#shared/core/outcomes/label-codes.ts'
import type { Outcome } from '#shared/core/outcomes/labels.ts'

const declared = new Map<string, Outcome>([
  ['mule_account', 'fraud'],
  ['trusted_customer', 'legitimate'],
])

test('a code that was not declared is refused, and the nearest known one is named', () => {
  const nearest = (code: string) => /nearest is (\w+)/.exec(findLabelFault(code, declared)!)?.[1]
  for (const word of ['legit', 'genuine', 'not_fraud', 'not-fraud', 'false_positive', 'good']) {
    expect([word, nearest(word)]).toEqual([word, 'legitimate'])
  }
  expect(nearest('chargebck')).toBe('chargeback')
  expect(nearest('mule_acount')).toBe('mule_account')
  expect(nearest('trusted_custmer')).toBe('trusted_customer')
  for (const { code } of listCodes(declared)) expect(findLabelFault(code, declared)).toBeNull()
  expect(findLabelFault('mule_account', new Map())).not.toBeNull()
})

test('a declared code must differ from those that every tenant has', () => {
  for (const code of ['fraud', 'retracted', 'chargebacks', 'legitimat', 'frauds']) {
    expect([code, findCodeFault(code)]).not.toEqual([code, null])
  }
  for (const code of ['legit', 'mule_account', 'good']) expect(findCodeFault(code)).toBeNull()
})

test('the list has what each code means', () => {
  expect(listCodes(declared).map(({ code, means }) => `${code} ${means}`)).toEqual([
    ...['chargeback fraud', 'account_takeover fraud', 'promo_abuse fraud', 'fraud fraud'],
    ...['legitimate legitimate', 'retracted null'],
    ...['mule_account fraud', 'trusted_customer legitimate'],
  ])
})
