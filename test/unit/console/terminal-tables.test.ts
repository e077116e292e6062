// Texts in the terminal: what people and clients typed cannot steer it or add a row.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { createCliContext } from '../../../services/console/cli/context.ts'
import { toFields, toTable } from '../../../services/console/cli/tables.ts'

const hostile = 'a\u001b[2J\u009b1m\n\u202eb'
const visible = 'a\\u{1b}[2J\\u{9b}1m\\u{a}\\u{202e}b'

describe('texts that others typed', () => {
  it('are escaped in a table, whose columns stay aligned', () => {
    expect(
      toTable(
        ['NAME', 'ROLE'],
        [
          [hostile, 'viewer'],
          ['é', 'admin'],
        ],
      ).split('\n'),
    ).toEqual([
      `${'NAME'.padEnd(visible.length)}  ROLE`,
      `${visible}  viewer`,
      `${'é'.padEnd(visible.length)}  admin`,
    ])
  })

  it('are escaped in fields', () => {
    expect(toFields({ name: hostile, score: 7, note: null, left: undefined })).toBe(
      `name   ${visible}\nscore  7\nnote   -`,
    )
  })

  it('are escaped in the message of a failed call', async () => {
    const errors = [{ path: '$.id', message: hostile }]
    const body = JSON.stringify({ detail: hostile, code: 'conflict', request_id: 'req', errors })
    const type = { 'content-type': 'application/problem+json' }
    const server = createServer((_, answer) => answer.writeHead(409, type).end(body))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const env = { ADMIN_TOKEN: 'token', CONSOLE_URL: `http://127.0.0.1:${port}` }
    const { adminFetch } = createCliContext({ env, json: () => false, write: () => {} })
    const failed = await adminFetch('GET', '/').catch((error: Error) => error.message)
    server.close()
    expect(failed).toBe(`${visible} (conflict, req)\n  $.id: ${visible}`)
  })
})
