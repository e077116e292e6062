// Deciding on phones takes a bounded number of counted steps, however alike or odd installs are.
import { describe, expect, it } from 'vitest'
import {
  comparedInstallsMax,
  latestHoldersMax,
  tenantStepsMax,
} from '#shared/core/base/limits/entities.ts'
import type { InstallTraits } from '#shared/core/identity/comparison.ts'
import type { PhoneFacts } from '#shared/core/identity/phone-findings.ts'
import { toPhoneId } from '#shared/core/identity/phone-id.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { createIdentityKeyWriter } from '#shared/io/identity/identity-key-store.ts'
import { placeKeys } from '#shared/io/identity/identity-keys-reader.ts'
import { createPhones } from '#shared/io/identity/phones.ts'
import { emptyPostgres } from '../../support/identity/walk-phones.ts'
import { useClickhouse } from '../../support/servers/migrated-clickhouse.ts'

const clickhouse = await useClickhouse()

const identifierNames = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
/** A phone with as many keys as an event can have; those of one number are equal. */
const toTraits = (n: number): InstallTraits => ({
  identifiers: Object.fromEntries(identifierNames.map((name) => [name, `${name}-${n}`])),
  hardware: `model-${n}`,
  model: `model-${n}`,
  memoryBytes: null,
  setup: `setup-${n}`,
  network: `network-${n}`,
  users: [`account-${n}`, `user-${n}`],
  bootAtMs: n * 1_000_000,
})
const keysOfInstall = 13

type Install = { tenantId: string; deviceId: string; traits: InstallTraits; streamOffset: number }

let offsets = 0
/** Stores what the events of new installs tell, as the store stage does. */
async function store(installs: readonly Omit<Install, 'streamOffset'>[]): Promise<Install[]> {
  const stored = installs.map((install) => ({ ...install, streamOffset: ++offsets }))
  await createIdentityKeyWriter(clickhouse).insertIdentityKeys(
    stored.map(
      ({ tenantId, deviceId, traits, streamOffset }) =>
        ({
          tenant_id: tenantId,
          received_at: streamOffset,
          streamOffset,
          traits,
          body: { device_id: deviceId },
        }) as unknown as AcceptedEvent,
    ),
  )
  return stored
}

/** Decides on installs as one batch of a scorer that was just started, and stores its decisions. */
async function decide(installs: readonly Install[]) {
  let steps = 0
  const phones = createPhones(clickhouse, emptyPostgres, (taken) => {
    steps += taken
  })
  const found = await phones.findFacts(installs.map((one) => ({ ...one, atMs: 1 })))
  const decided = found.flatMap((one) => one?.decided ?? [])
  await phones.insertLinks(decided)
  return { steps, facts: found as PhoneFacts[] }
}

const many = (count: number, toInstall: (n: number) => Omit<Install, 'streamOffset'>) =>
  store(Array.from({ length: count }, (_, n) => toInstall(n)))

describe('500 new installs', () => {
  const decideBatches = async (installs: readonly Install[], size: number) => {
    const kinds = new Map<string, number>()
    let steps = 0
    for (let at = 0; at < installs.length; at += size) {
      const batch = await decide(installs.slice(at, at + size))
      steps += batch.steps
      for (const { link } of batch.facts) {
        const name = `${link.kind} ${link.isCompared}`
        kinds.set(name, (kinds.get(name) ?? 0) + 1)
      }
    }
    return { steps, kinds: Object.fromEntries(kinds) }
  }

  it('take hardly more steps when they are equal than when they are of 500 phones', async () => {
    const equal = await many(500, (n) => ({
      tenantId: 'equal',
      deviceId: `equal-${n}`,
      traits: toTraits(1),
    }))
    const own = await many(500, (n) => ({
      tenantId: 'own',
      deviceId: `own-${n}`,
      traits: toTraits(n + 2),
    }))
    const ofOwn = await decideBatches(own, 500)
    expect(ofOwn).toEqual({
      kinds: { 'first true': 500 },
      // Each key, the install that has it, and the look-up of it; nobody has the last one before.
      steps: 500 * 3 * keysOfInstall - keysOfInstall,
    })
    const ofEqual = await decideBatches(equal, 500)
    expect(ofEqual.kinds).toEqual({ 'first true': 1, 'linked true': 499 })
    expect(ofEqual.steps / ofOwn.steps).toBeLessThan(1.5)
  })

  it('take a bounded number of steps in small batches too', async () => {
    const equal = await many(500, (n) => ({
      tenantId: 'small',
      deviceId: `small-${n}`,
      traits: toTraits(1),
    }))
    const { steps, kinds } = await decideBatches(equal, 100)
    expect(kinds).toEqual({ 'first true': 1, 'linked true': 499 })
    // The latest installs with each key are read again with each batch.
    const readAgain = 5 * keysOfInstall * latestHoldersMax * (1 + comparedInstallsMax)
    expect(steps).toBeLessThan(500 * 3 * keysOfInstall * 1.5 + readAgain)
  })
})

describe('a tenant whose installs take all steps', () => {
  const tenantId = 'odd'
  /** Other installs with each key of some new ones, which nobody has decided on. */
  async function storeOthers(installs: readonly Install[]): Promise<void> {
    const keys = installs.flatMap(({ traits, ...install }) =>
      placeKeys({ ...install, traits, receivedAtMs: 1 }),
    )
    const hashes = keys.filter(({ isPersonal }) => isPersonal).map(({ keyHash }) => keyHash)
    await clickhouse.command({
      query: `insert into identity_keys
          (tenant_id, key_hash, device_id, stream_offset, last_seen_at)
        select '${tenantId}', key, concat('other-', toString(key), '-', toString(number)), 0, now64(3)
        from numbers(${latestHoldersMax}) array join [${hashes.join()}] as key`,
    })
  }

  it('has some left out, which are compared later; other tenants are decided as ever', async () => {
    const [known] = await many(1, () => ({
      tenantId: 'other',
      deviceId: 'known',
      traits: toTraits(0),
    }))
    await decide([known!])
    const installs = await many(120, (n) => ({
      tenantId,
      deviceId: `odd-${n}`,
      traits: toTraits(n),
    }))
    const [again] = await many(1, () => ({
      tenantId: 'other',
      deviceId: 'again',
      traits: toTraits(0),
    }))
    const [last] = await many(1, () => ({
      tenantId,
      deviceId: 'odd-last',
      traits: toTraits(0),
    }))
    await storeOthers(installs)
    const { steps, facts } = await decide([...installs, last!, again!])
    const ofOthers = 10 * latestHoldersMax * (1 + comparedInstallsMax)
    expect(steps).toBeGreaterThan(tenantStepsMax)
    expect(steps).toBeLessThan(tenantStepsMax + 2 * ofOthers)
    const links = facts.map(({ link }) => link)
    expect(links.at(-1)).toMatchObject({ kind: 'linked', phoneId: toPhoneId('other', 'known') })
    // Its keys are those of the first install, which were read.
    expect(links.at(-2)).toMatchObject({ kind: 'linked', installs: ['odd-0'] })
    const compared = links.slice(0, installs.length).filter(({ isCompared }) => isCompared)
    expect(compared.length).toBeGreaterThan(tenantStepsMax / ofOthers - 2)
    expect(compared.length).toBeLessThan(tenantStepsMax / ofOthers + 2)
    // The first in the stream are compared.
    expect(compared.map(({ deviceId }) => deviceId)).toEqual(
      installs.slice(0, compared.length).map(({ deviceId }) => deviceId),
    )
    const left = links.find(({ deviceId }) => deviceId === `odd-${compared.length}`)!
    expect(left).toMatchObject({ kind: 'first', isCompared: false, installs: [] })
    expect(left.phoneId).toBe(toPhoneId(tenantId, left.deviceId))

    const { facts: later } = await decide(installs.slice(compared.length, compared.length + 2))
    expect(later.map(({ link }) => [link.isCompared, link.deviceId])).toEqual([
      [true, left.deviceId],
      [true, `odd-${compared.length + 1}`],
    ])
    const result = await clickhouse.query({
      query: `select is_compared from phone_links final
        where tenant_id = {tenantId:String} and device_id = {deviceId:String}`,
      query_params: left,
      format: 'JSONCompactEachRow',
    })
    expect(await result.json()).toEqual([[true]])
  })
})
