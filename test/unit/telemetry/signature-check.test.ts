/**
 * The signature debugger: every common mistake has its own answer without a secret, and a
 * submission is called valid exactly when an edge accepts it.
 */
import { createHash, createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { checkSignature } from '#shared/core/telemetry/signature-check.ts'
import { describeRefusedRequest, readSignatureForm } from '#shared/core/telemetry/signature-form.ts'
import { signaturePattern } from '#shared/core/telemetry/signature-pattern.ts'
import { hostileBodies } from '../../support/telemetry/hostile-bodies.ts'

const secret = 'LZsdRjtKazz2pXVhVgmoYMwKF9eLhcDmK0GLDb-qziE'
const secrets = {
  hmac: secret,
  previous: 'previous-secret-of-43-characters-aaaaaaaaaa',
  webhook: `whsec_${Buffer.alloc(32, 9).toString('base64')}`,
}
const submission = {
  tenant_id: 'acme',
  device_id: 'd',
  session_id: 's',
  sdk_meta: { sdk_version: '4.2.0', platform: 'ios', batch_type: 'start' },
  scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
  signals: {
    root: { su_binary: false, name: 'Zoë', at: 'a/b' },
    emulator: {},
    debugger: {},
    tamper: {},
    ecosystem: {},
    network: {},
  },
}
const body = JSON.stringify(submission)
const hmac = (bytes: string | Buffer, key: string | Buffer = secret) =>
  createHmac('sha256', key).update(bytes).digest()
const sign = (bytes: string | Buffer = body, key?: string | Buffer) =>
  hmac(bytes, key).toString('base64')

const check = (signature: string | undefined, of = body, more = {}) =>
  checkSignature(Buffer.from(of), signature, {
    tenantId: 'acme',
    isActive: true,
    secrets,
    ...more,
  })
const codes = (signature: string | undefined, of?: string, more?: object) =>
  check(signature, of, more).findings.map(({ code }) => code)

const digest = hmac(body)
const noPad = digest.toString('base64').slice(0, -1)
// The last character has two spare bits.
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const spare = `${noPad.slice(0, -1)}${alphabet[alphabet.indexOf(noPad.at(-1)!) + 1]}=`

describe('the form of the header', () => {
  const forms: [string, string | undefined, string[], RegExp][] = [
    ['missing', undefined, ['missing'], /^missing; base64 of 32 bytes expected$/],
    ['empty', '', ['missing'], /^missing/],
    ['hex', digest.toString('hex'), ['hex'], /^hex; base64 of 32 bytes expected$/],
    ['hex in capitals', digest.toString('hex').toUpperCase(), ['hex'], /^hex; /],
    [
      'base64 of hex',
      Buffer.from(digest.toString('hex')).toString('base64'),
      ['base64_of_hex'],
      /hex text/,
    ],
    ['no padding', noPad, ['unpadded'], /without its padding/],
    ['spare bits', spare, ['spare_bits'], /spare bits/],
    ['double quotes', `"${sign()}"`, ['quotes'], /^in quotes; /],
    ['single quotes', `'${sign()}'`, ['quotes'], /^in quotes; /],
    ['a prefix', `sha256=${sign()}`, ['prefix'], /^with the prefix sha256=; /],
    [
      'a prefix and hex',
      `sha256=${digest.toString('hex')}`,
      ['prefix', 'hex'],
      /prefix sha256=, hex; /,
    ],
    ['a version', `v1,${sign()}`, ['prefix'], /^with the prefix v1,/],
    ['a newline', `${sign()}\n`, ['whitespace'], /white space/],
  ]
  it.each(forms)('%s has its own answer and no other finding', (_, header, expected, text) => {
    expect(codes(header)).toEqual(expected)
    expect(check(header).signature_form).toMatch(text)
    expect(check(header).valid).toBe(false)
    const { detail, signature_form: form } = describeRefusedRequest(Buffer.from(body), header)
    if (expected.includes('missing')) {
      expect(detail).toBeUndefined()
      return
    }
    expect(detail).toContain(`The form of X-Service-Signature is wrong: ${form}. `)
    // One remedy for each fault, between the form and the last sentence.
    expect(detail!.split(form)[1]!.match(/[a-z]\. /g)).toHaveLength(expected.length)
  })

  it.each([
    ['SHA-1', createHmac('sha1', secret).update(body).digest('base64'), /base64 of 20 bytes/],
    ['SHA-512', createHmac('sha512', secret).update(body).digest('base64'), /base64 of 64 bytes/],
    ['SHA-1 in hex', createHmac('sha1', secret).update(body).digest('hex'), /hex of 20 bytes/],
    ['a cut signature', sign().slice(0, 20), /base64 of 15 bytes/],
  ])('%s has a wrong length', (_, header, text) => {
    expect(codes(header)).toContain('length')
    expect(check(header).signature_form).toMatch(text)
  })

  it('in base64url is distinguished from base64', () => {
    let at = 0
    while (!/[+/]/.test(sign(body.replace('"d"', `"d${at}"`)))) at++
    const of = body.replace('"d"', `"d${at}"`)
    const url = sign(of).replaceAll('+', '-').replaceAll('/', '_')
    expect(codes(url, of)).toEqual(['base64url'])
    expect(codes(url.replace('=', ''), of)).toEqual(['base64url', 'unpadded'])
  })

  it.each(['not a signature!', 'A'.repeat(20_000)])(
    'is never repeated in the answer: %#',
    (header) => {
      expect(check(header).signature_form).not.toContain(header)
      expect(describeRefusedRequest(Buffer.from('{}'), header).detail).not.toContain(header)
      expect(codes(header)).toHaveLength(1)
    },
  )
})

describe('the signed text', () => {
  const sorted = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
    return Object.fromEntries(entries.map(([key, item]) => [key, sorted(item)]))
  }
  const python = body.replaceAll('":', '": ').replaceAll(',"', ', "')
  it.each([
    ['a newline at the end', `${body}\n`, 'trailing_newline'],
    ['CR LF at the end', `${body}\r\n`, 'trailing_newline'],
    ['nothing', '', 'empty_body'],
    ['indented JSON', JSON.stringify(submission, null, 2), 'reserialised'],
    ['JSON with spaces', python, 'reserialised'],
    ['sorted keys', JSON.stringify(sorted(submission)), 'reserialised'],
    ['escaped letters', body.replace('ë', '\\u00eb'), 'reserialised'],
    ['escaped slashes', body.replaceAll('/', '\\/'), 'reserialised'],
    ['a byte order mark', `\ufeff${body}`, 'byte_order_mark'],
    ['base64 of the body', Buffer.from(body).toString('base64'), 'base64_body'],
    ['a JSON string of it', JSON.stringify(body), 'json_text_body'],
  ])('%s is found', (_, signed, code) => {
    expect(codes(sign(signed))).toEqual([code])
  })

  it('is found where the body has what the signed bytes lack', () => {
    expect(codes(sign(body), `${body}\n`)).toEqual(['trailing_newline'])
    expect(codes(sign(body), JSON.stringify(submission, null, 4))).toEqual(['reserialised'])
    const crlf = JSON.stringify(submission, null, 2).replaceAll('\n', '\r\n')
    expect(codes(sign(crlf.replaceAll('\r\n', '\n')), crlf)).toEqual(['line_endings'])
  })
})

describe('the key', () => {
  it.each([
    ['the previous secret', secrets.previous, 'previous_secret'],
    ['the decoded secret', Buffer.from(secret, 'base64url'), 'decoded_secret'],
    ['the secret with a newline', `${secret}\n`, 'secret_with_newline'],
    ['the secret in quotes', `"${secret}"`, 'secret_in_quotes'],
    ['the webhook secret', secrets.webhook, 'webhook_secret'],
    ['the decoded webhook secret', Buffer.alloc(32, 9), 'webhook_secret'],
    ['a secret of nobody', 'x'.repeat(43), 'other_bytes_or_secret'],
  ])('%s is found', (_, key, code) => {
    expect(codes(sign(body, key))).toEqual([code])
  })

  it('is found together with other bytes and another form', () => {
    const both = hmac(`${body}\n`, secrets.previous).toString('hex')
    const { findings } = check(both)
    expect(findings.map(({ code }) => code)).toEqual(['hex', 'previous_secret'])
    expect(findings[1]!.text).toMatch(/last rotation replaced.*newline/)
  })

  it('without HMAC is reported as a plain hash', () => {
    const hash = (text: string) => createHash('sha256').update(text).digest('base64')
    for (const text of [body, secret + body, body + secret]) {
      expect(codes(hash(text))).toEqual(['plain_hash'])
    }
  })
})

describe('the body', () => {
  it('that is valid and correctly signed has no finding', () => {
    expect(check(sign())).toEqual({
      valid: true,
      signature_form: 'base64 of 32 bytes, as expected',
      received: {
        bytes: Buffer.byteLength(body),
        sha256: createHash('sha256').update(body).digest('hex'),
      },
      findings: [],
      body_errors: [],
    })
  })

  it('of another tenant, or without a tenant, is reported', () => {
    const other = body.replace('acme', 'globex')
    expect(codes(sign(other), other)).toEqual(['tenant_other'])
    expect(codes(sign('{}'), '{}')).toEqual(['tenant_missing'])
    expect(check(sign(other), other).valid).toBe(false)
  })

  it('that is not JSON is reported with the byte', () => {
    const broken = body.replace('"session_id":', '"session_id"')
    const { valid, findings, body_errors } = check(sign(broken), broken)
    expect(valid).toBe(true)
    expect(findings.map(({ code }) => code)).toEqual(['not_json'])
    const at = broken.indexOf('"session_id"') + '"session_id"'.length
    expect(findings[0]!.text).toContain(`at byte ${at},`)
    expect(body_errors[0]!.message).toContain(`at byte ${at} `)
  })

  it('that an edge would answer with 400 lists the errors', () => {
    const bad = body.replace('"su_binary":false', '"su_binary":"no"')
    expect(check(sign(bad), bad)).toMatchObject({
      valid: true,
      findings: [],
      body_errors: [{ path: '$.signals.root.su_binary' }],
    })
  })

  it('of a suspended tenant, or one without a secret, is rejected', () => {
    expect(codes(sign(), body, { isActive: false })).toEqual(['tenant_suspended'])
    const none = { secrets: { ...secrets, hmac: null } }
    expect(codes(sign(), body, none)).toEqual(['other_bytes_or_secret', 'no_secret'])
  })

  it('beyond 64 KiB is reported', () => {
    const large = body.replace('"d"', `"${'d'.repeat(70_000)}"`)
    expect(codes(sign(large), large)).toEqual(['body_too_large'])
  })

  it.each(hostileBodies)('%s with a wrong signature is rejected', (_, hostile) => {
    expect(check(sign(hostile, 'x'), hostile as unknown as string).valid).toBe(false)
  })
})

describe('any answer', () => {
  it('contains neither a secret nor the correct signature', () => {
    const wrong = [sign(body, 'x'), digest.toString('hex'), sign(`${body}\n`), undefined]
    for (const header of wrong) {
      const text = JSON.stringify(check(header))
      for (const hidden of [...Object.values(secrets), sign()]) expect(text).not.toContain(hidden)
    }
  })
})

describe('the content of a 401', () => {
  it.each(hostileBodies)('costs one hash over any body: %s', (_, hostile) => {
    for (const header of [undefined, 'x', '\xff'.repeat(44), 'A'.repeat(16_000), ' ']) {
      const hashed: number[] = []
      const description = describeRefusedRequest(hostile, header, (bytes) => {
        hashed.push(bytes.length)
        return 'the hash'
      })
      expect(hashed).toEqual([hostile.length])
      expect(description.received).toEqual({ bytes: hostile.length, sha256: 'the hash' })
      expect(description.signature_form.length).toBeLessThan(120)
    }
  })

  it('says of a header that was sent twice that it was', () => {
    const { text, faults } = readSignatureForm(`${sign()}, ${sign()}`)
    expect([text, faults]).toEqual([
      'more than one value; base64 of 32 bytes expected',
      ['several'],
    ])
  })

  it('is only the form, for any header', () => {
    expect(readSignatureForm(sign()).text).toBe('base64 of 32 bytes, as expected')
    for (const header of [sign(), sign(body, 'another secret'), undefined, '']) {
      expect(describeRefusedRequest(Buffer.from(body), header)).not.toHaveProperty('detail')
    }
    for (const length of [31, 32, 33, 64]) {
      for (const last of [...'AEQgw048B+/=']) {
        for (const end of ['', '=', '==']) {
          const header = `${Buffer.alloc(length, 7).toString('base64').slice(0, 42)}${last}${end}`
          const isRight = signaturePattern.test(header)
          expect(readSignatureForm(header).faults.length === 0, header).toBe(isRight)
        }
      }
    }
    expect(describeRefusedRequest(Buffer.from('{}'), undefined).received).toEqual({
      bytes: 2,
      sha256: createHash('sha256').update('{}').digest('hex'),
    })
  })
})
