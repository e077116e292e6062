import { expect, test } from 'vitest'
import { toCsvRow, toCsvStart } from '#shared/core/http/csv.ts'

test('a cell that a spreadsheet would run as a formula begins with an apostrophe', () => {
  const starts = [
    '=1+1',
    '+1',
    '-1',
    '@x',
    '\tx',
    '\rx',
    '\n=1',
    ' =1+1',
    '＝1+1',
    '＋1',
    '－1',
    '＠x',
  ]
  for (const text of starts) {
    expect(toCsvRow([text]), text).toBe(`"'${text}"\r\n`)
  }
  expect(toCsvRow(['a=1', -1, { digits: '-9007199254740993' }, 'x'])).toBe(
    '"a=1",-1,-9007199254740993,"x"\r\n',
  )
})

test('in Excel an id of digits keeps its zeros and all its digits', () => {
  expect(toCsvStart('excel')).toBe('\ufeff')
  const ids = ['0123', '1234567890123456', '123456789012345', 'a1', -1]
  expect(toCsvRow(ids, 'excel')).toBe(
    '"=""0123""","=""1234567890123456""","123456789012345","a1",-1\r\n',
  )
  expect(toCsvRow(ids)).toBe('"0123","1234567890123456","123456789012345","a1",-1\r\n')
  expect(toCsvRow(['=1+1', '12\n34'], 'excel')).toBe(`"'=1+1","12\n34"\r\n`)
})

test('commas, semicolons, quotes and line ends stay within their cell', () => {
  expect(toCsvRow(['a,b', 'say "x"', 'one\ntwo', ''])).toBe('"a,b","say ""x""","one\ntwo",""\r\n')
  expect(toCsvRow(['', null])).toBe('"",\\N\r\n')
  expect(toCsvRow(['', null], 'excel')).toBe('"",\r\n')
  // Where `;` separates, as Excel has it in half of Europe.
  expect(toCsvRow(['x;=1+1;y', 'a\t=1'])).toBe('"x;=1+1;y","a\t=1"\r\n')
})
