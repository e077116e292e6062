// The whole address corpus against the real connector, with names in the test's own DNS server.
// Every connection of Node goes through one function, so the test checks that it is never called
// for a forbidden address, and otherwise only with the checked address.
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import os from 'node:os'
import { afterEach, expect, test, vi } from 'vitest'
import { parseNetwork, type WebhookRules } from '#shared/core/deliveries/outbound-address.ts'
import {
  checkWebhookTarget,
  createDnsResolve,
  createOutbound,
  OutboundError,
  type Resolve,
} from '#shared/io/deliveries/outbound/outbound-client.ts'
import {
  allowedAddresses,
  forbiddenAddresses,
  spelledHosts,
} from '../../support/deliveries/address-corpus.ts'
import { startRawReceiver, startReceiver } from '../../support/deliveries/receiver.ts'
import { waitFor } from '../../support/process/wait-for.ts'
import { startDns, type Zone } from '../../support/servers/dns-server.ts'

const live: WebhookRules = { environment: 'live', allowPrivate: true }
const near: WebhookRules = { environment: 'sandbox', allowPrivate: true }

const closers: (() => Promise<void> | void)[] = []
afterEach(async () => {
  vi.restoreAllMocks()
  syncBuiltinESMExports()
  for (const close of closers.splice(0).reverse()) await close()
})

async function dnsServer(zone: Zone) {
  const dns = await startDns(zone)
  closers.push(dns.close)
  return dns
}

type Dialled = { host: string; port: number }

/** Records every requested connection and, instead of opening it, fails or connects elsewhere. */
function watchDials(elsewhere?: number): Dialled[] {
  const dialled: Dialled[] = []
  const connect = net.connect
  vi.spyOn(net, 'connect').mockImplementation(((options: net.TcpNetConnectOpts) => {
    dialled.push({ host: options.host ?? '', port: options.port })
    if (elsewhere !== undefined) return connect({ ...options, host: '127.0.0.1', port: elsewhere })
    const socket = new net.Socket()
    process.nextTick(() => socket.destroy(new Error('the test lets nothing out')))
    return socket
  }) as typeof net.connect)
  return dialled
}

/** The error kind of an attempt that no receiver can answer. */
async function attempt(url: string, resolve?: Resolve, rules = live): Promise<OutboundError> {
  const outbound = createOutbound(resolve === undefined ? {} : { resolve })
  const signal = AbortSignal.timeout(5_000)
  const error = await outbound
    .connect({ url: new URL(url), rules, owner: 'acme' }, signal)
    .then((connection) => connection.post(Buffer.from('{}'), {}, signal))
    .then(
      ({ status }) => new Error(`it was answered ${status}`),
      (thrown: unknown) => thrown,
    )
  expect(error, url).toBeInstanceOf(OutboundError)
  return error as OutboundError
}

/** As DNS returns it: no zone, no dotted tail. */
const canonical = (ip: string) =>
  ip.includes(':') ? new URL(`http://[${ip}]`).hostname.slice(1, -1) : ip
const inDns = (addresses: readonly string[]) => addresses.filter((ip) => !ip.includes('%'))
const recordOf = (ip: string) => (ip.includes(':') ? { aaaa: [canonical(ip)] } : { a: [ip] })

test('no connection goes to a forbidden address: as a literal in any spelling', async () => {
  const dialled = watchDials()
  const literals = inDns(forbiddenAddresses).map((ip) => (ip.includes(':') ? `[${ip}]` : ip))
  for (const host of [...spelledHosts, ...literals]) {
    for (const url of [`https://${host}/`, `http://${host}/`, `https://u:p@${host}:8443/x`]) {
      expect((await attempt(url)).kind, url).toBe('refused_address')
      expect(await checkWebhookTarget(url, live), url).toMatchObject({ ok: false })
    }
  }
  expect(dialled).toEqual([])
})

test('no connection goes to a forbidden address: A, AAAA, alias or mixed records', async () => {
  const zone: Zone = {}
  const names: string[] = []
  for (const [n, ip] of inDns(forbiddenAddresses).entries()) {
    const { a = [], aaaa = [] } = recordOf(ip) as { a?: string[]; aaaa?: string[] }
    zone[`plain-${n}.test`] = recordOf(ip)
    zone[`alias-${n}.test`] = { cname: `plain-${n}.test` }
    zone[`mixed-${n}.test`] = {
      a: ['93.184.215.14', ...a],
      aaaa: ['2606:4700:4700::1111', ...aaaa],
    }
    names.push(`plain-${n}.test`, `alias-${n}.test`, `mixed-${n}.test`)
  }
  const dns = await dnsServer(zone)
  const resolve = createDnsResolve([dns.server])
  const dialled = watchDials()
  for (const name of names) {
    const error = await attempt(`https://${name}/`, resolve)
    expect(error.kind, `${name} ${JSON.stringify(zone[name])}`).toBe('refused_address')
    const saved = await checkWebhookTarget(`https://${name}/`, live, { resolve })
    expect(saved, name).toMatchObject({ ok: false })
  }
  expect(dialled).toEqual([])
})

test('every neighbour of a forbidden address is reachable, and no other address', async () => {
  const dns = await dnsServer(
    Object.fromEntries(allowedAddresses.map((ip, n) => [`name-${n}.test`, recordOf(ip)])),
  )
  const resolve = createDnsResolve([dns.server])
  const dialled = watchDials()
  for (const [n, ip] of allowedAddresses.entries()) {
    const literal = ip.includes(':') ? `[${ip}]` : ip
    for (const url of [`https://${literal}/`, `https://name-${n}.test/`]) {
      expect(await checkWebhookTarget(url, live, { resolve }), url).toMatchObject({ ok: true })
      expect(await attempt(url, resolve), url).toMatchObject({ kind: 'connect' })
      const hosts = dialled.splice(0).map(({ host }) => canonical(host))
      expect(hosts).toEqual([canonical(ip)])
    }
  }
})

test('a live tenant’s receiver is reachable only on an allowed network', async () => {
  const parsed = parseNetwork('10.20.0.0/16')
  if ('why' in parsed) throw new Error(parsed.why)
  const rules: WebhookRules = { ...live, allowPrivate: false, allowNetworks: [parsed.network] }
  const zone: Zone = {
    'hooks.corp.internal': { a: ['10.20.3.4'] },
    'other.corp.internal': { a: ['10.21.3.4'] },
    'mixed.corp.internal': { a: ['10.20.3.4', '10.21.3.4'] },
    'metadata.corp.internal': { a: ['10.20.3.4', '169.254.169.254'] },
  }
  const dns = await dnsServer(zone)
  const resolve = createDnsResolve([dns.server])
  const dialled = watchDials()
  for (const url of ['https://hooks.corp.internal:8443/', 'https://10.20.3.4:8443/']) {
    expect(await checkWebhookTarget(url, rules, { resolve })).toMatchObject({ ok: true })
    expect(await attempt(url, resolve, rules)).toMatchObject({ kind: 'connect' })
    expect(dialled.splice(0)).toEqual([{ host: '10.20.3.4', port: 8443 }])
    expect((await attempt(url, resolve)).kind).toBe('refused_address')
  }
  for (const name of ['other', 'mixed', 'metadata']) {
    const url = `https://${name}.corp.internal/`
    expect(await checkWebhookTarget(url, rules, { resolve }), url).toMatchObject({ ok: false })
    expect((await attempt(url, resolve, rules)).kind, url).toBe('refused_address')
  }
  expect(dialled).toEqual([])
})

test('a name is resolved once per attempt, and a later answer is never used', async () => {
  const zone: Zone = { 'rebinding.test': { a: ['93.184.215.14'] } }
  const dns = await dnsServer(zone)
  const dialled = watchDials()
  const answered = createDnsResolve([dns.server])
  const resolve: Resolve = async (name, signal) => {
    const addresses = await answered(name, signal)
    // From here on a second query would get the address of this machine.
    zone['rebinding.test'] = { a: ['127.0.0.1'], aaaa: ['::1'] }
    return addresses
  }
  expect((await attempt('https://rebinding.test/', resolve)).kind).toBe('connect')
  expect(dialled).toEqual([{ host: '93.184.215.14', port: 443 }])
  expect(dns.questions.toSorted()).toEqual(['A rebinding.test', 'AAAA rebinding.test'])
  expect((await attempt('https://rebinding.test/', resolve)).kind).toBe('refused_address')
  expect(dialled).toHaveLength(1)
})

test.each(['http', 'https'])(
  'a %s connection that ends at another address gets no byte',
  async (scheme) => {
    const received: Buffer[] = []
    const there = await startRawReceiver((socket) =>
      socket.on('data', (data) => received.push(data)),
    )
    closers.push(there.close)
    // The machine itself redirects a public address to a private one, as a rewriting firewall can.
    watchDials(there.port)
    const error = await attempt(`${scheme}://receiver.test/`, async () => ['93.184.215.14'])
    expect(error).toMatchObject({ kind: 'refused_address', address: '127.0.0.1' })
    await waitFor(() => expect([there.connections(), there.open()]).toEqual([1, 0]))
    expect(received).toEqual([])
  },
)

test('an address of this machine is refused except for sandboxes on it', async () => {
  const own = '93.184.215.14'
  const entry = { address: own, internal: false } as os.NetworkInterfaceInfo
  vi.spyOn(os, 'networkInterfaces').mockReturnValue({ eth0: [entry] })
  syncBuiltinESMExports()
  const dialled = watchDials()
  const throughNat64 = '64:ff9b::5db8:d70e'
  for (const address of [own, throughNat64]) {
    const literal = address.includes(':') ? `[${address}]` : address
    for (const url of [`https://${literal}/`, 'https://receiver.test:8081/']) {
      const error = await attempt(url, async () => [address])
      expect(error).toMatchObject({ kind: 'refused_address', address })
      expect(error.message).toContain('our own')
    }
  }
  expect(dialled).toEqual([])
})

test('a redirect into the machine or to its metadata service is not followed', async () => {
  let location = ''
  const there = await startReceiver((response) => response.writeHead(302, { location }).end())
  closers.push(there.close)
  const dialled = watchDials(there.port)
  const outbound = createOutbound()
  closers.push(() => outbound.close())
  for (location of ['http://169.254.169.254/latest/meta-data/', there.url, '//[::1]/']) {
    const signal = AbortSignal.timeout(5_000)
    const target = { url: new URL(there.url), rules: near, owner: location }
    const connection = await outbound.connect(target, signal)
    expect((await connection.post(Buffer.from('{}'), {}, signal)).status).toBe(302)
  }
  expect(dialled).toEqual(Array(3).fill({ host: '127.0.0.1', port: there.port }))
  expect(there.requests).toHaveLength(3)
})

test('a changed URL never reuses the connection of the previous one', async () => {
  const before = await startReceiver()
  const after = await startReceiver()
  closers.push(before.close, after.close)
  const outbound = createOutbound()
  closers.push(() => outbound.close())
  const post = async (url: string, rules = near) => {
    const signal = AbortSignal.timeout(5_000)
    const connection = await outbound.connect({ url: new URL(url), rules, owner: 'acme' }, signal)
    return connection.post(Buffer.from('{}'), {}, signal)
  }
  await post(before.url)
  expect(outbound.idleCount()).toBe(1)
  await post(after.url)
  expect([before.requests.length, after.requests.length]).toEqual([1, 1])
  // The same host and port, but with an unchecked scheme, name or rules.
  await expect(post(before.url.replace('http:', 'https:'))).rejects.toMatchObject({ kind: 'tls' })
  await expect(post(before.url, live)).rejects.toMatchObject({ kind: 'refused_address' })
  await post(before.url.replace('127.0.0.1', 'localhost'))
  expect(before.connections()).toBe(3)
  expect(before.requests).toHaveLength(2)
})
