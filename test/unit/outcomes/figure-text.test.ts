import { expect, test } from 'vitest'
import {
  toAmountText,
  toGainText,
  toPercentText,
  toRateText,
} from '#shared/core/outcomes/figure-text.ts'
import { toRate } from '#shared/core/outcomes/wilson.ts'

test('a rate reads with its interval, with two digits and no more', () => {
  expect(toRateText(toRate(140, 150))).toBe('93 % (88 to 96)')
  expect(toRateText(toRate(3, 200))).toBe('1.5 % (0.5 to 4.3)')
  expect(toRateText(toRate(0, 50))).toBe('0 % (0 to 7.1)')
  expect(toRateText(toRate(50, 50))).toBe('100 % (93 to 100)')
  // Not all is never said to be all.
  expect(toRateText(toRate(995, 1000))).toBe('99.5 % (99 to 99.8)')
  expect(toRateText(toRate(9, 9))).toBe('too few to say')
  expect([0.0999, 0.0994, 0.5].map(toPercentText)).toEqual(['10 %', '9.9 %', '50 %'])
})

test('money has commas between thousands and keeps every digit', () => {
  const amounts = ['0.00', '999.50', '1000', '22827.00', '1234567.1234']
  expect(amounts.map(toAmountText)).toEqual([
    ...['0.00', '999.50', '1,000', '22,827.00', '1,234,567.1234'],
  ])
})

test('a gain says which way it goes, without a minus', () => {
  expect(toGainText({ low: 0.012, high: 0.1 })).toBe('1.2 to 10.0 points more')
  expect(toGainText({ low: -0.021, high: 0.102 })).toBe('2.1 points less to 10.2 points more')
  expect(toGainText({ low: -0.1, high: -0.012 })).toBe('1.2 to 10.0 points less')
})
