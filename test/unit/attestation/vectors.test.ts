import { describe, expect, it } from 'vitest'
import { attestationReasons } from '#shared/core/attestation/reasons.ts'
import { makeVectors } from '../../generate/attestation-vectors.ts'
import { vectorSteps } from '../../support/attestation/vector-steps.ts'
import { checkVector, readVectors, vectorKinds } from '../../support/attestation/vectors.ts'

const file = readVectors()
type Result = Pick<(typeof file.vectors)[number], 'verdict' | 'reason' | 'level'>
const toResult = ({ verdict, reason, level }: Result) => {
  return { verdict, reason, level }
}

/** What a tenant or an install lacks: no verifier says so (see the tests of `installs`). */
const ofInstalls = ['play_keys_missing', 'key_missing']

describe('the vectors of attestation', () => {
  it.each(file.vectors)('$name: $verdict, $reason', async (vector) => {
    const check = await checkVector(file, vector)
    expect(check).toMatchObject(toResult(vector))
    const failed = check.steps.find(({ ok }) => !ok)
    expect(failed?.step ?? null).toBe(vector.step)
  })

  it('have a failure for each reason', () => {
    const reasons = new Set(file.vectors.map(({ reason }) => reason))
    const missing = Object.keys(attestationReasons).filter(
      (reason) => !reasons.has(reason as never) && !ofInstalls.includes(reason),
    )
    expect(missing).toEqual([])
  })

  it.each(vectorKinds)('of %s have a failure for each of its steps', async (kind) => {
    const own = file.vectors.filter((vector) => vector.kind === kind)
    const genuine = own.filter(({ verdict }) => verdict === 'verified')
    const lists = await Promise.all(genuine.map((vector) => checkVector(file, vector)))
    const passed = new Set(lists.flatMap(({ steps }) => steps.map(({ step }) => step)))
    expect([...passed].sort()).toEqual(Object.keys(vectorSteps[kind]).sort())
    const failed = new Set(own.flatMap(({ step }) => step ?? []))
    expect([...failed].sort()).toEqual([...passed].sort())
  })

  it('are those that the generator makes, with its keys of now', async () => {
    const made = await makeVectors(file.vectors[0]!.now_ms)
    const describeAll = (vectors: typeof file.vectors) =>
      vectors.map(({ name, step, ...rest }) => ({ name, step, ...toResult(rest) }))
    expect(describeAll(made.vectors)).toEqual(describeAll(file.vectors))
    for (const vector of made.vectors) {
      expect(await checkVector(made, vector), vector.name).toMatchObject(toResult(vector))
    }
  })

  it('reveal the facts of a genuine phone and nothing judged that was not asked', async () => {
    const [phone] = file.vectors
    const { facts } = await checkVector(file, phone!)
    expect(facts).toMatchObject({
      not_judged: ['revocation'],
      root: 'Test Android root',
      provisioning: 'factory',
      key_algorithm: 'ec prime256v1',
      attestation_version: 300,
      attestation_security_level: 'TRUSTED_ENVIRONMENT',
      key_mint_security_level: 'TRUSTED_ENVIRONMENT',
      attestation_challenge: phone!.challenge,
      software_enforced: {
        attestation_application_id: { packages: [{ name: 'com.example.bank', version: 7 }] },
      },
      hardware_enforced: {
        purposes: [2, 3],
        no_auth_required: true,
        origin: 'GENERATED',
        root_of_trust: { device_locked: true, verified_boot_state: 'VERIFIED' },
        os_patch_level: 202_610,
        are_tags_ordered: true,
      },
      os_patch_age_days: 57,
    })
  })

  it('reveal what iOS 27 adds', async () => {
    const added = { validation_category: 2, bundle_version: '42' }
    const withMap = file.vectors.filter(({ name }) => name.endsWith('from iOS 27'))
    expect(withMap.map(({ kind }) => kind)).toEqual(['app_attest', 'assertion'])
    for (const vector of withMap) {
      expect((await checkVector(file, vector)).facts).toMatchObject(added)
    }
  })

  it('name what a later iOS adds, and do not read it as what is known', async () => {
    const vector = file.vectors.find(({ name }) => name.endsWith('from a later iOS'))!
    const { facts } = await checkVector(file, vector)
    const names = ['apple_validation_category_01', 'apple_validation_category_02']
    expect(facts.unknown_extensions).toEqual([...names, '3', 'apple_signed_at_01'])
    expect(facts).not.toHaveProperty('validation_category')
  })

  it('refuse a token, and its header, by their length before anything is parsed', async () => {
    const vector = file.vectors.find(({ name }) => name === 'play: strong integrity')!
    const token = Buffer.from(vector.input[0]!, 'base64').toString('latin1')
    const header = Buffer.from(JSON.stringify({ alg: 'A256KW', more: 'x'.repeat(400) }))
    const long = [
      token.padEnd(20_000, 'A'),
      [header.toString('base64url'), ...token.split('.').slice(1)].join('.'),
    ]
    for (const text of long) {
      const check = await checkVector(file, vector, [Buffer.from(text)])
      expect(check).toMatchObject({ verdict: 'rejected', reason: 'too_large', level: 'none' })
      expect(check.steps).toHaveLength(1)
    }
  })
})
