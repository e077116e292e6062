// The keys of each process: the table is the documented one, and what is derived never changes,
// because operators have copies of it.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { renderProcessKeys } from '#shared/core/permissions/process-keys.ts'
import { processPermissions } from '#shared/core/permissions/process-permissions.ts'
import { createSealer, type KeyForm } from '#shared/io/keys/console-keys.ts'
import { createEdgeKeys, toEdgeKeyTexts } from '#shared/io/keys/edge-keys.ts'
import { readEdgeKeys, toDerivedKeys } from '#shared/io/keys/process-keys.ts'
import { createSigner, createVerifier } from '#shared/io/keys/signatures.ts'

const masterKey = Buffer.alloc(32, 1).toString('base64')
const context = ['2026-01-01T00:00:00Z', 'tenant.acme', 7]

describe('the table of keys', () => {
  it('is the one in deploy/README.md', () => {
    const readme = readFileSync(new URL('../../../deploy/README.md', import.meta.url), 'utf8')
    expect(readme).toContain(renderProcessKeys())
  })

  it('gives MASTER_KEY to the console alone', () => {
    const holders = Object.entries(processPermissions)
      .filter(([, { secrets }]) => secrets.some((name) => name.startsWith('MASTER_KEY')))
      .map(([name]) => name)
    expect(holders).toEqual(['console'])
  })
})

it('derived keys are the same in every release', () => {
  expect(toDerivedKeys(masterKey)).toEqual({
    DIRECTORY_PUBLIC_KEY: '7m4vj+Z/pxhRWFTAV0UcSCr9670oHp4lMB8ku4iFu7s=',
    EDGE_KEY: 'hPN4al3ul4SAUFQ+bbagAAOmVEEbHoOe4+d+lR/2i2s=',
    TELEMETRY_KEY: '7lbAOLD7yKCDph6AB4iR/M4erhj5Kv/5kNDff/yKt68=',
    WEBHOOK_KEY: 'lIx/SaTlhc1pSGGK+aexRmGO6xbSS2zYb56e/ssCWsM=',
  })
})

describe('a signature', () => {
  const signer = createSigner([masterKey])
  const { DIRECTORY_PUBLIC_KEY: publicKey } = toDerivedKeys(masterKey)
  const verifier = createVerifier([publicKey!])
  const proof = signer.prove(context, 'text')

  it('is checked with the public key, and binds context and text', () => {
    expect(verifier.isProven(proof, context, 'text')).toBe(true)
    expect(verifier.isProven(proof, context, 'texu')).toBe(false)
    expect(verifier.isProven(proof, [...context.slice(0, 2), 8], 'text')).toBe(false)
    for (const broken of ['', 'p1.x.y', 's1', `${proof}.x`, proof.slice(0, -4), `${proof}AAAA`]) {
      expect(verifier.isProven(broken, context, 'text')).toBe(false)
    }
  })

  it('of another master key counts only while that one is held as well', () => {
    const other = Buffer.alloc(32, 2).toString('base64')
    const others = createSigner([other]).prove(context, 'text')
    expect(verifier.isProven(others, context, 'text')).toBe(false)
    expect(createSigner([masterKey, other]).isProven(others, context, 'text')).toBe(true)
  })
})

describe('the form of keys', () => {
  const owner = { tenantId: 'acme', kind: 'hmac' } as const
  const of = (form: KeyForm) => createSealer([masterKey], () => form)

  it('is the one in force when something is sealed or proven', () => {
    const heads = (['old', 'switching', 'new'] as const).map((form) => [
      of(form).seal('s', owner).slice(0, 2),
      of(form).proverOf('directory entry').prove(context, '').slice(0, 2),
    ])
    expect(heads).toEqual([
      ['v1', 'p1'],
      ['v2', 's1'],
      ['v2', 's1'],
    ])
  })

  it('before counts for entries until the switch has ended, and for secrets always', () => {
    const old = of('old').proverOf('directory entry').prove(context, '')
    const counts = (['old', 'switching', 'new'] as const).map((form) =>
      of(form).proverOf('directory entry').isProven(old, context, ''),
    )
    expect(counts).toEqual([true, true, false])
    expect(of('new').unseal(of('old').seal('s', owner), owner)).toBe('s')
  })

  it('before is read by an edge that has MASTER_KEY, and by no other', () => {
    const old = of('old')
    const proof = old.proverOf('directory entry').prove(context, '')
    const upgraded = createEdgeKeys(readEdgeKeys({ MASTER_KEY: masterKey }))
    expect(upgraded.entries.isProven(proof, context, '')).toBe(true)
    expect(upgraded.unseal(old.seal('s', owner), owner)).toBe('s')
    expect(upgraded.forms).toEqual([1, 2])
    // It speaks as the release before, which a console of that release understands.
    const word = upgraded.proverOf('edge report').prove(context, '')
    expect(old.proverOf('edge report').keyId).toBe(word.split('.')[1])
    const own = createEdgeKeys(toEdgeKeyTexts([masterKey]))
    expect(own.entries.isProven(proof, context, '')).toBe(false)
    expect(() => own.unseal(old.seal('s', owner), owner)).toThrow('sealed under another key')
    expect(own.forms).toEqual([2])
    const ownWord = own.proverOf('edge report').prove(context, '')
    expect(of('old').proverOf('edge report').isProven(ownWord, context, '')).toBe(true)
    expect(of('new').proverOf('edge report').isProven(word, context, '')).toBe(true)
  })
})
