import { describe, expect, test } from 'vitest'
import {
  toBootSql,
  toServerConfigXml,
  toUsersXml,
} from '../../../deploy/local/clickhouse/server-config.ts'

const analystPasswordSha256Hex = 'cd34'
const open = {
  logLevel: 'critical',
  passwordSha256Hex: null,
  startupGatePort: null,
  analystPasswordSha256Hex,
  users: [{ name: 'api', passwordSha256Hex: 'ef'.repeat(32), grants: ['GRANT SELECT ON a.`b<&`'] }],
  shards: null,
}
const closed = {
  logLevel: 'debug',
  passwordSha256Hex: 'ab12',
  startupGatePort: 4711,
  analystPasswordSha256Hex,
  users: [],
  shards: { ports: [9001, 9002], own: 1, secret: 'ab12' },
}

describe('the configuration of the embedded ClickHouse', () => {
  test('checks a password before the startup gate', () => {
    const users = toUsersXml(closed)
    expect(users).not.toContain('<password></password>')
    const hash = users.indexOf('<password_sha256_hex>ab12</password_sha256_hex>')
    expect(hash).toBeGreaterThan(0)
    expect(users.indexOf('<http_authentication>')).toBeGreaterThan(hash)
    expect(toServerConfigXml(closed)).toContain('<uri>http://127.0.0.1:4711/</uri>')
  })

  test('has no startup gate without a password', () => {
    expect(toUsersXml(open)).toContain('<password></password>')
    expect(toUsersXml(open)).not.toContain('http_authentication')
    expect(toServerConfigXml(open)).not.toContain('http_authentication')
  })

  test('accepts users of this machine only', () => {
    const allowed = [...toUsersXml(closed).matchAll(/<ip>([^<]*)<\/ip>/g)].map((match) => match[1])
    expect(allowed).toEqual(['127.0.0.1', '::1', '127.0.0.1', '::1'])
  })

  test('gives a further user its own escaped grants and all rows of the views', () => {
    expect(toUsersXml(open)).toContain('<query>GRANT SELECT ON a.`b&lt;&amp;`</query>')
    expect(toUsersXml(open)).toContain("currentUser() in ('default', 'api') or tenant_id")
    const users = [{ name: 'a><b', passwordSha256Hex: 'ef'.repeat(32), grants: [] }]
    expect(() => toUsersXml({ ...open, users })).toThrow('not a user')
  })

  test('names every shard to a shard, and opens the native port of a shard only', () => {
    const xml = toServerConfigXml(closed)
    expect([...xml.matchAll(/<port>(\d+)</g)].map(([, port]) => port)).toEqual(['9001', '9002'])
    expect(xml).toContain('<tcp_port>9002</tcp_port>')
    expect(xml).toContain('<secret>ab12</secret>')
    expect(toServerConfigXml(open)).not.toContain('tcp_port')
    expect(toBootSql('/port', true)).toContain('LISTEN TCP')
    expect(toBootSql('/port', false)).not.toContain('TCP')
  })

  test('keeps a quote or backslash in the path of the port file inside its string', () => {
    expect(toBootSql("/a'b\\c/port", false)).toContain("INTO OUTFILE '/a\\'b\\\\c/port' TRUNCATE")
  })

  test('closes every element that it opens', () => {
    for (const xml of [open, closed].flatMap((f) => [toServerConfigXml(f), toUsersXml(f)])) {
      const stack: string[] = []
      for (const [, slash, name] of xml.matchAll(/<(\/?)(\w+)>/g)) {
        if (slash) expect(stack.pop()).toBe(name)
        else stack.push(name!)
      }
      expect(stack).toEqual([])
    }
  })
})
