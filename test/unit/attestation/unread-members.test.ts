// What no decision reads may have any form: genuine phones and Google's own answers have odd values.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Evidence } from '#shared/core/attestation/recognize.ts'
import { runJob } from '../../../services/ingest/installs/evidence-worker.ts'
import { explicit, integer, nothing, octets, sequence, set } from '../../support/attestation/der.ts'
import {
  androidApp,
  appleApp,
  playKeys,
  testRoots,
  toAppleEvidence,
  toChainEvidence,
  toPlayToken,
} from '../../support/installs/evidence-fixtures.ts'
import { seed } from '../../support/process/seed.ts'

const challenge = Buffer.alloc(40, 7)
const nowMs = Date.UTC(2026, 10, 1)

const verify = (evidence: Evidence) =>
  runJob({
    evidence,
    challenge,
    environment: 'live',
    apps: [androidApp, { ...appleApp, allowsDevelopment: false }],
    playKeys,
    roots: testRoots,
    revoked: null,
    nowMs,
  })

describe(`a value that no decision reads (seed ${seed})`, () => {
  const tags = [
    1, 2, 3, 5, 11, 303, 400, 503, 504, 505, 509, 601, 701, 705, 706, 710, 717, 718, 719,
  ]
  const later = [720, 724, 799, 1_000]
  const values = [
    nothing,
    integer(0),
    integer(201_900),
    Buffer.from('0201ff', 'hex'),
    octets(Buffer.from('Nokia')),
    set(octets([])),
    sequence([sequence([])]),
    Buffer.of(0x16, 1, 0x41),
  ]
  const entry = (own: readonly number[]) =>
    fc
      .tuple(fc.constantFrom(...tags, ...later, ...own), fc.constantFrom(...values))
      .map(([tag, value]) => explicit(tag, value))
  const entries = (...own: number[]) => fc.array(entry(own), { maxLength: 4 })

  it('in the description of an Android key, once or twice, changes no verdict', async () => {
    await fc.assert(
      // Each list has tags that only the other one is read for.
      fc.asyncProperty(entries(709), entries(702, 704), async (more, moreSoftware) => {
        const phone = { more, moreSoftware }
        const { verdict, reason, level, signals } = await verify(toChainEvidence(challenge, phone))
        expect([verdict, reason, level]).toEqual(['verified', null, 'hardware'])
        const { os_patch_age_days: _, ...rest } = signals
        expect(rest).toEqual({ verified: true, hardware_backed: true })
      }),
      { seed, numRuns: 60 },
    )
  })

  it.each([0, 201_900, 202_613])('patch level %d leaves the age unknown', async (patchLevel) => {
    const evidence = toChainEvidence(challenge, { patchLevel })
    expect((await verify(evidence)).signals).toEqual({ verified: true, hardware_backed: true })
  })

  it('that is read must be readable', async () => {
    for (const more of [[explicit(702, nothing)], [explicit(704, nothing)]]) {
      const { reason } = await verify(toChainEvidence(challenge, { more }))
      expect(reason).toBe('key_description_malformed')
    }
    const moreSoftware = [explicit(709, octets([]))]
    const { reason } = await verify(toChainEvidence(challenge, { moreSoftware }))
    expect(reason).toBe('key_description_malformed')
  })

  /** A whole answer of Google's, with every documented member. */
  const whole = {
    appIntegrity: {
      appRecognitionVerdict: 'PLAY_RECOGNIZED',
      packageName: androidApp.id,
      certificateSha256Digest: [Buffer.alloc(32, 0xab).toString('base64url')],
      versionCode: '42',
    },
    deviceIntegrity: {
      deviceRecognitionVerdict: ['MEETS_DEVICE_INTEGRITY', 'MEETS_STRONG_INTEGRITY'],
      recentDeviceActivity: { deviceActivityLevel: 'LEVEL_1' },
      deviceAttributes: { sdkVersion: 34 },
      deviceRecall: { values: { bitFirst: false }, writeDates: {} },
    },
    accountDetails: { appLicensingVerdict: 'LICENSED', accountActivity: { activityLevel: 'NONE' } },
    environmentDetails: {
      playProtectVerdict: 'NO_ISSUES',
      appAccessRiskVerdict: { appsDetected: ['KNOWN_INSTALLED'] },
    },
  }
  const judged = [
    'appIntegrity',
    'appIntegrity.packageName',
    'appIntegrity.certificateSha256Digest',
  ]
  const listPaths = (value: unknown, path = ''): string[] =>
    typeof value !== 'object' || value === null || Array.isArray(value)
      ? [path]
      : [
          path,
          ...Object.keys(value).flatMap((key) => listPaths(value[key as never], `${path}.${key}`)),
        ]
  const paths = listPaths(whole)
    .map((path) => path.slice(1))
    .filter((path) => path !== '' && !judged.includes(path))
  const left = Symbol('left out')
  const alter = (path: string, value: unknown) => {
    const verdict = structuredClone(whole)
    const keys = path.split('.')
    const last = keys.pop()!
    const parent = keys.reduce<Record<string, never>>((part, key) => part[key]!, verdict as never)
    if (value === left) delete parent[last]
    else parent[last] = value as never
    return verdict
  }

  it.each(paths)(
    '%s of a Play verdict, left out or of any type, changes no verdict',
    async (path) => {
      for (const value of [left, null, '34', 34, true, [], [null, 7], {}]) {
        const token = await toPlayToken(challenge, nowMs, alter(path, value))
        const { verdict, reason } = await verify({ provider: 'play_integrity', token })
        expect([path, value, verdict, reason]).toEqual([path, value, 'verified', null])
      }
    },
  )

  it('of a Play verdict takes nothing from what others say', async () => {
    const odd = alter('environmentDetails.appAccessRiskVerdict', 'NONE')
    const token = await toPlayToken(challenge, nowMs, odd)
    expect(await verify({ provider: 'play_integrity', token })).toMatchObject({
      level: 'hardware',
      signals: { verified: true, pi_app: 'PLAY_RECOGNIZED', play_protect: 'NO_ISSUES' },
    })
  })

  it.each(['appIntegrity.packageName', 'appIntegrity.certificateSha256Digest'])(
    '%s of a Play verdict is judged',
    async (path) => {
      const token = await toPlayToken(challenge, nowMs, alter(path, 7))
      expect(await verify({ provider: 'play_integrity', token })).toMatchObject({
        verdict: 'rejected',
      })
    },
  )
})

describe('evidence that is sent in another form', () => {
  const chain = (toChainEvidence(challenge) as { chain: string[] }).chain
  const apple = toAppleEvidence(challenge, nowMs) as { key_id: string; attestation: string }
  const ofChain = (change: (text: string) => string): Evidence => ({
    provider: 'key_attestation',
    chain: chain.map((text, index) => (index === 1 ? change(text) : text)),
  })
  const ofApple = (change: Partial<typeof apple>): Evidence => ({
    provider: 'app_attest',
    ...apple,
    ...change,
  })
  const wrap = (text: string) => text.replace(/(.{76})/g, '$1\n')
  const toHex = (text: string) => Buffer.from(text, 'base64').toString('hex')

  it('is read with the line breaks of Android’s encoder, and spaces', async () => {
    const token = await toPlayToken(challenge, nowMs)
    const given: Evidence[] = [
      ofChain((text) => `${wrap(text)}\n`),
      ofChain((text) => ` ${text.replace(/(.{64})/g, '$1\r\n\t')}`),
      ofApple({ attestation: `${wrap(apple.attestation)}\n`, key_id: `${apple.key_id}\n` }),
      { provider: 'play_integrity', token: `${wrap(token)}\n` },
    ]
    for (const evidence of given) {
      expect(await verify(evidence)).toMatchObject({ verdict: 'verified', unreadable: null })
    }
  })

  it.each<[string, Evidence, string, string]>([
    [
      'PEM',
      ofChain((text) => `-----BEGIN CERTIFICATE-----\n${wrap(text)}\n-----END`),
      'chain[1]',
      'this is PEM',
    ],
    ['hex', ofChain(toHex), 'chain[1]', 'this is hex'],
    ['hex of a key id', ofApple({ key_id: toHex(apple.key_id) }), 'key_id', 'this is hex'],
    ['any text', ofChain(() => 'hello world!'), 'chain[1]', 'one certificate in DER'],
    ['base64 of a text', ofChain(() => 'helloworld'), 'chain[1]', 'one certificate in DER'],
    [
      'the chain in one text',
      { provider: 'key_attestation', chain: [chain.join('')] },
      'chain[0]',
      'one certificate',
    ],
    [
      'the leaf alone',
      { provider: 'key_attestation', chain: [chain[0]!] },
      'chain',
      'all certificates',
    ],
    [
      'an attestation as text',
      ofApple({ attestation: 'hello world!' }),
      'attestation',
      'attestKey',
    ],
    [
      'base64 of base64',
      ofApple({ attestation: btoa(apple.attestation) }),
      'attestation',
      'attestKey',
    ],
    ['a token of another kind', { provider: 'play_integrity', token: 'a.b.c' }, 'token', 'classic'],
  ])('%s is not registered: the answer names the member', async (_, evidence, member, says) => {
    const { unreadable } = await verify(evidence)
    expect(unreadable?.path).toBe(`$.evidence.${member}`)
    expect(unreadable?.message).toContain(says)
  })
})
