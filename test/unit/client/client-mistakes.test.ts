/**
 * A mistake in calling the client is a `TypeError` that names the argument and says what to do, in
 * both entries, before anything is sent; and it never shows a secret.
 */
import { afterEach, describe, expect, it, vi } from 'vitest'
import * as nodeClient from '../../../shared/client/client.ts'
import * as webClient from '../../../shared/client/webcrypto.ts'
import type { Client } from '../../support/mistakes/client-call.ts'
import { argumentMistakes } from '../../support/mistakes/client-mistakes.ts'
import vectors from '../../vectors/webhooks.json' with { type: 'json' }

const hmacSecret = 'q7Yw1vVh0o3mK5tR8uX2zA4cE6gI9jL1nP3rT5vX7zB'
const entries: [string, Client][] = [
  ['client.ts', nodeClient],
  ['webcrypto.ts', webClient],
]

describe.each(entries)('%s', (_, client) => {
  let sent = 0
  const fetch: typeof globalThis.fetch = async () => {
    sent++
    return new Response('{"status":"accepted"}')
  }
  const right = {
    client,
    telemetry: {
      tenant_id: 'acme',
      device_id: 'd-1',
      session_id: 's-1',
      sdk_meta: { sdk_version: '4.2.0', platform: 'android', batch_type: 'start' },
      scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
      signals: nodeClient.mergeSignals(),
    },
    options: { ingestUrl: 'https://ingest.test', hmacSecret, fetch },
    webhook: {
      body: vectors.body,
      headers: vectors.headers as Record<string, string>,
      secret: vectors.secret,
      nowMs: vectors.timestamp_seconds * 1000,
    },
    apiKey: `dpk_sandbox_${'a'.repeat(48)}`,
  }

  it('takes the call that each mistake is made of', async () => {
    await client.sendTelemetry(right.telemetry, right.options)
    expect(sent).toBe(1)
    const { body, headers, secret, nowMs } = right.webhook
    expect(await client.verifyWebhook(body, headers, secret, { nowMs })).toMatchObject({
      alert: JSON.parse(body),
    })
    expect(await client.signBody(body, hmacSecret)).toMatch(/^.{43}=$/)
  })

  it.each(argumentMistakes)('$name: $error', async ({ make, error: name, says }) => {
    sent = 0
    const call = async () => make(right)
    const error = (await call().then(
      () => expect.unreachable(),
      (thrown: unknown) => thrown,
    )) as Error
    expect(error.name, error.message).toBe(name)
    for (const text of says) expect(error.message).toContain(text)
    for (const secret of [hmacSecret, right.webhook.secret, right.apiKey, 'password@']) {
      expect(error.message).not.toContain(secret)
    }
    expect(error.message.length).toBeLessThan(300)
    expect(sent).toBe(0)
  })
})

describe('webcrypto.ts in a place without secrets', () => {
  afterEach(() => vi.unstubAllGlobals())
  const calls: [string, () => Promise<unknown>][] = [
    ['signBody', () => webClient.signBody('{}', hmacSecret)],
    ['sendTelemetry', () => webClient.sendTelemetry('{}', { ingestUrl: 'http://h', hmacSecret })],
    ['verifyWebhook', () => webClient.verifyWebhook('{}', {}, vectors.secret)],
    ['registerInstall', async () => webClient.registerInstall({} as never)],
    ['createInstallSender', async () => webClient.createInstallSender({} as never)],
  ]
  const install = { token: `ins1.1.e.${'m'.repeat(43)}`, key: 'k'.repeat(43) }
  const fetch: typeof globalThis.fetch = async () => new Response('{"status":"accepted"}')

  it.each([
    ['a browser', { userAgent: 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36' }],
    ['React Native', { product: 'ReactNative' }],
  ])('says in %s why it does not sign', async (_, navigator) => {
    vi.stubGlobal('navigator', navigator)
    for (const [name, call] of calls) {
      await expect(call(), name).rejects.toThrow(/^this client is for servers: .*WHO-SIGNS\.md/)
    }
  })

  it('lets an app sign with the key of its install, and no web page', async () => {
    const options = { ingestUrl: 'https://h', install, fetch }
    vi.stubGlobal('navigator', { product: 'ReactNative' })
    expect(await webClient.sendTelemetry('{}', options)).toEqual({ status: 'accepted' })
    const registering = { deviceId: 'd-1', ingestUrl: 'https://h', register: async () => ({}) }
    webClient.createInstallSender(registering as never)
    vi.stubGlobal('navigator', { userAgent: 'Mozilla/5.0 (X11; Linux x86_64)' })
    await expect(webClient.sendTelemetry('{}', options)).rejects.toThrow(/^this client is for/)
  })

  it.each([
    ['Cloudflare Workers', { userAgent: 'Cloudflare-Workers' }],
    ['Deno', { userAgent: 'Deno/2.5.0' }],
    ['Bun', { userAgent: 'Bun/1.4.5' }],
    ['a runtime without it', undefined],
  ])('signs on a server: %s', async (_, navigator) => {
    vi.stubGlobal('navigator', navigator)
    expect(await webClient.signBody('{}', hmacSecret)).toBe(nodeClient.signBody('{}', hmacSecret))
  })

  it('says what to do where WebCrypto is missing', async () => {
    vi.stubGlobal('crypto', undefined)
    for (const [name, call] of calls) {
      await expect(call(), name).rejects.toThrow(/^crypto\.subtle is missing: on Node 18/)
    }
  })
})
