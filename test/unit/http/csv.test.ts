import { expect, test } from 'vitest'
import { createFormulaGuard, toCsvRow } from '#shared/core/http/csv.ts'

test('a cell that a spreadsheet would run as a formula begins with an apostrophe', () => {
  for (const text of ['=1+1', '+1', '-1', '@x', '\tx', '\rx']) {
    expect(toCsvRow([text]).replaceAll('"', '').startsWith(`'${text[0]}`), text).toBe(true)
  }
  expect(toCsvRow(['a=1', -1, 'x'])).toBe('a=1,-1,x\r\n')
})

test('commas, quotes and line ends stay within their cell', () => {
  expect(toCsvRow(['a,b', 'say "x"', 'one\ntwo', ''])).toBe('"a,b","say ""x""","one\ntwo",\r\n')
})

test('the guard changes texts that begin like formulas, however the CSV is cut', () => {
  const given = '"a","=b"\n"=1",-1,"x=","""=y","x,""=",""\n"","-""z","\t","@\n=","é"\r\n'
  const safe = `"a","'=b"\n"'=1",-1,"x=","""=y","x,""=",""\n"","'-""z","'\t","'@\n=","é"\r\n`
  const bytes = Buffer.from(given)
  for (let size = 1; size <= bytes.length; size++) {
    const guard = createFormulaGuard()
    const pieces: Uint8Array[] = []
    for (let at = 0; at < bytes.length; at += size) {
      pieces.push(...guard(bytes.subarray(at, at + size)))
    }
    expect(Buffer.concat(pieces).toString(), `in chunks of ${size}`).toBe(safe)
  }
})
