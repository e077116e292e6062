import { expect, test } from 'vitest'
import { toCsvRow } from '#shared/core/http/csv.ts'

test('a cell that a spreadsheet would run as a formula begins with an apostrophe', () => {
  for (const text of ['=1+1', '+1', '-1', '@x', '\tx', '\rx']) {
    expect(toCsvRow([text]).replaceAll('"', '').startsWith(`'${text[0]}`), text).toBe(true)
  }
  expect(toCsvRow(['a=1', -1, 'x'])).toBe('a=1,-1,x\r\n')
})

test('commas, quotes and line ends stay within their cell', () => {
  expect(toCsvRow(['a,b', 'say "x"', 'one\ntwo', ''])).toBe('"a,b","say ""x""","one\ntwo",\r\n')
})
