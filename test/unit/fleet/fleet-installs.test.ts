/**
 * The phones of `di fleet --installs`, and its check: the same seed is the same cast, evidence is
 * what the kind says, and whatever the service gets wrong is found.
 */
import { describe, expect, it } from 'vitest'
import type { AttestedApp } from '#shared/core/attestation/apps.ts'
import { checkKeyAttestation } from '#shared/core/attestation/key-attestation.ts'
import {
  androidApp,
  type InstallPhone,
  makeCast,
  type TestKeys,
} from '../../../deploy/fleet/installs/cast.ts'
import {
  checkSignals,
  type EventFindings,
  type FindingsByEvent,
} from '../../../deploy/fleet/installs/check-signals.ts'
import type { Registered } from '../../../deploy/fleet/installs/exchange.ts'
import { installKinds } from '../../../deploy/fleet/installs/kinds.ts'
import { createMismatches } from '../../../deploy/fleet/send/sent-events.ts'
import { testSigner, toRootKey } from '../../support/attestation/make-android-chain.ts'
import { makeKey } from '../../support/attestation/make-certificate.ts'
import { makePlayAccount } from '../../support/attestation/make-play-token.ts'

const clock = Date.UTC(2026, 10, 27)
const keys: TestKeys = {
  android: { key: makeKey('P-384'), name: 'Test Android root' },
  apple: { key: makeKey('P-384'), name: 'Test Apple root' },
  play: makePlayAccount(),
}
const casting = { seed: 7, keys, nowMs: () => clock }
const cast = makeCast(60, casting)
const ofKind = (name: string) => cast.filter(({ kind }) => kind.name === name)
const challenge = Buffer.alloc(40, 5)

describe('the cast', () => {
  it('has every kind, enough of each, on phones of its platform with ids of their own', () => {
    for (const { name, atLeast, platform } of installKinds) {
      expect(ofKind(name).length, name).toBeGreaterThanOrEqual(atLeast)
      for (const { phone } of ofKind(name)) expect(phone.kind.platform).toBe(platform)
    }
    expect(new Set(cast.map(({ phone }) => phone.deviceId)).size).toBe(cast.length)
  })

  it('is the same with the same seed', async () => {
    const listKeys = async (members: readonly InstallPhone[]) => {
      const [phone] = members.filter(({ kind }) => kind.name === 'genuine-ios')
      const evidence = await phone!.attest!(challenge)
      return [members.map(({ phone: { deviceId } }) => deviceId), Reflect.get(evidence, 'key_id')]
    }
    expect(await listKeys(makeCast(60, casting))).toEqual(await listKeys(cast))
    expect(await listKeys(makeCast(60, { ...casting, seed: 8 }))).not.toEqual(await listKeys(cast))
  })

  const apps: AttestedApp[] = [{ ...androidApp, signers: [testSigner.toString('hex')] }]
  const android = installKinds.filter(({ provider }) => provider === 'key_attestation')

  it.each(android)('of $name has the evidence of its kind', async ({ name, attestation }) => {
    const { attest } = ofKind(name)[0]!
    const evidence = await attest!(challenge)
    if (evidence.provider !== 'key_attestation') expect.unreachable()
    const chain = evidence.chain.map((certificate) => Buffer.from(certificate, 'base64'))
    const roots = [toRootKey(keys.android)]
    const check = checkKeyAttestation({
      ...{ chain, challenge, apps, roots },
      statusList: null,
      nowMs: clock,
    })
    const { verdict, reason, level } = check
    expect({ verdict, reason, level }).toEqual(attestation)
  })

  it('sells one keybox to owners of many models, and copies one enclave', async () => {
    const issuers = new Set<string>()
    for (const { attest } of ofKind('leaked-keybox')) {
      const evidence = await attest!(challenge)
      issuers.add((evidence as { chain: string[] }).chain[1]!)
    }
    expect(issuers.size).toBe(1)
    const [one, other] = ofKind('copied-enclave').map(({ attest }) => attest!(challenge))
    expect(Reflect.get((await one)!, 'key_id')).toBe(Reflect.get((await other)!, 'key_id'))
  })

  it('has no evidence where the stack knows no roots of its own', () => {
    const plain = makeCast(60, { ...casting, keys: null })
    expect(plain.filter(({ attest, prove }) => attest !== null || prove !== null)).toEqual([])
    expect(new Set(plain.map(({ attestation }) => attestation.verdict))).toEqual(new Set(['none']))
  })
})

describe('the check', () => {
  const registered = installKinds.map((kind, index): Registered => {
    const member = cast.find((one) => one.kind === kind)!
    const eventId = `evt_${index}`
    return { member, install: {} as never, events: [{ eventId, body: Buffer.alloc(0) }] }
  })
  const madeUp = ['evt_made_up']
  const toSignals = (names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, true]))
  const right = (): FindingsByEvent =>
    new Map<string, EventFindings>([
      ...registered.map(({ member: { kind }, events }): [string, EventFindings] => {
        const flags = ['ROOTED', ...(kind.orderFlag === undefined ? [] : [kind.orderFlag])]
        return [events[0]!.eventId, { signals: toSignals(kind.has), flags }]
      }),
      ['evt_made_up', { signals: { missing: true }, flags: [] }],
    ])
  const check = async (found: FindingsByEvent) => {
    const mismatches = createMismatches()
    const read = async () => found
    const isOver = () => true
    const pause = async () => {}
    const counted = await checkSignals({ registered, madeUp, mismatches, read, isOver, pause })
    return { counted, what: Object.keys(mismatches.byWhat) }
  }

  it('finds nothing wrong where all is right, and counts it', async () => {
    const { counted, what } = await check(right())
    expect(what).toEqual([])
    expect(counted.events).toBe(installKinds.length + 1)
    expect(counted.counts).toMatchObject({ missing: 1, rejected: 3, COUNTER_REUSED: 1 })
    expect(counted.counts.ATTESTATION_KEY_SHARED).toBe(2)
  })

  const change = (name: string, to: Partial<EventFindings>): FindingsByEvent => {
    const found = right()
    const index = installKinds.findIndex((kind) => kind.name === name)
    const eventId = index < 0 ? 'evt_made_up' : `evt_${index}`
    found.set(eventId, { ...found.get(eventId)!, ...to })
    return found
  }

  it.each([
    ['genuine-factory', { signals: { install_key: true } }],
    ['genuine-ios', { signals: toSignals(['install_key', 'verified', 'rejected']) }],
    ['genuine-provisioned', { flags: ['ATTESTATION_KEY_SHARED'] }],
    ['leaked-keybox', { flags: [] }],
    ['frozen-counter', { flags: ['ATTESTATION_KEY_SHARED'] }],
    ['unlocked', { signals: toSignals(['install_key', 'verified', 'bootloader_unlocked']) }],
    ['extracted-secret', { signals: toSignals(['missing', 'install_key']) }],
  ] as const)('finds what is wrong of %s: %o', async (name, to) => {
    expect((await check(change(name, to))).what).toEqual([`signals_${name}`])
  })

  it('finds an event that is not stored', async () => {
    const found = right()
    found.delete('evt_made_up')
    expect((await check(found)).what).toEqual(['signals_extracted-secret'])
  })
})
