/** Signatures of telemetry: golden vectors, exactly one spelling, and every byte counts. */
import { createHmac, createSecretKey } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { signBody, verifySignature } from '../../../shared/core/telemetry/signature.ts'
import { signaturePattern } from '../../../shared/core/telemetry/signature-pattern.ts'
import vectors from '../../vectors/signatures.json' with { type: 'json' }

type Vector = (typeof vectors.vectors)[number]

function toBody(vector: Vector): Buffer {
  if (vector.body_base64 !== undefined) return Buffer.from(vector.body_base64, 'base64')
  const { before, repeat, times, after } = vector.body_pattern!
  return Buffer.from(before + repeat.repeat(times) + after)
}

const keyOf = (secret: string) => createSecretKey(secret, 'utf8')

describe('golden vectors', () => {
  it.each(vectors.vectors)('sign and verify $name', (vector) => {
    const body = toBody(vector)
    expect(signBody(body, vector.secret)).toBe(vector.signature)
    expect(verifySignature(body, vector.signature, keyOf(vector.secret))).toBe(true)
  })

  it('include one body of exactly the largest size', () => {
    expect(vectors.vectors.map((vector) => toBody(vector).length)).toContain(64 * 1024)
  })
})

describe('one spelling', () => {
  const { spellings, secret, signature } = vectors.wrong_spellings
  const body = Buffer.from(vectors.wrong_spellings.body_base64, 'base64')

  it('accepts the canonical one', () => {
    expect(verifySignature(body, signature, keyOf(secret))).toBe(true)
  })

  it.each(Object.entries(spellings))('rejects %s', (_name, spelling) => {
    expect(verifySignature(body, spelling, keyOf(secret))).toBe(false)
  })

  it("rejects spellings of which Node's decoder accepts at least eight", () => {
    const bytes = Buffer.from(signature, 'base64')
    const same = Object.values(spellings).filter((text) =>
      Buffer.from(text, 'base64').equals(bytes),
    )
    expect(same.length).toBeGreaterThanOrEqual(8)
  })

  it('rejects the signature with any one character replaced, also by a multi-byte one', () => {
    const key = keyOf(secret)
    for (let at = 0; at < signature.length; at++) {
      for (const other of ['A', '=', '\u00e9', '\u0141', '\u20ac', String.fromCharCode(0xd800)]) {
        if (other === signature[at]) continue
        expect(verifySignature(body, signature, key)).toBe(true)
        const text = signature.slice(0, at) + other + signature.slice(at + 1)
        expect(verifySignature(body, text, key)).toBe(false)
      }
    }
  })

  it('is unique for any 32 bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
        const text = Buffer.from(bytes).toString('base64')
        expect(signaturePattern.test(text)).toBe(true)
        for (const last of 'BCDFGHJKLNOPRSTVWXZabdefhijlmnpqrtuvxyz123567 9+/=') {
          const other = `${text.slice(0, 42)}${last}=`
          expect(signaturePattern.test(other) && other !== text).toBe(false)
        }
      }),
      { numRuns: 50 },
    )
  })
})

describe('every bit counts', () => {
  const secret = vectors.wrong_spellings.secret
  const body = Buffer.from(vectors.wrong_spellings.body_base64, 'base64')
  const key = keyOf(secret)

  it('in a signature: one flipped bit is rejected', () => {
    const right = createHmac('sha256', secret).update(body).digest()
    for (let bit = 0; bit < 256; bit++) {
      const wrong = Buffer.from(right)
      wrong[bit >> 3]! ^= 1 << (bit & 7)
      expect(verifySignature(body, wrong.toString('base64'), key)).toBe(false)
    }
  })

  it('in a body: one flipped bit is rejected', () => {
    const signature = signBody(body, secret)
    for (let bit = 0; bit < body.length * 8; bit++) {
      const wrong = Buffer.from(body)
      wrong[bit >> 3]! ^= 1 << (bit & 7)
      expect(verifySignature(wrong, signature, key)).toBe(false)
    }
  })

  it('in a body: a byte less or more at either end is rejected', () => {
    const signature = signBody(body, secret)
    for (const wrong of [body.subarray(1), body.subarray(0, -1)]) {
      expect(verifySignature(wrong, signature, key)).toBe(false)
    }
    for (const wrong of [Buffer.concat([body, Buffer.from('\n')]), Buffer.from(` ${body}`)]) {
      expect(verifySignature(wrong, signature, key)).toBe(false)
    }
  })

  it('in a secret: another tenant’s signature is rejected', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 32, maxLength: 64 }), (other) => {
        fc.pre(other !== secret)
        expect(verifySignature(body, signBody(body, other), key)).toBe(false)
      }),
    )
  })
})
