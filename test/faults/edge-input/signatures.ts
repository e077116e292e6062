/**
 * Requests without a valid signature of their body: omitted, in another spelling, of something
 * else, and with any one bit of it or of the body changed.
 */
import { signBody } from '#shared/core/telemetry/signature.ts'
import {
  flipBit,
  type HostileCase,
  type Signer,
  toRequest,
  toSigned,
  validBody,
} from '../../support/telemetry/raw-submissions.ts'
import vectors from '../../vectors/signatures.json' with { type: 'json' }

const textOf = (signer: Signer) => JSON.stringify(validBody(signer.tenantId))

/** The wrong spellings of the golden vectors, applied to any signature. */
function respell(signature: string): Record<string, string> {
  const { signature: known, spellings } = vectors.wrong_spellings
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  const withSpareBits = (bits: number) =>
    `${signature.slice(0, 42)}${alphabet[alphabet.indexOf(signature[42]!) + bits]}=`
  const respelled: Record<string, string> = {}
  for (const [name, spelling] of Object.entries(spellings)) {
    if (name.startsWith('spare bits')) {
      respelled[name] = withSpareBits(Number.parseInt(name.slice(-2), 2))
    } else if (name === 'the URL alphabet') {
      respelled[name] = signature.replaceAll('+', '-').replaceAll('/', '_')
    } else if (name === 'hexadecimal') {
      respelled[name] = Buffer.from(signature, 'base64').toString('hex')
    } else {
      // The other spellings add or remove characters at the ends or after the twentieth.
      const core = (text: string) => text.slice(0, -1)
      respelled[name] = spelling
        .replaceAll(core(known), core(signature))
        .replaceAll(known.slice(0, 20), signature.slice(0, 20))
        .replaceAll(core(known).slice(20), core(signature).slice(20))
    }
  }
  return respelled
}

/** A body whose signature has both characters that differ in the URL alphabet. */
function withBothCharacters(signer: Signer): { body: string; signature: string } {
  for (;;) {
    const body = textOf(signer)
    const signature = signBody(body, signer.secret)
    if (/\+/.test(signature) && /\//.test(signature)) return { body, signature }
  }
}

/** @param other a tenant with another secret */
export function makeSignatureCases(acme: Signer, other: Signer): HostileCase[] {
  const cases: HostileCase[] = []
  const add = (family: string, name: string, request: Buffer, expected = [401]) =>
    cases.push({ family, name, request, expected })

  add('no signature', 'left out', toRequest(textOf(acme), null))
  add('no signature', 'empty', toRequest(textOf(acme), ''))
  add('no signature', 'spaces', toRequest(textOf(acme), '   '))
  add('no signature', 'as a trailer', toTrailered(acme))
  const misnamed = `X_Service_Signature: ${signBody(textOf(acme), acme.secret)}\r\n`
  add('no signature', 'under another name', toRequest(textOf(acme), null, misnamed))

  const { body, signature } = withBothCharacters(acme)
  for (const [name, spelling] of Object.entries(respell(signature))) {
    if (spelling === signature) throw new Error(`not another spelling: ${name}`)
    add('another spelling', name, toRequest(body, spelling))
  }
  // A signature that is cut off.
  for (let length = 1; length < 44; length++) {
    add('another spelling', `${length} characters`, toRequest(body, signature.slice(0, length)))
  }
  add('another spelling', '10,000 characters', toRequest(body, signature.repeat(227)))
  add(
    'another spelling',
    'sent twice',
    toRequest(body, signature, `X-Service-Signature: ${signature}\r\n`),
  )

  const foreign: [string, string][] = [
    ['of another body', signBody(textOf(acme), acme.secret)],
    ['of no body', signBody('', acme.secret)],
    ['of another tenant', signBody(body, other.secret)],
    ['of an empty secret', signBody(body, '')],
    ['of the tenant’s name', signBody(body, acme.tenantId)],
    ['zeros', Buffer.alloc(32).toString('base64')],
    ['ones', Buffer.alloc(32, 255).toString('base64')],
  ]
  for (const [name, wrong] of foreign) {
    add('a signature of something else', name, toRequest(body, wrong))
  }
  addFlips(acme, add)
  return cases
}

function addFlips(
  acme: Signer,
  add: (family: string, name: string, request: Buffer, expected?: number[]) => void,
): void {
  const body = Buffer.from(textOf(acme))
  const signature = signBody(body, acme.secret)
  const bytes = Buffer.from(signature, 'base64')
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const flipped = flipBit(bytes, bit).toString('base64')
    add('one bit of the signature', `bit ${bit}`, toRequest(body, flipped))
  }
  const text = Buffer.from(signature)
  for (let bit = 0; bit < text.length * 8; bit++) {
    const flipped = flipBit(text, bit).toString('latin1')
    // A control character within a header is an invalid request; a line end starts a header without
    // a colon.
    add('one bit of the header', `bit ${bit}`, toRequest(body, flipped), [400, 401])
  }
  for (let bit = 0; bit < body.length * 8; bit++) {
    add('one bit of the body', `bit ${bit}`, toRequest(flipBit(body, bit), signature))
  }
  for (const [name, changed] of [
    ['a byte more', Buffer.concat([body, Buffer.from(' ')])],
    ['a byte less', body.subarray(0, -1)],
    ['a byte before', Buffer.concat([Buffer.from(' '), body])],
    ['twice', Buffer.concat([body, body])],
  ] as const) {
    add('one byte of the body', name, toRequest(changed, signature))
  }
}

/**
 * A body with any one bit flipped and a valid signature. It may be stored only when it is still
 * UTF-8, JSON and of this tenant.
 */
export function makeFlippedAndSigned(acme: Signer): HostileCase[] {
  const body = Buffer.from(textOf(acme))
  return Array.from({ length: body.length * 8 }, (_, bit) => {
    const flipped = flipBit(body, bit)
    return {
      family: 'one bit of the body, signed anew',
      name: `bit ${bit}`,
      request: toSigned(flipped, acme),
      expected: judge(flipped, acme.tenantId),
    }
  })
}

/** The possible statuses of a body that is signed for this tenant. */
function judge(body: Buffer, tenantId: string): number[] {
  let tenant: unknown
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)
    tenant = (JSON.parse(text) as Record<string, unknown>).tenant_id
  } catch {
    return [400, 401]
  }
  return tenant === tenantId ? [200, 400] : [401]
}

function toTrailered(acme: Signer): Buffer {
  const body = textOf(acme)
  return Buffer.from(
    'POST /v1/rasp/ingest HTTP/1.1\r\nHost: edge\r\nContent-Type: application/json\r\n' +
      'Transfer-Encoding: chunked\r\nTrailer: X-Service-Signature\r\n\r\n' +
      `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n` +
      `X-Service-Signature: ${signBody(body, acme.secret)}\r\n\r\n`,
  )
}
