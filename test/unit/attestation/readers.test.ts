import { describe, expect, it } from 'vitest'
import { parseAsn1, readBoolean, readInteger, readSequence } from '#shared/core/attestation/asn1.ts'
import { parseCborMap, parseCborMaps } from '#shared/core/attestation/cbor.ts'
import { toListedSerial } from '#shared/core/attestation/certificate.ts'
import { decodeBase64 } from '#shared/core/attestation/encodings.ts'
import { Refusal } from '#shared/core/attestation/reasons.ts'
import { attestationRoots } from '#shared/core/attestation/roots.ts'
import { parseStatusList } from '#shared/core/attestation/status-list.ts'
import { asn1NodesMax, cborBytesMax } from '#shared/core/base/limits/attestation.ts'
import { integer, nothing, sequence } from '../../support/attestation/der.ts'
import { toPublicKey } from '../../support/attestation/vectors.ts'

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')

/** The reason of a refusal; anything else that is thrown is a defect. */
function refusalOf(read: () => unknown): string | null {
  try {
    read()
    return null
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return error.reason
  }
}

describe('base64 of either alphabet', () => {
  it.each([
    ['+/8=', 'fbff'],
    ['-_8=', 'fbff'],
    ['+/8', 'fbff'],
    ['-_8', 'fbff'],
    ['', ''],
  ])('decodes %s', (text, wanted) => {
    expect(decodeBase64(text)?.toString('hex')).toBe(wanted)
  })

  it.each([
    ['mixed alphabets', '+_8='],
    ['spare bits', '+/9='],
    ['wrong padding', '+/8=='],
    ['padding alone', '='],
    ['one character', 'A'],
    ['white space', '+/ 8'],
    ['another character', '+/8!'],
    ['too many characters', 'A'.repeat(65_540)],
  ])('refuses %s', (_, text) => {
    expect(decodeBase64(text)).toBeNull()
  })
})

describe('CBOR', () => {
  it.each([
    ['a key twice', 'a2 6161 01 6161 02', 'malformed'],
    ['a key twice in two encodings', 'a2 6161 01 780161 02', 'malformed'],
    ['an indefinite map', 'bf 6161 01 ff', 'malformed'],
    ['indefinite bytes', 'a1 6161 5f 4101 ff', 'malformed'],
    ['bytes behind it', 'a0 00', 'malformed'],
    ['no map', '80', 'malformed'],
    ['a tag', 'a1 6161 c001', 'malformed'],
    ['a float', 'a1 6161 f93c00', 'malformed'],
    ['a simple value', 'a1 6161 f820', 'malformed'],
    ['undefined', 'a1 6161 f7', 'malformed'],
    ['a length beyond the end', 'a1 6161 5affffffff', 'malformed'],
    ['a count beyond the end', '9bffffffffffffffff', 'malformed'],
    ['wrong UTF-8', 'a1 62c328 01', 'malformed'],
    ['nothing', '', 'malformed'],
    ['five levels', 'a1 01 a1 01 a1 01 a1 01 a1 01 01', 'malformed'],
    ['65 values', `9840 ${'00'.repeat(64)}`, 'too_large'],
  ])('refuses %s', (_, text, reason) => {
    expect(refusalOf(() => parseCborMap(hex(text)))).toBe(reason)
  })

  it('refuses more bytes than an object may have, whatever they are', () => {
    const bytes = Buffer.alloc(cborBytesMax + 1, 0x81)
    expect(refusalOf(() => parseCborMap(bytes))).toBe('too_large')
  })

  it('reads what a later map may have', () => {
    expect(parseCborMap(hex('a2 6161 f5 6162 f6'))).toEqual(
      new Map<string, unknown>([
        ['a', true],
        ['b', null],
      ]),
    )
  })

  it('reads names such as __proto__ as names', () => {
    const map = parseCborMap(hex('a1 69 5f5f70726f746f5f5f 01'))
    expect([...map]).toEqual([['__proto__', 1]])
  })

  it('reads maps that follow each other, and nothing else behind them', () => {
    expect(parseCborMaps(hex('a1 01 02 a0'))).toEqual([new Map([[1, 2]]), new Map()])
    expect(refusalOf(() => parseCborMaps(hex('a1 01 02 00')))).toBe('malformed')
  })
})

describe('ASN.1', () => {
  it.each([
    ['an indefinite length', '3080 020101 0000'],
    ['bytes behind it', '020101 00'],
    ['a length beyond the end', '3005 020101'],
    ['nothing', ''],
  ])('refuses %s', (_, text) => {
    expect(refusalOf(() => parseAsn1(hex(text)))).toBe('malformed')
  })

  it('refuses deep nesting and more values than genuine certificates have', () => {
    let deep = sequence([])
    for (let level = 0; level < 20; level++) deep = sequence(deep)
    expect(refusalOf(() => parseAsn1(deep))).toBe('malformed')
    const many = sequence(Array.from({ length: asn1NodesMax }, () => nothing))
    expect(refusalOf(() => parseAsn1(many))).toBe('malformed')
    expect(readSequence(parseAsn1(sequence([nothing, nothing])))).toHaveLength(2)
  })

  it.each(['010101', '0102ffff', '0100', '020101'])('takes %s for no boolean', (text) => {
    expect(refusalOf(() => readBoolean(parseAsn1(hex(text))))).toBe('malformed')
  })

  it('reads integers exactly, and none that is negative or of more than eight bytes', () => {
    const read = (value: bigint) => readInteger(parseAsn1(integer(value)))
    expect(read(2n ** 31n)).toBe(2 ** 31)
    expect(read(2n ** 63n + 1n)).toBe('9223372036854775809')
    expect(refusalOf(() => read(2n ** 72n))).toBe('malformed')
    expect(refusalOf(() => readInteger(parseAsn1(hex('0201ff'))))).toBe('malformed')
  })
})

describe('Android’s status list', () => {
  it('is looked up by lower-case hex without leading zeros, of digits alone too', () => {
    const list = parseStatusList(
      JSON.stringify({
        entries: {
          '6681152659205225093': { status: 'REVOKED', reason: 'KEY_COMPROMISE' },
          c35747a084470c3135aeefe2b8d40cd6: { status: 'SUSPENDED', expires: '2027-01-01' },
        },
      }),
    )
    expect(list?.get(toListedSerial('06681152659205225093'))).toBe('REVOKED, KEY_COMPROMISE')
    expect(list?.get(toListedSerial('C35747A084470C3135AEEFE2B8D40CD6'))).toBe('SUSPENDED')
    expect(toListedSerial('00')).toBe('0')
  })

  it.each(['', '[]', '{}', '{"entries":[]}', '{"entries":{"a":"REVOKED"}}'])(
    'is not %s',
    (text) => {
      expect(parseStatusList(text)).toBeNull()
    },
  )
})

describe('the root keys', () => {
  it('are two of Google’s and one of Apple’s', () => {
    const keys = [...attestationRoots.keyAttestation, ...attestationRoots.appAttest]
    const described = keys.map(({ publicKeyInfo }) => {
      const { asymmetricKeyType, asymmetricKeyDetails: details } = toPublicKey(publicKeyInfo)
      return details?.namedCurve ?? `${asymmetricKeyType} ${details?.modulusLength}`
    })
    expect(described).toEqual(['rsa 4096', 'secp384r1', 'secp384r1'])
  })
})
