/**
 * The byte scan that finds the tenant before anything is trusted: exact for every legal JSON text,
 * harmless for any other.
 */
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { scanBody } from '#shared/core/telemetry/body-scan.ts'
import { tenantIdPattern } from '../../../shared/core/base/ids.ts'
import { findTenant } from '../../../shared/core/telemetry/body-scan.ts'
import { hostileBodies } from '../../support/telemetry/hostile-bodies.ts'

const tenantOf = (text: string) => findTenant(Buffer.from(text))

/** The depth of a parsed value, and its number of object members. */
function measure(value: unknown): { depth: number; members: number } {
  if (typeof value !== 'object' || value === null) return { depth: 0, members: 0 }
  let depth = 0
  let members = Array.isArray(value) ? 0 : Object.keys(value).length
  for (const item of Object.values(value)) {
    const inner = measure(item)
    depth = Math.max(depth, inner.depth)
    members += inner.members
  }
  return { depth: depth + 1, members }
}

const key = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: 'binary', maxLength: 12 }) },
  {
    weight: 3,
    arbitrary: fc.constantFrom('tenant_id', 'tenant', 'tenant_id ', 'Tenant_id', '"tenant_id"'),
  },
)

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constantFrom(
    'acme',
    '"',
    '\\',
    '\\"',
    ':',
    '{"tenant_id":"evil"}',
    '","tenant_id":"evil',
    ']',
  ),
)

const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'medium' },
    text,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(fc.tuple(key, tie('value')), { maxLength: 5 }).map(toObject),
  ),
}))

function toObject(members: [string, unknown][]): Record<string, unknown> {
  // Not by assignment: `__proto__` has to become a member like any other.
  return Object.fromEntries(members)
}

const tenant = fc.oneof(
  fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,20}$/),
  fc.constantFrom('', 'UPPER', 'with space', '-dash', 'ä', 'a'.repeat(64), 'a\u0000'),
  fc.constantFrom(null, 7, true, ['acme'], { tenant_id: 'acme' }),
)

/** A body with one top-level `tenant_id`, at any position. */
const body = fc
  .tuple(fc.array(fc.tuple(key, value), { maxLength: 6 }), tenant, fc.nat())
  .map(([members, tenantId, at]) => {
    const others = Object.entries(toObject(members)).filter(([name]) => name !== 'tenant_id')
    others.splice(at % (others.length + 1), 0, ['tenant_id', tenantId])
    return toObject(others)
  })

/** Spells a value in a random legal way: spaces, escapes, exponents. */
function spell(value: unknown, random: () => number): string {
  const space = () => [' ', '\n', '\t', '\r', '', '', '', ''][Math.floor(random() * 8)]!
  const pad = (text: string) => space() + text + space()
  if (typeof value === 'string') return pad(spellText(value, random))
  if (Array.isArray(value)) return pad(`[${value.map((item) => spell(item, random)).join(',')}]`)
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(
      ([name, item]) => `${pad(spellText(name, random))}:${spell(item, random)}`,
    )
    return pad(`{${members.join(',')}}`)
  }
  return pad(JSON.stringify(value))
}

function spellText(text: string, random: () => number): string {
  let out = '"'
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    const lone = unit >= 0xd800 && unit <= 0xdfff
    if (lone || unit < 0x20 || random() < 0.2) out += `\\u${unit.toString(16).padStart(4, '0')}`
    else if (text[at] === '"' || text[at] === '\\') out += `\\${text[at]}`
    else if (text[at] === '/' && random() < 0.5) out += '\\/'
    else out += text[at]
  }
  return `${out}"`
}

function toRandom(seed: number): () => number {
  let state = seed | 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
}

describe('for legal JSON', () => {
  it('finds the tenant that JSON.parse finds, at any position and in any spelling', () => {
    fc.assert(
      fc.property(body, fc.integer(), (value, seed) => {
        const text = spell(value, toRandom(seed))
        const parsed = JSON.parse(text) as { tenant_id: unknown }
        const { tenant_id: tenantId } = parsed
        const isSlug = typeof tenantId === 'string' && tenantIdPattern.test(tenantId)
        expect(tenantOf(text)).toBe(isSlug ? tenantId : null)
        const found = scanBody(Buffer.from(text))
        expect({ depth: found.depth, members: found.members }).toEqual(measure(parsed))
        expect(found.unicodeEscape).toBe(/(?<!\\)(\\\\)*\\u/.test(text))
      }),
      { numRuns: 1_000 },
    )
  })

  it('finds no tenant in a value that is not an object', () => {
    fc.assert(
      fc.property(
        value.filter((value) => typeof value !== 'object' || Array.isArray(value)),
        fc.integer(),
        (value, seed) => {
          expect(tenantOf(spell(value, toRandom(seed)))).toBeNull()
        },
      ),
    )
  })

  it('finds the first of two, and the parser rejects the second', () => {
    expect(tenantOf('{"tenant_id":"a","tenant_id":"b"}')).toBe('a')
    expect(tenantOf('{"tenant_id":"a","tenant\\u005fid":"b"}')).toBe('a')
    expect(tenantOf('{"tenant_id":null,"tenant_id":"b"}')).toBeNull()
  })

  it('finds it after a byte order mark, and before text that is not JSON', () => {
    expect(tenantOf('\ufeff{"tenant_id":"acme"}')).toBe('acme')
    expect(tenantOf('{"a":NaN,"tenant_id":"acme",}')).toBe('acme')
    expect(tenantOf('{"tenant_id":"acme","a":')).toBe('acme')
  })
})

describe('for anything else', () => {
  it('never throws and never reads beyond the end', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const alone = Buffer.from(Buffer.from(bytes))
        const before = Buffer.concat([alone, Buffer.from('"tenant_id":"evil"}{[:"\\')])
        const part = before.subarray(0, bytes.length)
        expect(scanBody(part)).toEqual(scanBody(alone))
        expect(findTenant(part)).toEqual(findTenant(alone))
      }),
      { numRuns: 1_000 },
    )
  })

  it('survives every truncation of a submission', () => {
    const whole = Buffer.from(
      '{"tenant\\u005fid" : "ac\\u006de", "signals": {"root": [1, {"a": "\\\\"}]}}',
    )
    for (let end = 0; end <= whole.length; end++) {
      expect(() => scanBody(whole.subarray(0, end))).not.toThrow()
      expect(() => findTenant(whole.subarray(0, end))).not.toThrow()
    }
  })
})

/** Maximum reads of each byte before a signature is verified. */
const readsMax = 3

/** Counts the reads of bytes and the JSON parses while finding the tenant. */
function countWork(body: Buffer) {
  let reads = 0
  const watched = new Proxy(body, {
    get: (target, name) => {
      if (name !== 'length') reads++
      return Reflect.get(target, name) as unknown
    },
  })
  const parse = vi.spyOn(JSON, 'parse')
  try {
    findTenant(watched)
    return { reads, parses: parse.mock.calls.length }
  } finally {
    parse.mockRestore()
  }
}

describe('before a signature is verified', () => {
  it.each(hostileBodies)(
    'reads each byte at most a few times and parses nothing: %s',
    (_name, body) => {
      const { reads, parses } = countWork(body)
      expect(reads).toBeLessThanOrEqual(readsMax * body.length + 64)
      expect(parses).toBe(0)
    },
  )

  it('does so for any bytes', () => {
    const piece = fc.oneof(
      fc.constantFrom('"', '\\', '{', '}', '[', ']', ':', ',', ' ', 'a', '0', '\\u', '\\u005f'),
      fc.constantFrom('"tenant_id"', '"tenant_i', '"tenant\\u005fid"', ':"acme"', 'tenant_id'),
      fc.string({ unit: 'binary', maxLength: 8 }),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), fc.nat(40), (pieces, times) => {
        const body = Buffer.from(`{${pieces.join('').repeat(times + 1)}`)
        const { reads, parses } = countWork(body)
        expect(reads).toBeLessThanOrEqual(readsMax * body.length + 64)
        expect(parses).toBe(0)
      }),
      { numRuns: 1_000 },
    )
  })
})
