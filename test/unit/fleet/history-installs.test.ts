/**
 * The installs of a history: phones register with evidence that the service verifies, newer SDKs
 * alone, and a keybox that leaked is on more models than a factory makes.
 */
import { describe, expect, it } from 'vitest'
import { dayMs } from '#shared/core/base/instants.ts'
import { issuerModelsMax, retryMaxMs } from '#shared/core/base/limits/history.ts'
import type { Registration } from '#shared/core/installs/registration.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { toPolicyHash } from '#shared/core/policies/policy.ts'
import { decodeBatch, toStreamOffset } from '#shared/core/telemetry/event-batch.ts'
import { acceptVisits } from '../../../deploy/fleet/history/history-edge.ts'
import { createHistoryInstalls } from '../../../deploy/fleet/history/history-installs.ts'
import { makeHistory } from '../../../deploy/fleet/history/history-plan.ts'
import { makePopulation } from '../../../deploy/fleet/phones/population.ts'
import { encodeBatch, toWaiterBytes } from '../../../services/ingest/group-commit.ts'

const startMs = Date.UTC(2026, 2, 2)
const edge = {
  tenantId: 'history',
  hmacSecret: 'the secret of the simulated history',
  policy: defaultPolicy,
  policyVersion: 1,
  policyHash: toPolicyHash(defaultPolicy),
}

function makeVisits(seed: number, days: number, devices: number) {
  const model = makeHistory(seed, devices, { startMs, days, visitDays: days + 1 })
  const installs = createHistoryInstalls({ seed, tenantId: 'history' })
  const visits = acceptVisits(model, edge, { startMs, endMs: startMs + days * dayMs }, installs)
  return visits.map((visit) => {
    const { head, body, registration } = visit
    const elements = registration === null ? [] : [registration]
    const waiters = [...elements, { head, body }].map((one) => {
      return { ...one, bytes: toWaiterBytes(one.head, one.body), arrivedMs: 0 }
    })
    const batch = decodeBatch(encodeBatch(waiters), toStreamOffset(0, 1))
    expect(batch.invalid).toEqual([])
    const [event] = batch.events
    return { visit, event: event!, registration: batch.registrations[0]?.body ?? null }
  })
}

const visits = makeVisits(1, 7, 300)
const registrations = visits.flatMap(({ registration }) => registration ?? [])
const signalsOf = (one: (typeof visits)[number]) => one.event.server_signals?.attestation ?? {}

describe('the installs of a week', () => {
  it('sign the events of newer SDKs, and the tenant’s secret those of others', () => {
    for (const one of visits) {
      const { sdk, kind } = one.visit.phone
      const isOld = sdk.age < 0.6 || sdk.name === 'server'
      if (isOld) expect(signalsOf(one)).toEqual({ missing: true })
      else if (kind.name === 'stock-ios') expect(signalsOf(one).install_key).toBe(true)
      expect(one.event.install !== undefined).toBe(signalsOf(one).install_key === true)
    }
    const shares = visits.filter(({ event }) => event.install !== undefined).length / visits.length
    expect(shares).toBeGreaterThan(0.4)
    expect(shares).toBeLessThan(0.95)
  })

  it('register once for a phone and its token, before its first event with it', () => {
    const seen = new Set<string>()
    for (const { event, registration } of visits) {
      if (registration !== null) {
        expect(registration.device_id).toBe(event.body.device_id)
        expect(registration.token_id).toBe(event.install!.token_id)
        seen.add(registration.token_id)
      } else if (event.install !== undefined) expect(seen.has(event.install.token_id)).toBe(true)
    }
    expect(seen.size).toBe(registrations.length)
  })

  it('are verified where the phone is genuine, and rejected where it is not', () => {
    const of = (name: string): Registration[] =>
      visits
        .filter(({ visit }) => visit.phone.kind.name === name)
        .flatMap(({ registration }) => registration ?? [])
    const verdicts = (name: string) => new Set(of(name).map(({ verdict }) => verdict))
    expect(verdicts('stock-ios')).toEqual(new Set(['verified']))
    const magisk = new Set(of('rooted-magisk').map(({ reason }) => reason))
    expect(magisk).toEqual(new Set(['bootloader_unlocked']))
    expect(verdicts('stock-android').has('rejected')).toBe(false)
    expect(of('stock-android').some(({ remotely_provisioned: is }) => is)).toBe(true)
  })

  it('have one leaked keybox, on more models than a factory makes', () => {
    const models = new Map<string, Set<string>>()
    for (const { issuers, device_model: model, remotely_provisioned: is } of registrations) {
      const [issuer] = issuers
      if (issuer === undefined || is) continue
      models.set(issuer, (models.get(issuer) ?? new Set()).add(model))
    }
    const apple = registrations.find(({ provider }) => provider === 'app_attest')
    expect(apple?.issuers).toEqual([])
    const shared = [...models.values()].filter(({ size }) => size > issuerModelsMax)
    expect(shared).toHaveLength(1)
  })

  it('have some requests captured and sent again, later than any client retries', () => {
    const first = new Map<string, number>()
    let replays = 0
    for (const { visit, event, registration } of visits) {
      const { isReplay } = visit
      expect(first.has(event.event_id)).toBe(isReplay)
      if (!isReplay) first.set(event.event_id, event.received_at)
      if (!isReplay) continue
      replays++
      expect(registration).toBeNull()
      expect(event.received_at - first.get(event.event_id)!).toBeGreaterThan(retryMaxMs)
    }
    expect(replays).toBeGreaterThan(2)
    expect(replays).toBeLessThan(visits.length / 20)
  })

  const registerFirst = (seed: number) => {
    const { before } = createHistoryInstalls({ seed, tenantId: 'history' })
    const phones = makePopulation(1, 60).filter(({ kind }) => kind.name === 'stock-android')
    const made = phones.slice(0, 6).map((phone) => before(phone, 's-1', startMs))
    return made.map((one) => {
      if (one?.registration === undefined) return null
      const { attested_key: key } = JSON.parse(String(one.registration!.body)) as Registration
      return { key, token: one.token }
    })
  }

  it('are the same for the same seed', () => {
    const keysOf = (seed: number) => registerFirst(seed).map((one) => one?.key)
    expect(keysOf(3)).toEqual(keysOf(3))
    expect(keysOf(4)).not.toEqual(keysOf(3))
  })
})

it('a phone renews its token in the last day of its thirty', () => {
  const { before } = createHistoryInstalls({ seed: 1, tenantId: 'history' })
  const phone = makePopulation(1, 60).find(({ kind, sdk }) => {
    return kind.name === 'stock-ios' && sdk.age === 1
  })!
  const isNew = (days: number) =>
    before(phone, `s-${days}`, startMs + days * dayMs)!.registration !== null
  expect([0, 0.1, 28.9, 29.1, 29.2, 58, 58.5].map(isNew)).toEqual([
    ...[true, false, false, true, false, false, true],
  ])
})
