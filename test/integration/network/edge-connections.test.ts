/**
 * What an edge says of the address that an event came from: looked up once the signature holds, for
 * each event alone and in a batch. What a client makes up moves nothing, and what is not of the
 * internet is not measured.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signBody } from '#shared/core/telemetry/signature.ts'
import type { TenantEntry } from '#shared/core/tenants/directory-entries.ts'
import { createNetworkData, type NetworkData } from '#shared/io/network/network-data.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { writeMmdb } from '../../../deploy/local/network/mmdb-writer.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { register, sealRoots, sendWithToken } from '../../support/installs/install-client.ts'
import { until } from '../../support/process/until.ts'
import {
  bodyOf,
  type EdgeRig,
  send,
  startEdgeRig,
  type TestEdge,
  type TestTenant,
} from '../../support/telemetry/edge-rig.ts'

const keyOf: Record<string, Buffer> = {}
let rig: EdgeRig
let folder: string
let data: NetworkData
/** Behind a proxy on this machine, and without one. */
let [behindProxy, bare]: TestEdge[] = []
let [acme, other, relaying, keeping, keyless]: TestTenant[] = []
const lines: string[] = []

async function project(tenantId: string, change: Partial<TenantEntry> = {}): Promise<TestTenant> {
  keyOf[tenantId] = randomBytes(32)
  const text = keyOf[tenantId].toString('base64')
  return rig.projectTenant(tenantId, {
    environment: 'sandbox',
    address_key_sealed: rig.sealer.seal(text, { tenantId, kind: 'address' }),
    ...change,
  })
}

async function put(name: string, content: string | Buffer): Promise<void> {
  await writeFile(join(folder, `${name}.new`), content)
  await rename(join(folder, `${name}.new`), join(folder, name))
}

const city = (country: string) =>
  writeMmdb([
    ['8.8.0.0/16', { country: { iso_code: country }, location: { latitude: 52.5, longitude: 13 } }],
    ['2a00:1450::/32', { country: { iso_code: 'IE' } }],
  ])

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edge-network-'))
  await put('city.mmdb', city('DE'))
  await put('asn.mmdb', writeMmdb([['8.8.8.0/24', { asn: 'AS64500', as_name: 'Example Net' }]]))
  await put('vpn.txt', '8.8.8.8\n')
  await put('mobile.txt', '8.8.9.0/24\n')
  data = createNetworkData({
    folder,
    log: testLog,
    metrics: createMetrics('test'),
    wallMs: Date.now,
  })
  await data.look()
  rig = await startEdgeRig()
  const log = pino({ level: 'info' }, { write: (line: string) => lines.push(line) })
  const network = data.sources
  behindProxy = await rig.startEdge({ network, log, trustedProxies: ['127.0.0.1'] })
  bare = await rig.startEdge({ network, log })
  acme = await project('acme', { install_roots: sealRoots(rig.sealer, 'acme', 1) })
  other = await project('other')
  relaying = await project('relaying', {
    client_address: 'body',
    install_roots: sealRoots(rig.sealer, 'relaying', 1),
  })
  keeping = await project('keeping', { store_client_address: true })
  keyless = await rig.projectTenant('keyless', {})
  for (const { directory } of [behindProxy, bare]) {
    await until('the edge has every tenant', () => directory.revision() >= keyless!.revision)
  }
})
afterAll(async () => {
  await rig?.stop()
  await rm(folder, { recursive: true })
})

/** What an accepted event has of its connection, in its head. */
async function connectionOf(eventId: unknown) {
  const head = (await rig.readStored()).find((event) => event.event_id === eventId)!
  return { connection: head.connection, signals: head.server_signals?.connection }
}
const nothing = { connection: undefined, signals: undefined }

type Sending = {
  tenant?: TestTenant | undefined
  edge?: TestEdge | undefined
  headers?: Record<string, string>
  more?: Record<string, unknown>
}
async function sendFrom({ tenant = acme, edge = behindProxy, headers, more }: Sending) {
  const { tenantId, secret } = tenant!
  const answer = await send(edge!, bodyOf(tenantId, more), { secret, ...(headers && { headers }) })
  expect(answer.status).toBe(200)
  return connectionOf(answer.body.event_id)
}
const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
const hashOf = (address: string, tenantId: string) =>
  createHmac('sha256', keyOf[tenantId]!).update(address).digest('base64url').slice(0, 22)

describe('an event', () => {
  it('has what the data says of its address', async () => {
    expect(await sendFrom(from('8.8.8.8'))).toEqual({
      connection: {
        network: '8.8.8.0/24',
        address_hash: hashOf('8.8.8.8', 'acme'),
        country: 'DE',
        asn: 64_500,
        organization: 'Example Net',
        latitude: 52.5,
        longitude: 13,
        kinds: ['vpn'],
      },
      // Of the other kinds no source could have said yes.
      signals: { country: 'DE', asn: 'AS64500', vpn: true },
    })
  })

  it.each([
    ['IPv4 in IPv6', '::ffff:8.8.4.4', '8.8.4.4', '8.8.4.0/24', 'DE'],
    ['IPv4 with a port', '8.8.4.4:50000', '8.8.4.4', '8.8.4.0/24', 'DE'],
    ['IPv6', '[2A00:1450:0::1]:443', '2a00:1450::1', '2a00:1450::/48', 'IE'],
    ['an address that no file has', '9.9.9.9', '9.9.9.9', '9.9.9.0/24', undefined],
  ])('from %s has its one spelling', async (_, sent, address, network, country) => {
    const of = country === undefined ? {} : { country }
    const { connection, signals } = await sendFrom(from(sent))
    expect(connection).toMatchObject({ network, address_hash: hashOf(address, 'acme'), ...of })
    expect(signals).toEqual({ ...of, vpn: false })
  })

  it.each([
    ['loopback', '127.0.0.1'],
    ['loopback of IPv6', '::1'],
    ['a private address', '10.1.2.3'],
    ['a private one in IPv6', '::ffff:192.168.1.1'],
    ['CGNAT', '100.64.0.1'],
    ['a link-local one', 'fe80::1'],
    ['a unique-local one', 'fd00::1'],
    ['documentation', '203.0.113.9'],
    ['documentation of IPv6', '2001:db8::1'],
  ])('from %s is not measured', async (_, address) => {
    expect(await sendFrom(from(address))).toEqual(nothing)
  })

  it('keeps the full address only where its tenant wants that', async () => {
    const { connection } = await sendFrom({ tenant: keeping, ...from('8.8.8.8') })
    expect(connection).toMatchObject({
      address: '8.8.8.8',
      address_hash: hashOf('8.8.8.8', 'keeping'),
    })
    expect((await sendFrom(from('8.8.8.8'))).connection).not.toHaveProperty('address')
  })

  it('has another hash of the same address at another tenant', async () => {
    const [own, theirs] = [
      await sendFrom(from('8.8.8.8')),
      await sendFrom({ tenant: other, ...from('8.8.8.8') }),
    ]
    expect(theirs.connection!.address_hash).toBe(hashOf('8.8.8.8', 'other'))
    expect(theirs.connection!.address_hash).not.toBe(own.connection!.address_hash)
  })

  it('of a tenant that has no key yet is not measured', async () => {
    expect(await sendFrom({ tenant: keyless, ...from('8.8.8.8') })).toEqual(nothing)
  })

  it('keeps what a client calls server signals apart', async () => {
    const signals = { connection: { country: 'XX', vpn: false } }
    const { signals: stored } = await sendFrom({
      ...from('8.8.8.8'),
      more: { server_signals: signals, connection: { country: 'XX' } },
    })
    expect(stored).toEqual({ country: 'DE', asn: 'AS64500', vpn: true })
  })
})

describe('country_mismatch', () => {
  const sendWith = async (ecosystem: object, address = '8.8.8.8') => {
    const signals = { root: {}, emulator: {}, debugger: {}, tamper: {}, network: {} }
    const more = { signals: { ...signals, ecosystem } }
    return (await sendFrom({ ...from(address), more })).signals!.country_mismatch
  }

  it('compares the address with the SIM and the time zone of the phone', async () => {
    expect(await sendWith({ sim_country: 'DE' })).toBe(false)
    expect(await sendWith({ sim_country: 'VN', time_zone: 'Europe/Berlin' })).toBe(false)
    expect(await sendWith({ sim_country: 'VN', time_zone: 'Asia/Tokyo' })).toBe(true)
    expect(await sendWith({})).toBeUndefined()
    expect(await sendWith({ sim_country: 'VN' }, '9.9.9.9')).toBeUndefined()
  })

  it('is each event’s own in a batch', async () => {
    const signals = { root: {}, emulator: {}, debugger: {}, tamper: {}, network: {} }
    const events = ['DE', 'VN', null].map((sim_country) =>
      bodyOf('acme', { signals: { ...signals, ecosystem: { sim_country } } }),
    )
    const answer = await send(behindProxy!, `{"tenant_id":"acme","events":[${events.join()}]}`, {
      secret: acme!.secret,
      path: '/v1/rasp/ingest/batch',
      ...from('8.8.8.8'),
    })
    const ids = (answer.body.events as { event_id: string }[]).map((one) => one.event_id)
    const found = await Promise.all(ids.map(connectionOf))
    expect(found.map((one) => one.signals!.country_mismatch)).toEqual([false, true, undefined])
  })

  it('is not measured behind a relay', async () => {
    await put('relay.txt', '8.8.8.0/24\n')
    await data.look()
    await data.look()
    expect(await sendWith({ sim_country: 'VN' }, '8.8.8.1')).toBeUndefined()
    await rm(join(folder, 'relay.txt'))
    await data.look()
    await data.look()
    expect(await sendWith({ sim_country: 'VN' }, '8.8.8.1')).toBe(true)
  })
})

describe('a batch', () => {
  it('has one address for all of its events', async () => {
    const events = [1, 2, 3].map(() => bodyOf('acme'))
    const body = `{"tenant_id":"acme","events":[${events.join()}]}`
    const answer = await send(behindProxy!, body, {
      secret: acme!.secret,
      path: '/v1/rasp/ingest/batch',
      ...from('8.8.8.8'),
    })
    expect(answer.status).toBe(200)
    const ids = (answer.body.events as { event_id: string }[]).map((one) => one.event_id)
    expect(ids).toHaveLength(3)
    for (const id of ids) {
      const { connection, signals } = await connectionOf(id)
      expect(connection).toMatchObject({ network: '8.8.8.0/24', country: 'DE' })
      expect(signals).toMatchObject({ vpn: true })
    }
  })

  it('of a backend has the address of each', async () => {
    const addresses = ['8.8.8.8', '2a00:1450::1', '10.0.0.1']
    const events = addresses.map((client_ip) => bodyOf('relaying', { client_ip }))
    const body = `{"tenant_id":"relaying","events":[${events.join()}]}`
    const answer = await send(behindProxy!, body, {
      secret: relaying!.secret,
      path: '/v1/rasp/ingest/batch',
      ...from('9.9.9.9'),
    })
    const ids = (answer.body.events as { event_id: string }[]).map((one) => one.event_id)
    const found = await Promise.all(ids.map(connectionOf))
    expect(found.map(({ connection }) => connection?.country)).toEqual(['DE', 'IE', undefined])
    expect(found[2]).toEqual(nothing)
  })
})

describe('client_ip', () => {
  it('counts alone where the tenant says so', async () => {
    const more = { client_ip: '::ffff:8.8.8.8' }
    const { connection } = await sendFrom({ tenant: relaying, ...from('9.9.9.9'), more })
    expect(connection).toMatchObject({
      network: '8.8.8.0/24',
      address_hash: hashOf('8.8.8.8', 'relaying'),
    })
    expect(await sendFrom({ tenant: relaying, ...from('8.8.8.8') })).toEqual(nothing)
  })

  it('moves nothing elsewhere', async () => {
    const more = { client_ip: '2a00:1450::1' }
    const { connection } = await sendFrom({ ...from('8.8.8.8'), more })
    expect(connection).toMatchObject({ network: '8.8.8.0/24', country: 'DE' })
    expect(await sendFrom({ edge: bare, more })).toEqual(nothing)
  })

  it.each([null, '', 'nowhere', '8.8.8', '8.8.8.8/24', '010.8.8.8', 'x'.repeat(64)])(
    'that is no address (%j) is not measured',
    async (client_ip) => {
      expect(await sendFrom({ tenant: relaying, more: { client_ip } })).toEqual(nothing)
    },
  )

  it('gets a warning where it is no address, and a refusal where it is no text', async () => {
    const sendIt = (client_ip: unknown) =>
      send(behindProxy!, bodyOf('relaying', { client_ip }), { secret: relaying!.secret })
    expect((await sendIt('nowhere')).body.warnings).toContainEqual({
      path: '$.client_ip',
      code: 'unreadable_value',
      message: 'is no IP address, so nothing is measured of it',
      nearest: null,
    })
    for (const wrong of [8, ['8.8.8.8'], { address: '8.8.8.8' }, true, 'x'.repeat(10_000)]) {
      const { status, body } = await sendIt(wrong)
      expect([status, body.errors]).toEqual([
        400,
        [expect.objectContaining({ path: '$.client_ip' })],
      ])
    }
  })

  it('is not measured of what an install signed: a phone says nothing of its address', async () => {
    const sendSigned = async (tenant: TestTenant) => {
      const install = await register(behindProxy!, tenant)
      const more = { device_id: 'pixel-1', client_ip: '8.8.8.8' }
      const answer = await sendWithToken(behindProxy!, bodyOf(tenant.tenantId, more), install)
      expect(answer.status).toBe(200)
      return connectionOf(answer.body.event_id)
    }
    expect(await sendSigned(relaying!)).toEqual(nothing)
  })
})

/** Sends a request as text, so that a header can be there twice. */
async function sendRaw(edge: TestEdge, headers: string[]): Promise<{ status: number; id: string }> {
  const body = bodyOf('acme')
  const { hostname, port } = new URL(edge.url)
  const socket = connect(Number(port), hostname)
  socket.write(
    [
      'POST /v1/rasp/ingest HTTP/1.1',
      'host: edge',
      'content-type: application/json',
      'connection: close',
      `x-service-signature: ${signBody(body, acme!.secret)}`,
      `content-length: ${Buffer.byteLength(body)}`,
      ...headers,
      '',
      body,
    ].join('\r\n'),
  )
  let text = ''
  for await (const chunk of socket) text += chunk
  const [, id = ''] = /"event_id":"([^"]+)"/.exec(text) ?? []
  return { status: Number(text.slice(9, 12)), id }
}

describe('an X-Forwarded-For that a client made up', () => {
  const spoofed: [string, string[]][] = [
    ['once', ['8.8.8.8']],
    ['twice', ['8.8.8.8', '8.8.4.4']],
    ['as a list', ['8.8.8.8, 8.8.4.4']],
    ['malformed', ['8.8.8.8;;,,"for=8.8.8.8" \u00e9']],
    ['of 10 kB', [Array.from({ length: 1_100 }, () => '8.8.8.8').join(',')]],
  ]
  it.each(spoofed)('%s moves nothing', async (_, values) => {
    const { status, id } = await sendRaw(
      bare!,
      values.map((value) => `x-forwarded-for: ${value}`),
    )
    expect(status).toBe(200)
    expect(await connectionOf(id)).toEqual(nothing)
  })

  it.each(spoofed)('%s stands before what the trusted proxy adds', async (_, values) => {
    const named = [...values, '2a00:1450::1']
    const { status, id } = await sendRaw(
      behindProxy!,
      named.map((value) => `x-forwarded-for: ${value}`),
    )
    expect(status).toBe(200)
    expect((await connectionOf(id)).connection).toMatchObject({ network: '2a00:1450::/48' })
  })

  it('of nothing but noise is the proxy, which is not measured', async () => {
    const { id } = await sendRaw(behindProxy!, ['x-forwarded-for: nowhere'])
    expect(await connectionOf(id)).toEqual(nothing)
  })
})

describe('a client that has gone', () => {
  it('is measured by the address that its connection had', async () => {
    const body = bodyOf('acme', { device_id: 'gone' })
    const { hostname, port } = new URL(behindProxy!.url)
    const socket = connect(Number(port), hostname)
    socket.end(
      `POST /v1/rasp/ingest HTTP/1.1\r\nhost: edge\r\ncontent-type: application/json\r\n` +
        `x-forwarded-for: 8.8.8.8\r\nx-service-signature: ${signBody(body, acme!.secret)}\r\n` +
        `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    )
    socket.destroySoon()
    const find = async () => (await rig.readStored()).find((one) => one.body.device_id === 'gone')
    await until('the event is stored', async () => (await find()) !== undefined)
    expect((await find())!.connection).toMatchObject({ network: '8.8.8.0/24' })
  })
})

describe('files that are replaced under load', () => {
  it('are used whole or not at all, and a broken one leaves the one before in use', async () => {
    let isOver = false
    const sent: Promise<unknown>[] = []
    const load = async () => {
      while (!isOver) {
        const answer = await send(behindProxy!, bodyOf('acme'), {
          secret: acme!.secret,
          ...from('8.8.8.8'),
        })
        sent.push(Promise.resolve(answer.body.event_id))
      }
    }
    const loads = [load(), load(), load(), load()]
    const replaceWith = async (content: Buffer) => {
      await put('city.mmdb', content)
      await data.look()
      await data.look()
    }
    const before = sent.length
    await replaceWith(city('FR'))
    expect(data.warning()).toBeNull()
    expect((await sendFrom(from('8.8.8.8'))).connection!.country).toBe('FR')
    await replaceWith(city('IT').subarray(0, 120))
    expect(data.warning()).toContain('city.mmdb')
    expect((await sendFrom(from('8.8.8.8'))).connection!.country).toBe('FR')
    await replaceWith(city('DE'))
    expect((await sendFrom(from('8.8.8.8'))).connection!.country).toBe('DE')
    isOver = true
    await Promise.all(loads)
    expect(sent.length).toBeGreaterThan(before)
    const ids = new Set(await Promise.all(sent))
    const heads = (await rig.readStored()).filter(({ event_id: id }) => ids.has(id))
    expect(heads).toHaveLength(ids.size)
    // None was answered by no data or by half a file.
    for (const { connection, server_signals: signals } of heads) {
      expect(connection).toMatchObject({ asn: 64_500, latitude: 52.5, kinds: ['vpn'] })
      expect(['DE', 'FR']).toContain(connection!.country)
      expect(signals!.connection).toEqual({
        country: connection!.country,
        asn: 'AS64500',
        vpn: true,
      })
    }
  })
})

describe('the log', () => {
  it('has no address of an accepted event', () => {
    expect(lines.join('')).not.toMatch(/8\.8\.8\.8|8\.8\.4\.4|2a00:1450/)
  })
})

describe('documentation addresses', () => {
  it('are looked up where a setting says so, and no others that are not of the internet', async () => {
    await put('tor.txt', '203.0.113.0/24\n10.0.0.0/8\n')
    const edge = await rig.spawnEdge({
      env: {
        NETWORK_DATA: folder,
        NETWORK_DATA_DOCUMENTATION: '1',
        TRUSTED_PROXIES: '127.0.0.1',
      },
    })
    const ask = async (address: string) => {
      const answer = await send(edge, bodyOf('acme'), { secret: acme!.secret, ...from(address) })
      return connectionOf(answer.body.event_id)
    }
    expect(await ask('203.0.113.9')).toMatchObject({
      connection: { network: '203.0.113.0/24', kinds: ['tor'] },
      signals: { tor: true },
    })
    expect(await ask('10.1.2.3')).toEqual(nothing)
    await rm(join(folder, 'tor.txt'))
  })
})

describe('the process', () => {
  it('reads NETWORK_DATA before it listens, shows its files and warns of a broken one', async () => {
    await put('broken.mmdb', 'no database')
    const edge = await rig.spawnEdge({
      env: { NETWORK_DATA: folder, TRUSTED_PROXIES: '127.0.0.1' },
    })
    const answer = await send(edge, bodyOf('acme'), { secret: acme!.secret, ...from('8.8.8.8') })
    expect(answer.status).toBe(200)
    expect((await connectionOf(answer.body.event_id)).connection).toMatchObject({ country: 'DE' })
    const ready = await (await fetch(`${edge.internalUrl}/readyz`)).json()
    expect(JSON.stringify(ready)).toContain('broken.mmdb: it is no MMDB file')
    const metrics = await (await fetch(`${edge.internalUrl}/metrics`)).text()
    expect(metrics).toMatch(/di_network_data_age_seconds\{.*file="city\.mmdb".*\} \d/)
    expect(metrics).toMatch(/di_network_data_broken\{.*file="broken\.mmdb".*\} 1/)
  })
})
