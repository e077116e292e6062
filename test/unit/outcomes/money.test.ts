import { describe, expect, test } from 'vitest'
import {
  amountPattern,
  findAmountFault,
  formatAmount,
  isCurrency,
} from '#shared/core/outcomes/money.ts'

describe('an amount', () => {
  test('is a decimal text without a sign, an exponent or leading zeros', () => {
    for (const text of ['0', '0.5', '129.90', '999999999999.9999']) {
      expect([text, amountPattern.test(text)]).toEqual([text, true])
    }
    for (const text of [
      '',
      '.5',
      '5.',
      '-1',
      '+1',
      '01',
      '1e3',
      '1,50',
      '1 000',
      '1.23456',
      'NaN',
    ]) {
      expect([text, amountPattern.test(text)]).toEqual([text, false])
    }
    expect(amountPattern.test('1234567890123')).toBe(false)
  })

  test('has no more digits than its currency', () => {
    expect(findAmountFault('12.34', 'EUR')).toBe(null)
    expect(findAmountFault('12.345', 'EUR')).toMatch(/EUR has 2/)
    expect(findAmountFault('12.345', 'KWD')).toBe(null)
    expect(findAmountFault('12', 'JPY')).toBe(null)
    expect(findAmountFault('12.0', 'JPY')).toMatch(/JPY has not/)
  })

  test('is shown as its currency writes it, with every digit that it has', () => {
    expect(formatAmount('129.9000', 'EUR')).toBe('129.90')
    expect(formatAmount('0.1', 'EUR')).toBe('0.10')
    expect(formatAmount('500.0000', 'JPY')).toBe('500')
    expect(formatAmount('1.2340', 'KWD')).toBe('1.234')
    expect(formatAmount('99999999999999999999.9900', 'EUR')).toBe('99999999999999999999.99')
  })
})

test('a currency is one in use, in capitals', () => {
  expect(['EUR', 'USD', 'JPY', 'XOF'].every(isCurrency)).toBe(true)
  expect(['eur', 'DEM', 'XYZ', '', 'EURO'].some(isCurrency)).toBe(false)
})
