// What a log line contains of an error, and what it omits.
import { ClickHouseError } from '@clickhouse/client'
import { expect, it } from 'vitest'
import { toLogged } from '#shared/io/process/log.ts'

it('a log line omits the data that ClickHouse quotes', () => {
  const error = new ClickHouseError({
    message: "Cannot parse 'device-1234' as UInt64",
    code: '6',
    type: 'CANNOT_PARSE_TEXT',
  })
  expect(toLogged(error)).toEqual({
    type: 'ClickHouseError',
    message: 'ClickHouse answered CANNOT_PARSE_TEXT',
    code: '6',
  })
})

it('a log line contains the text, code and stack of other errors, and no other field', () => {
  const error = Object.assign(new TypeError('no such thing'), { code: 'E1', sent: 'secret' })
  expect(toLogged(error)).toEqual({
    type: 'TypeError',
    message: 'no such thing',
    code: 'E1',
    stack: error.stack,
  })
  expect(toLogged('text')).toEqual({ message: 'text' })
})

it('a thrown object that is no error is logged by its known fields', () => {
  const thrown = { code: '60', type: 'UNKNOWN_TABLE', sent: 'secret' }
  expect(toLogged(thrown)).toEqual({ type: 'UNKNOWN_TABLE', message: undefined, code: '60' })
})
