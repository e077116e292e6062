// Server addresses are valid, or rejected with the reason and without a secret in the message.
import { describe, expect, it, test } from 'vitest'
import {
  ConfigError,
  clickhouseVariables,
  natsVariables,
  readConfig,
  toNatsSettings,
  toShardUrls,
  variables,
} from '#shared/io/process/config.ts'
import {
  findPostgresUrlFault,
  parseNatsUrl,
  parsePostgresUrl,
  replaceDatabase,
} from '#shared/io/process/server-addresses.ts'

const secret = 'pa55word'

describe('NATS_URL', () => {
  it('names one server or several, with or without TLS', () => {
    expect(parseNatsUrl('localhost')).toMatchObject({ hosts: ['localhost'], tls: false })
    expect(parseNatsUrl('nats://h:1')).toMatchObject({ hosts: ['h:1'], tls: false, user: '' })
    expect(parseNatsUrl('TLS://[::1]:1')).toMatchObject({ hosts: ['[::1]:1'], tls: true })
    expect(parseNatsUrl('tls://di:p%40ss@a:1,b:2, tls://di:p%40ss@c:3')).toEqual({
      hosts: ['a:1', 'b:2', 'c:3'],
      tls: true,
      user: 'di',
      password: 'p@ss',
    })
  })

  it.each([
    'ws://h:1',
    'wss://h:1',
    'http://h:1',
    'nats+tls://h:1',
    'natss://h:1',
    'tls:/h',
    'nats://',
    `nats://di:${secret}@h:1?tls=true`,
    `nats://di:${secret}@h:1/account`,
    `tls://di:${secret}@h:1,nats://h:2`,
    `nats://di:${secret}@h:1,di:other@h:2`,
    'nats://h:99999',
  ])('%s is rejected at start', (url) => {
    const start = () => readConfig({ NATS_URL: variables.NATS_URL }, { NATS_URL: url })
    expect(start).toThrow(/NATS_URL must/)
    expect(start).not.toThrow(new RegExp(secret))
  })
})

test('a POSTGRES_URL names one server, or a primary and its standbys', () => {
  const one = `postgres://di:p%2Css@[::1]:5432/d?sslmode=verify-full`
  expect(findPostgresUrlFault(one)).toBeNull()
  expect(parsePostgresUrl(one)).toEqual({ urls: [one], readWrite: false })
  const several = 'postgres://di:p%40ss@a:1,[::1]:2,c/d?target_session_attrs=read-write'
  expect(findPostgresUrlFault(several)).toBeNull()
  expect(parsePostgresUrl(several)).toEqual({
    urls: ['a:1', '[::1]:2', 'c'].map(
      (host) => `postgres://di:p%40ss@${host}/d?target_session_attrs=read-write`,
    ),
    readWrite: true,
  })
  expect(replaceDatabase(several, 'postgres')).toEqual({
    url: several.replace('/d?', '/postgres?'),
    replaced: 'd',
  })
  expect(replaceDatabase('postgres://a', 'b').url).toBe('postgres://a/b')
})

describe('POSTGRES_URL and CLICKHOUSE_URL', () => {
  it.each([
    ['POSTGRES_URL', `postgres://di:${secret}@h/d?sslmode=requires`],
    ['POSTGRES_URL', `postgres://di:${secret}@h/d?sslmod=require`],
    ['POSTGRES_URL', `postgres://di:${secret}@h/d?tls=true`],
    ['POSTGRES_URL', `mysql://di:${secret}@h/d`],
    ['POSTGRES_URL', `postgres://di:${secret}@a,b/d`],
    ['POSTGRES_URL', `postgres://di:${secret}@a,b/d?target_session_attrs=any`],
    ['POSTGRES_URL', `postgres://di:${secret}@a,/d?target_session_attrs=read-write`],
    ['POSTGRES_URL', `postgres://di:${secret}@a:1,b:x/d?target_session_attrs=read-write`],
    ['POSTGRES_URL', `postgres://di:${secret}@a/d?target_session_attrs=prefer-standby`],
    ['POSTGRES_URL', `postgres://di:${secret}@/d?host=a,b&target_session_attrs=read-write`],
    ['CLICKHOUSE_URL', `http://di:${secret}@h:8123/d?secure=true`],
    ['CLICKHOUSE_URL', `clickhouse://di:${secret}@h:9000/d`],
    ['CLICKHOUSE_URL', `tcp://di:${secret}@h:9000/d`],
  ] as const)('%s=%s is rejected at start', (name, url) => {
    const start = () => readConfig({ [name]: variables[name] }, { [name]: url })
    expect(start).toThrow(new RegExp(name))
    expect(start).not.toThrow(new RegExp(secret))
  })

  it.each([
    ['POSTGRES_URL', 'postgres://di@h/d?sslmode=require&channel_binding=require'],
    ['POSTGRES_URL', 'postgresql://di@h/d?sslmode=verify-full&application_name=x'],
    ['CLICKHOUSE_URL', 'https://di@h:8443/d'],
  ] as const)('%s=%s is accepted', (name, url) => {
    expect(readConfig({ [name]: variables[name] }, { [name]: url })).toEqual({ [name]: url })
  })
})

describe('CLICKHOUSE_CLUSTER', () => {
  const read = (env: Record<string, string>) => toShardUrls(readConfig(clickhouseVariables, env))
  const url = `http://di:${secret}@a:8123/events`

  it('gives every server the credentials and the database of CLICKHOUSE_URL, in its order', () => {
    expect(read({ CLICKHOUSE_URL: url })).toEqual([])
    const cluster = 'https://b:8443; http://a:8123'
    expect(read({ CLICKHOUSE_URL: url, CLICKHOUSE_CLUSTER: cluster })).toEqual([
      [`https://di:${secret}@b:8443/events`],
      [`http://di:${secret}@a:8123/events`],
    ])
    // A default port is not that of CLICKHOUSE_URL.
    expect(read({ CLICKHOUSE_URL: url, CLICKHOUSE_CLUSTER: 'http://a:8123;https://b' })).toEqual([
      [`http://di:${secret}@a:8123/events`],
      [`https://di:${secret}@b/events`],
    ])
    // The last one of a shard's replicas, and of the shards.
    expect(read({ CLICKHOUSE_URL: url, CLICKHOUSE_CLUSTER: 'http://a:8123' })).toEqual([
      [`http://di:${secret}@a:8123/events`],
    ])
  })

  it('has the replicas of a shard between commas', () => {
    const cluster = 'http://c:8123 , http://d:8123;http://b:8123,http://a:8123;http://e:8123'
    const hosts = read({ CLICKHOUSE_URL: url, CLICKHOUSE_CLUSTER: cluster }).map((replicas) =>
      replicas.map((one) => new URL(one).hostname),
    )
    expect(hosts).toEqual([['c', 'd'], ['b', 'a'], ['e']])
  })

  it.each([
    ['http://a:8123;http://a:8123', /a server twice/],
    ['http://a:8123,http://b:8123;http://b:8123', /a server twice/],
    ['http://a:8123,http://b:8123,http://c:8123', /more than 2 replicas/],
    ['http://a:8123;b', /addresses of all servers/],
    ['http://a:8123,;http://b:8123', /addresses of all servers/],
    ['http://a:8123;', /addresses of all servers/],
    ['http://a:8123;http://b:8123/events', /hosts and ports only/],
    ['http://a:8123;http://di:x@b:8123', /hosts and ports only/],
    ['http://b:8123;http://c:8123', /CLICKHOUSE_URL must be one of the servers/],
  ])('%s is rejected at start', (cluster, why) => {
    const start = () => read({ CLICKHOUSE_URL: url, CLICKHOUSE_CLUSTER: cluster })
    expect(start).toThrow(ConfigError)
    expect(start).toThrow(why)
    expect(start).not.toThrow(new RegExp(secret))
  })
})

describe('signing in to NATS', () => {
  const settings = (env: Record<string, string>) => toNatsSettings(readConfig(natsVariables, env))
  const file = import.meta.filename
  const seed = `SU${'A'.repeat(56)}`

  it('uses one method at a time, and a certificate needs its key', () => {
    const both = { NATS_URL: `nats://di:${secret}@h`, NATS_NKEY_SEED: seed }
    expect(() => settings(both)).toThrow(ConfigError)
    expect(() => settings({ NATS_CREDS_FILE: file, NATS_NKEY_SEED: seed })).toThrow(/one way/)
    expect(() => settings({ NATS_CERT_FILE: file })).toThrow(/NATS_KEY_FILE/)
    expect(settings({ NATS_CERT_FILE: file, NATS_KEY_FILE: file, NATS_NKEY_SEED: seed })).toEqual({
      url: 'nats://127.0.0.1:4222',
      telemetryStreams: 1,
      tlsFirst: false,
      certFile: file,
      keyFile: file,
      nkeySeed: seed,
    })
  })

  it('begins with TLS only where TLS is required', () => {
    const first = { NATS_TLS_FIRST: '1' }
    expect(() => settings(first)).toThrow(ConfigError)
    expect(() => settings(first)).toThrow(/NATS_TLS_FIRST needs TLS/)
    expect(() => settings({ NATS_TLS_FIRST: 'yes' })).toThrow(/NATS_TLS_FIRST/)
    expect(settings({ NATS_TLS_FIRST: '0' })).toMatchObject({ tlsFirst: false })
    for (const tls of [
      { NATS_URL: 'tls://h:4222' },
      { NATS_CA_FILE: file },
      { NATS_CERT_FILE: file, NATS_KEY_FILE: file },
    ]) {
      expect(settings({ ...first, ...tls } as Record<string, string>)).toMatchObject({
        tlsFirst: true,
      })
    }
  })

  it('needs files that can be read, and a valid seed', () => {
    for (const name of ['NATS_CA_FILE', 'NATS_CERT_FILE', 'NATS_KEY_FILE', 'NATS_CREDS_FILE']) {
      expect(() => settings({ [name]: '/nowhere' })).toThrow(`${name} names a file that cannot`)
    }
    expect(() => settings({ NATS_NKEY_SEED: secret })).toThrow(/NATS_NKEY_SEED must be the seed/)
    expect(() => settings({ NATS_NKEY_SEED: secret })).not.toThrow(new RegExp(secret))
  })
})
