/**
 * The exchange of an install against a real edge: by both entries of the client, and by the program
 * in Java, unchanged. What is stored says which events an install signed.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { installTokenMs } from '#shared/core/base/limits/installs.ts'
import * as nodeClient from '../../../shared/client/client.ts'
import * as webClient from '../../../shared/client/webcrypto.ts'
import { readElements, sealRoots } from '../../support/installs/install-client.ts'
import { until } from '../../support/process/until.ts'
import { type EdgeRig, startEdgeRig, type TestEdge } from '../../support/telemetry/edge-rig.ts'

const secret = 'q3ZzVx_0cJ5mN8rT2uW4yA6bD9eG1hK7pL-sXvQfRiM'

let rig: EdgeRig
let edge: TestEdge
/** What is added to the wall clock of the edge. */
let aheadMs = 0
let epoch = 0

beforeAll(async () => {
  rig = await startEdgeRig()
  edge = await rig.startEdge({ wallMs: () => Date.now() + aheadMs })
  await rotateRoot()
})
afterAll(() => rig.stop())

/** Drops every root before. */
async function rotateRoot(): Promise<void> {
  epoch += 1
  const install_roots = sealRoots(rig.sealer, 'bank', epoch)
  const change = { environment: 'sandbox', secret, install_roots, epoch } as const
  const { revision } = await rig.projectTenant('bank', change)
  await until('the edge knows the tenant', () => edge.directory.revision() >= revision)
}

const toTelemetry = (deviceId: string, sessionId: string): nodeClient.Telemetry => ({
  tenant_id: 'bank',
  device_id: deviceId,
  session_id: sessionId,
  sdk_meta: { sdk_version: '4.2.0', platform: 'android', batch_type: 'start' },
  scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
  signals: nodeClient.mergeSignals(),
})

/** Events of a device in their order: their sessions and whether an install signed them. */
async function storedOf(deviceId: string) {
  const elements = (await readElements(rig.nats)) as {
    registration?: boolean
    body?: { device_id: string; session_id: string }
    server_signals?: { attestation?: Record<string, unknown> }
    install?: { token_id: string }
  }[]
  return elements
    .filter(({ registration, body }) => registration !== true && body?.device_id === deviceId)
    .map(({ body, install, server_signals: signals }) => ({
      session: body!.session_id,
      hasInstall: install !== undefined,
      byKey: signals?.attestation?.install_key === true,
    }))
}

const countRegistrations = async (deviceId: string) => {
  const elements = (await readElements(rig.nats)) as {
    registration?: boolean
    body?: { device_id: string }
  }[]
  return elements.filter(({ registration, body }) => {
    return registration === true && body?.device_id === deviceId
  }).length
}

const entries = [
  ['client.ts', nodeClient],
  ['webcrypto.ts', webClient],
] as const

describe.each(entries)('%s', (name, client) => {
  const register = () => ({
    ingestUrl: edge.url,
    tenantId: 'bank',
    deviceId: name,
    hmacSecret: secret,
    app: { platform: 'android', id: 'com.example.bank' } as const,
    deviceModel: 'Pixel 9',
    getEvidence: () => ({ provider: 'none' }) as const,
  })

  it('registers and sends, and what is stored says so', async () => {
    const install = await client.registerInstall(register())
    expect(install.attestation).toEqual({
      provider: 'none',
      verdict: 'none',
      reason: null,
      level: 'none',
    })
    const { installToken: token, installKey: key } = install
    const options = { ingestUrl: edge.url, install: { token, key } }
    const answer = await client.sendTelemetry(toTelemetry(name, 'by key'), options)
    expect(answer).toMatchObject({ status: 'accepted', rasp_action: 'ALLOW' })
    const own = { ingestUrl: edge.url, hmacSecret: secret }
    await client.sendTelemetry(toTelemetry(name, 'by secret'), own)
    expect(await storedOf(name)).toEqual([
      { session: 'by key', hasInstall: true, byKey: true },
      { session: 'by secret', hasInstall: false, byKey: false },
    ])
    const other = toTelemetry(`${name} of another`, 'captured')
    await expect(client.sendTelemetry(other, options)).rejects.toMatchObject({
      refusal: { status: 401, code: 'signature_invalid' },
    })
  })

  it('renews at the end of a token, and after its root is dropped', async () => {
    const deviceId = `${name} renewing`
    let nowMs = Date.now()
    const sender = client.createInstallSender({
      ...register(),
      deviceId,
      nowMs: () => nowMs,
    })
    const send = (session: string) => sender.send(toTelemetry(deviceId, session))
    await send('1')
    await rotateRoot()
    await send('2')
    expect(await countRegistrations(deviceId)).toBe(2)
    aheadMs = installTokenMs + 1_000
    nowMs += aheadMs
    await send('3')
    expect(await countRegistrations(deviceId)).toBe(3)
    aheadMs = 0
    const stored = await storedOf(deviceId)
    expect(stored.map(({ session, byKey }) => [session, byKey])).toEqual([
      ['1', true],
      ['2', true],
      ['3', true],
    ])
  })
})

it('the program in Java registers and sends, and registers again after a rotation', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'install-java-'))
  const source = '../../../services/ingest/examples/installs/InstallExchange.java'
  await promisify(execFile)('javac', ['-d', folder, join(import.meta.dirname, source)])
  const run = async (session: string): Promise<string> => {
    const env = {
      PATH: process.env.PATH,
      INGEST_URL: edge.url,
      HMAC_SECRET: secret,
      TENANT_ID: 'bank',
      DEVICE_ID: 'java',
      INSTALL_FILE: join(folder, 'install'),
    }
    const child = spawn('java', ['-cp', folder, 'InstallExchange'], { env })
    let out = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (out += data))
    child.stdin.end(JSON.stringify(toTelemetry('java', session)))
    await once(child, 'close')
    return out.trim()
  }
  expect(await run('1')).toMatch(/^200 \{"status":"accepted"/)
  expect(await run('2')).toMatch(/^200 /)
  expect(await countRegistrations('java')).toBe(1)
  await rotateRoot()
  expect(await run('3')).toMatch(/^200 /)
  expect(await countRegistrations('java')).toBe(2)
  const stored = await storedOf('java')
  expect(stored.map(({ session, byKey }) => [session, byKey])).toEqual([
    ['1', true],
    ['2', true],
    ['3', true],
  ])
  await rm(folder, { recursive: true })
})
