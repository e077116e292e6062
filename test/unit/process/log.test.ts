// What a log line contains of an error, and what it omits.
import { ClickHouseError } from '@clickhouse/client'
import { ErrorCode, NatsError } from 'nats'
import pg from 'pg'
import { expect, it } from 'vitest'
import { toLogged } from '#shared/io/process/log.ts'

const { DatabaseError } = pg

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
    at: expect.stringContaining('log.test.ts'),
  })
})

it('a log line has the code of what Postgres or NATS answered, and not its text', () => {
  const text = 'invalid input syntax for type uuid: "device-1234"\nbody-of-a-phone'
  const refused = Object.assign(new DatabaseError(text, 10, 'error'), {
    code: '22P02',
    detail: 'Key (device_id)=(device-1234)',
    table: 'alerts',
  })
  const answers = [
    [refused, 'Postgres answered 22P02'],
    [new NatsError(text, ErrorCode.ProtocolError), 'NATS answered NATS_PROTOCOL_ERR'],
    [toJetstreamError(text), 'NATS answered 10071'],
    [parseFault('HMSG device-1234 {'), 'a text cannot be parsed'],
  ] as const
  for (const [error, message] of answers) {
    const logged = toLogged(error)
    expect(logged.message).toBe(message)
    expect(JSON.stringify(logged)).not.toMatch(/device-1234|body-of-a-phone|HMSG/)
    expect(logged.at).toContain('log.test.ts')
  }
  expect(toLogged(refused).table).toBe('alerts')
})

function toJetstreamError(text: string): NatsError {
  const error = new NatsError(text, ErrorCode.JetStreamInvalidAck)
  error.api_error = { code: 400, err_code: 10071, description: text }
  return error
}

function parseFault(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    return error
  }
}

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
