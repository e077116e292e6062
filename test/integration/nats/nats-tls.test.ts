/**
 * The connection to NATS with TLS, client certificates, credentials files and NKEYs, on real
 * nats-servers. Where TLS is required, nothing is sent before TLS is established; and every failed
 * connection logs its reason once and is retried.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, connect as dial } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type NatsLink, openNats } from '#shared/io/nats/connection.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { NatsSettings } from '#shared/io/process/server-addresses.ts'
import { until } from '../../support/process/until.ts'
import {
  type Certificate,
  createCa,
  createNkey,
  createOperatorMode,
  makeFolder,
  startConfigured,
} from '../../support/servers/nats/nats-configured.ts'

const folder = makeFolder()
const { dir } = folder
const password = 'a-password-that-must-not-be-seen'
let ca: ReturnType<typeof createCa>
let server: Certificate

beforeAll(() => {
  ca = createCa(dir, 'own')
  server = ca.sign('nats', 'IP:127.0.0.1,DNS:localhost')
})
afterAll(folder.remove)

const tls = ({ cert, key }: Certificate, ...more: string[]) => [
  'tls {',
  `  cert_file: "${cert}"`,
  `  key_file: "${key}"`,
  ...more,
  '}',
]
const account = `authorization { user: di, password: "${password}" }`

async function start(lines: string[], port?: number) {
  const started = await startConfigured(dir, lines, port)
  onTestFinished(started.stop)
  return started
}

function open(settings: NatsSettings): NatsLink & { warnings: string[] } {
  const warnings: string[] = []
  const warn = (...logged: unknown[]) => warnings.push(String(logged.at(-1)))
  const log = { info: () => undefined, warn }
  const link = openNats(settings, 'test', log as unknown as Log)
  onTestFinished(link.close)
  return { ...link, warnings }
}

async function connects(settings: NatsSettings): Promise<void> {
  const link = open(settings)
  await (await link.opened).connection.flush()
  expect(link.fault()).toBeNull()
  expect(link.warnings).toEqual([])
}

/** Expects that it logs the reason once and retries. */
async function failsWith(
  settings: NatsSettings,
  why: string,
  { sometimes = '' } = {},
): Promise<NatsLink> {
  const link = open(settings)
  await until('it says why', () => link.fault() === `is not connected: it ${why}`)
  // Time for two more tries, which would log the reason again.
  await new Promise((resolve) => setTimeout(resolve, 2_200))
  // Beside other work a try may run out of time.
  const rare = ['does not answer', sometimes].map((reason) => `NATS ${reason}; trying again`)
  const warnings = link.warnings.filter((warning) => !rare.includes(warning))
  expect(new Set(warnings)).toEqual(new Set([`NATS ${why}; trying again`]))
  if (warnings.length === link.warnings.length) expect(warnings).toHaveLength(1)
  return link
}

/** Forwards everything to a server, and records what a client has sent. */
async function listenIn(port: number): Promise<{ port: number; heard: () => string }> {
  let heard = ''
  const tap = createServer((client) => {
    const upstream = dial(port, '127.0.0.1')
    client.on('data', (bytes) => {
      heard += bytes.toString('latin1')
    })
    client.pipe(upstream).pipe(client)
    for (const socket of [client, upstream]) socket.on('error', () => undefined)
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
  })
  await new Promise<void>((resolve) => tap.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void tap.close())
  return { port: (tap.address() as AddressInfo).port, heard: () => heard }
}

describe('tls://', () => {
  it('sends nothing to a server without TLS: no password in clear text', async () => {
    const { port } = await start([account])
    const tap = await listenIn(port)
    const url = `tls://di:${password}@127.0.0.1:${tap.port}`
    await failsWith({ url }, 'offers no TLS, which the settings ask for')
    expect(tap.heard()).toBe('')
    // A CA or a certificate requires TLS as well, with any scheme.
    const plain = `nats://di:${password}@127.0.0.1:${tap.port}`
    await failsWith({ url: plain, caFile: ca.caFile }, 'offers no TLS, which the settings ask for')
    expect(tap.heard()).toBe('')
    await connects({ url: plain })
    expect(tap.heard()).toContain(password)
  })

  it('connects with the CA, by address and by name, and sends the password encrypted', async () => {
    const { port } = await start([account, ...tls(server)])
    const tap = await listenIn(port)
    for (const host of ['127.0.0.1', 'localhost']) {
      await connects({ url: `tls://di:${password}@${host}:${tap.port}`, caFile: ca.caFile })
    }
    expect(tap.heard()).not.toContain(password)
    const url = `tls://di:${password}@127.0.0.1:${tap.port}`
    await failsWith({ url }, 'has a certificate of an unknown CA')
    const other = createCa(dir, 'other')
    await failsWith({ url, caFile: other.caFile }, 'has a certificate of an unknown CA')
  })

  it('rejects a certificate for another host, by name and by address', async () => {
    const certificates = {
      elsewhere: { names: 'IP:127.0.0.2,DNS:elsewhere.test', hosts: ['127.0.0.1', 'localhost'] },
      named: { names: 'DNS:localhost', hosts: ['127.0.0.1'] },
      address: { names: 'IP:127.0.0.1', hosts: ['localhost'] },
    }
    for (const [subject, { names, hosts }] of Object.entries(certificates)) {
      const { port } = await start([account, ...tls(ca.sign(subject, names))])
      for (const host of ['127.0.0.1', 'localhost']) {
        const settings = { url: `tls://di:${password}@${host}:${port}`, caFile: ca.caFile }
        if (hosts.includes(host)) {
          await failsWith(settings, 'has a certificate for another host name')
        } else await connects(settings)
      }
    }
  })

  it('presents a client certificate where one is required', async () => {
    const { port } = await start([
      account,
      ...tls(server, `  ca_file: "${ca.caFile}"`, '  verify: true'),
    ])
    const { cert: certFile, key: keyFile } = ca.sign('ingest', 'DNS:ingest')
    const url = `tls://di:${password}@127.0.0.1:${port}`
    await connects({ url, caFile: ca.caFile, certFile, keyFile })
    // With TLS 1.3 the server's rejection may come after the client's first bytes, and the
    // operating system then discards the rejection.
    const sometimes = 'breaks the connection off'
    await failsWith({ url, caFile: ca.caFile }, 'asks for a client certificate', { sometimes })
  })
})

describe('TLS first', () => {
  it('connects to a server that sends nothing before TLS, and verifies it as well', async () => {
    const first = tls(server, '  handshake_first: true')
    const { port } = await start([account, ...first])
    const settings = { caFile: ca.caFile, tlsFirst: true }
    for (const host of ['127.0.0.1', 'localhost']) {
      await connects({ ...settings, url: `tls://di:${password}@${host}:${port}` })
    }
    const url = `tls://di:${password}@127.0.0.1:${port}`
    const other = tls(ca.sign('first', 'DNS:elsewhere.test'), '  handshake_first: true')
    const { port: otherPort } = await start([account, ...other])
    const otherUrl = `tls://di:${password}@127.0.0.1:${otherPort}`
    await Promise.all([
      failsWith({ url, tlsFirst: true }, 'has a certificate of an unknown CA'),
      failsWith({ ...settings, url: otherUrl }, 'has a certificate for another host name'),
      failsWith({ url, caFile: ca.caFile }, 'refuses the connection'),
    ])
  })

  it('sends nothing in clear text to a server that greets first', async () => {
    const { port } = await start([account, ...tls(server)])
    const tap = await listenIn(port)
    const url = `tls://di:${password}@127.0.0.1:${tap.port}`
    await failsWith({ url, caFile: ca.caFile, tlsFirst: true }, 'cannot agree on TLS')
    expect(tap.heard()).not.toMatch(/CONNECT|PING/)
  })
})

describe('signing in', () => {
  it('by an NKEY', async () => {
    const [right, wrong] = [createNkey(), createNkey()]
    const { port } = await start([`authorization { users: [ { nkey: ${right.publicKey} } ] }`])
    const url = `nats://127.0.0.1:${port}`
    await connects({ url, nkeySeed: right.seed })
    await failsWith({ url, nkeySeed: wrong.seed }, 'refuses the credentials')
  })

  it('by a credentials file', async () => {
    const { lines, creds } = createOperatorMode()
    const { port } = await start(lines)
    const credsFile = join(dir, 'user.creds')
    writeFileSync(credsFile, creds)
    const url = `nats://127.0.0.1:${port}`
    await connects({ url, credsFile })
    const other = join(dir, 'other.creds')
    writeFileSync(other, createOperatorMode().creds)
    await failsWith({ url, credsFile: other }, 'refuses the credentials')
    expect(readFileSync(credsFile, 'utf8')).toBe(creds)
  })

  it('with a wrong password is retried until it is correct', async () => {
    const first = await startConfigured(dir, [
      'authorization { user: di, password: another-one-before }',
    ])
    const url = `nats://di:${password}@127.0.0.1:${first.port}`
    const link = await failsWith({ url }, 'refuses the credentials')
    await first.stop()
    await start([account], first.port)
    await link.opened
    expect(link.fault()).toBeNull()
  })

  it('with credentials that were revoked logs the reason as well', async () => {
    const first = await startConfigured(dir, [account])
    const link = open({ url: `nats://di:${password}@127.0.0.1:${first.port}` })
    await link.opened
    await first.stop()
    await until('it is away', () => link.fault() !== null)
    await start(['authorization { user: di, password: changed }'], first.port)
    await until(
      'it says why',
      () => link.fault() === 'is not connected: it refuses the credentials',
    )
    const why = link.warnings.filter((text) => text.includes('credentials'))
    expect(why).toEqual(['NATS refuses the credentials; trying again'])
  })
})
