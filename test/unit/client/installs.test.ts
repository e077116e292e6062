/**
 * The exchange of an install in both entries of the client: challenge, registration, telemetry that
 * the install key signs, and bounded renewals.
 */
import { createHash, createHmac } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import { installRenewBeforeMs, installRenewPauseMs } from '#shared/core/base/limits/client.ts'
import * as nodeClient from '../../../shared/client/client.ts'
import * as webClient from '../../../shared/client/webcrypto.ts'
import { createInstallService } from '../../support/client/install-service.ts'

const hmacSecret = 'q7Yw1vVh0o3mK5tR8uX2zA4cE6gI9jL1nP3rT5vX7zB'
const day = 86_400_000

const telemetry: nodeClient.Telemetry = {
  tenant_id: 'acme',
  device_id: 'd-1',
  session_id: 's-1',
  sdk_meta: { sdk_version: '4.2.0', platform: 'android', batch_type: 'start' },
  scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
  signals: nodeClient.mergeSignals(),
}

const entries = [
  ['client.ts', nodeClient],
  ['webcrypto.ts', webClient],
] as const

describe.each(entries)('%s', (_, client) => {
  const start = (more: Partial<Parameters<typeof createInstallService>[0]> = {}) => {
    const clock = { nowMs: Date.UTC(2026, 10, 27) }
    const nowMs = () => clock.nowMs
    const service = createInstallService({ tenantId: 'acme', hmacSecret, nowMs, ...more })
    const call = { ingestUrl: 'https://ingest.test', fetch: service.fetch }
    const install = { ...call, tenantId: 'acme', deviceId: 'd-1', hmacSecret }
    const app = { platform: 'android', id: 'com.example.bank' } as const
    const challenges: string[] = []
    const getEvidence = (challenge: string) => {
      challenges.push(challenge)
      return { provider: 'none' } as const
    }
    return { clock, nowMs, service, call, challenges, register: { ...install, app, getEvidence } }
  }

  it('registers with evidence for the challenge, signed with the tenant’s secret', async () => {
    const verdict = { verdict: 'verified', reason: null, level: 'strongbox' }
    const { service, register, challenges, clock } = start({
      judge: ({ provider }) => ({ provider, ...verdict }),
    })
    const chain = [Buffer.from('leaf').toString('base64'), Buffer.from('root').toString('base64')]
    const evidence = { provider: 'key_attestation' as const, chain }
    const made = await client.registerInstall({
      ...register,
      deviceModel: 'Pixel 9',
      getEvidence: async (challenge) => {
        challenges.push(challenge)
        return evidence
      },
    })
    expect(challenges).toEqual([expect.stringMatching(/^[\w-]{54}$/)])
    expect(service.registrations).toEqual([
      {
        tenant_id: 'acme',
        device_id: 'd-1',
        challenge: challenges[0],
        app: { platform: 'android', id: 'com.example.bank' },
        device_model: 'Pixel 9',
        evidence,
      },
    ])
    expect(made).toEqual({
      installToken: expect.stringMatching(/^ins1\.1\./),
      installKey: expect.stringMatching(/^[\w-]{43}$/),
      expiresAt: new Date(clock.nowMs + 30 * day).toISOString(),
      attestation: { provider: 'key_attestation', ...verdict },
    })
  })

  it('registers on a server what an app made for its challenge', async () => {
    const { service, call, register } = start()
    const { challenge, expiresAt } = await client.fetchChallenge(call)
    expect(Date.parse(expiresAt)).toBeGreaterThan(0)
    const { getEvidence: _unused, ...server } = register
    const evidence = { provider: 'none' as const }
    await client.registerInstall({ ...server, challenge, evidence })
    expect(service.count('/v1/rasp/challenge')).toBe(1)
    expect(service.registrations[0]).toMatchObject({ challenge, evidence })
  })

  it('asks once more when the challenge has ended while evidence was made', async () => {
    const { service, register, clock, challenges } = start()
    const slow = (challenge: string) => {
      if (challenges.push(challenge) === 1) clock.nowMs += 121_000
      return { provider: 'none' as const }
    }
    await client.registerInstall({ ...register, getEvidence: slow })
    expect(service.count('/v1/rasp/installs')).toBe(2)
    const ended = (challenge: string) => {
      challenges.push(challenge)
      clock.nowMs += 121_000
      return { provider: 'none' as const }
    }
    await expect(client.registerInstall({ ...register, getEvidence: ended })).rejects.toThrow(
      'the registration was refused with 400 invalid_body: no ($.challenge has expired)',
    )
    expect(service.count('/v1/rasp/installs')).toBe(4)
  })

  it('makes evidence again when that took longer than its challenge lives', async () => {
    const { service, register, challenges } = start()
    const clock = vi.spyOn(performance, 'now')
    const slow = (challenge: string) => {
      const lateMs = challenges.push(challenge) === 1 ? 120_001 : 0
      clock.mockReturnValue(performance.timeOrigin + lateMs)
      return { provider: 'none' as const }
    }
    clock.mockReturnValue(performance.timeOrigin)
    await client.registerInstall({ ...register, getEvidence: slow }).finally(() => {
      clock.mockRestore()
    })
    expect(challenges).toHaveLength(2)
    expect(service.registrations).toMatchObject([{ challenge: challenges[1] }])
  })

  it('signs telemetry with the characters of the install key', async () => {
    const { service, call, register } = start()
    const made = await client.registerInstall(register)
    const install = { token: made.installToken, key: made.installKey }
    const answer = await client.sendTelemetry(telemetry, { ...call, install })
    expect(answer).toMatchObject({ status: 'accepted' })
    const sent = service.asked.at(-1)!
    expect(sent.body.toString()).toBe(JSON.stringify(telemetry))
    expect(sent.headers.get('x-service-install')).toBe(made.installToken)
    expect(sent.headers.get('x-service-signature')).toBe(
      createHmac('sha256', made.installKey).update(sent.body).digest('base64'),
    )
    expect(sent.headers.has('x-service-attestation')).toBe(false)
  })

  it('sends evidence for exactly the bytes that it sends', async () => {
    const { service, call, register } = start()
    const made = await client.registerInstall(register)
    const options = { ...call, install: { token: made.installToken, key: made.installKey } }
    const hash = (body: Uint8Array) => createHash('sha256').update(body).digest('base64')
    const attestation = async (body: Uint8Array) => {
      const made = hash(body)
      body.fill(0)
      return made
    }
    await client.sendTelemetry(telemetry, { ...options, attestation })
    const sent = service.asked.at(-1)!
    expect(sent.headers.get('x-service-attestation')).toBe(hash(sent.body))
    expect(sent.body.toString()).toBe(JSON.stringify(telemetry))
    await client.sendTelemetry(telemetry, { ...options, attestation: 'AAECAw==' })
    expect(service.asked.at(-1)!.headers.get('x-service-attestation')).toBe('AAECAw==')
  })

  it('sends no header of an install with the tenant’s secret', async () => {
    const { service, call } = start()
    await client.sendTelemetry(telemetry, { ...call, hmacSecret })
    const names = [...service.asked.at(-1)!.headers.keys()].sort()
    expect(names).toEqual(['content-type', 'x-service-signature'])
  })

  it('does not show the key or the secret in an error', async () => {
    const { service, call, register } = start()
    const made = await client.registerInstall(register)
    service.rotate()
    const install = { token: made.installToken, key: made.installKey }
    const error = await client
      .sendTelemetry(telemetry, { ...call, install })
      .catch((thrown: unknown) => thrown as Error)
    expect((error as Error).message).toContain('401 signature_invalid')
    expect(JSON.stringify(error)).not.toContain(made.installKey)
    expect(String((error as Error).stack)).not.toContain(made.installKey)
  })

  describe('a sender', () => {
    it('registers once for all that is sent at the same time', async () => {
      const { service, register, nowMs } = start()
      const sender = client.createInstallSender({ ...register, nowMs })
      await Promise.all(['a', 'b', 'c'].map((id) => sender.send({ ...telemetry, session_id: id })))
      expect(service.count('/v1/rasp/installs')).toBe(1)
      expect(service.count('/v1/rasp/ingest')).toBe(3)
    })

    it('keeps what it is given, and gives what it registers to be kept', async () => {
      const { service, register, nowMs } = start()
      const kept: nodeClient.Install[] = []
      const onInstall = async (install: nodeClient.Install) => {
        kept.push(install)
      }
      await client.createInstallSender({ ...register, nowMs, onInstall }).send(telemetry)
      expect(kept).toHaveLength(1)
      const [install] = kept
      const again = client.createInstallSender({ ...register, nowMs, install: install! })
      await again.send(telemetry)
      expect(await again.getInstall()).toEqual(install)
      expect(service.count('/v1/rasp/installs')).toBe(1)
    })

    it('renews a token that has ended, and one that ends within a day', async () => {
      const { service, register, nowMs, clock } = start()
      const sender = client.createInstallSender({ ...register, nowMs })
      await sender.send(telemetry)
      clock.nowMs += 30 * day - installRenewBeforeMs - 1
      await sender.send(telemetry)
      expect(service.count('/v1/rasp/installs')).toBe(1)
      clock.nowMs += 1
      await sender.send(telemetry)
      expect(service.count('/v1/rasp/installs')).toBe(2)
      clock.nowMs += 31 * day
      await sender.send(telemetry)
      expect(service.count('/v1/rasp/installs')).toBe(3)
    })

    it('sends with a token that still holds when it cannot be renewed, and tries later', async () => {
      const { service, register, nowMs, clock } = start()
      let works = true
      let attempts = 0
      const getEvidence = () => {
        attempts += 1
        if (!works) throw new Error('the keystore is locked')
        return { provider: 'none' } as const
      }
      const sender = client.createInstallSender({ ...register, getEvidence, nowMs })
      await sender.send(telemetry)
      clock.nowMs += 29.5 * day
      works = false
      await sender.send(telemetry)
      await sender.send(telemetry)
      expect(service.count('/v1/rasp/ingest')).toBe(3)
      expect(attempts).toBe(2)
      clock.nowMs += installRenewPauseMs
      await sender.send(telemetry)
      expect(attempts).toBe(3)
      clock.nowMs += day
      await expect(sender.send(telemetry)).rejects.toThrow('the keystore is locked')
    })

    it('registers once after a refusal, and sends the same bytes', async () => {
      const { service, register, nowMs } = start()
      const sender = client.createInstallSender({ ...register, nowMs })
      await sender.send(telemetry)
      service.rotate()
      await Promise.all([sender.send(telemetry), sender.send(telemetry)])
      expect(service.count('/v1/rasp/installs')).toBe(2)
      const bodies = service.asked.filter(({ path }) => path.endsWith('ingest'))
      expect(new Set(bodies.map(({ body }) => body.toString())).size).toBe(1)
    })

    it('sends with the token that another send has renewed meanwhile', async () => {
      const { service, register, nowMs } = start()
      let go = () => {}
      const gate = new Promise<void>((resolve) => {
        go = resolve
      })
      const slow = async (url: unknown, init: RequestInit = {}) => {
        const answer = await service.fetch(url as string, init)
        const isLate = Buffer.from((init.body ?? []) as Uint8Array).includes('"late"')
        if (isLate && answer.status === 401) await gate
        return answer
      }
      const fetch = slow as typeof globalThis.fetch
      const sender = client.createInstallSender({ ...register, fetch, nowMs })
      await sender.send(telemetry)
      service.rotate()
      const late = sender.send({ ...telemetry, session_id: 'late' })
      await sender.send(telemetry)
      go()
      expect(await late).toMatchObject({ status: 'accepted' })
      expect(service.count('/v1/rasp/installs')).toBe(2)
    })

    it('does not register for each event when every token is refused', async () => {
      const { service, register, nowMs, clock } = start()
      const refusing = async (url: unknown, init?: RequestInit) =>
        String(url).endsWith('/ingest')
          ? new Response('{"code":"signature_invalid","detail":"no"}', { status: 401 })
          : service.fetch(url as string, init)
      const fetch = refusing as typeof globalThis.fetch
      const sender = client.createInstallSender({ ...register, fetch, nowMs })
      for (let event = 0; event < 5; event++) {
        await expect(sender.send(telemetry)).rejects.toThrow('401 signature_invalid')
      }
      expect(service.count('/v1/rasp/installs')).toBe(2)
      clock.nowMs += installRenewPauseMs
      await expect(sender.send(telemetry)).rejects.toThrow('401')
      expect(service.count('/v1/rasp/installs')).toBe(3)
    })

    it('renews for no other refusal', async () => {
      const { service, register, nowMs } = start()
      const bad = async (url: unknown, init?: RequestInit) =>
        String(url).endsWith('/ingest')
          ? new Response('{"code":"invalid_body","detail":"no"}', { status: 400 })
          : service.fetch(url as string, init)
      const fetch = bad as typeof globalThis.fetch
      const sender = client.createInstallSender({ ...register, fetch, nowMs })
      await expect(sender.send(telemetry)).rejects.toThrow('400 invalid_body')
      expect(service.count('/v1/rasp/installs')).toBe(1)
    })

    it('asks the app’s own server, where the secret is', async () => {
      const { service, call, register, nowMs } = start()
      const sender = client.createInstallSender({
        ...call,
        deviceId: 'd-1',
        nowMs,
        register: () => client.registerInstall(register),
      })
      await sender.send(telemetry)
      service.rotate()
      await sender.send(telemetry)
      expect(service.count('/v1/rasp/installs')).toBe(2)
    })

    it('ends a send at its signal, and no other send with it', async () => {
      const { register, nowMs } = start()
      const abort = new AbortController()
      let go = () => {}
      const gate = new Promise<void>((resolve) => {
        go = resolve
      })
      const getEvidence = async () => {
        await gate
        return { provider: 'none' } as const
      }
      const sender = client.createInstallSender({ ...register, getEvidence, nowMs })
      const ended = sender.send(telemetry, { signal: abort.signal })
      const other = sender.send(telemetry)
      const reason = new Error('the page was left')
      abort.abort(reason)
      await expect(ended).rejects.toBe(reason)
      go()
      expect(await other).toMatchObject({ status: 'accepted' })
    })
  })
})
