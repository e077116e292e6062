/**
 * Identifiers of phones at the edge: whatever a tenant's SDK sends, the bytes that leave the edge
 * have hashes in the place of identifiers, are otherwise those that were signed, and are read by a
 * scorer as the event of the signed bytes.
 */
import { createSecretKey } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toEventId } from '#shared/core/base/ids.ts'
import { hashIdentifier, hashIdentifiers } from '#shared/core/identity/sent-identifiers.ts'
import { decodeBatch } from '#shared/core/telemetry/event-batch.ts'
import { parseTelemetry } from '#shared/core/telemetry/parse-telemetry.ts'
import { signBody } from '#shared/core/telemetry/signature.ts'
import { decideClientBatch } from '../../../services/ingest/decide-client-batch.ts'
import { type DecideDeps, decideSubmission } from '../../../services/ingest/decide-submission.ts'
import { encodeBatch, toWaiterBytes } from '../../../services/ingest/group-commit.ts'
import {
  keyOf,
  makeEdge,
  makeEdgeTenant,
  makeSubmission,
} from '../../support/tenants/edge-tenant.ts'

const key = createSecretKey(Buffer.alloc(32, 7))
const secret = keyOf('p')
const tenant = makeEdgeTenant({ addressKey: key })
const withKey = makeEdge(tenant)
const withoutKey = makeEdge({ ...tenant, addressKey: null })

/** In every hostile body; no hash has a dot. */
const plain = 'imei.35-209900-176148-1'

const rest = makeSubmission().slice(1, -1)
const bodyWith = (device: string, name = '"device"') => Buffer.from(`{${rest},${name}:${device}}`)
const manyOf = (count: number) => {
  const entries = Array.from({ length: count }, (_, n) => [`id_${n}`, `${plain}-${n}`])
  return JSON.stringify({ identifiers: Object.fromEntries(entries) })
}
const escaped = [...plain].map((one) => `\\u00${one.charCodeAt(0).toString(16)}`).join('')
const good = JSON.stringify({ identifiers: { keychain_id: plain } })

/** What ends as an accepted event, and what is refused. */
const accepted: Record<string, Buffer> = {
  'one identifier': bodyWith(good),
  'many identifiers': bodyWith(manyOf(1_400)),
  'escapes in the value': bodyWith(`{"identifiers":{"keychain_id":"${escaped}"}}`),
  'escapes in its names': bodyWith(
    `{"\\u0069dentifiers":{"\\u006beychain_id":"${plain}"}}`,
    '"\\u0064evice"',
  ),
  'white space': bodyWith(`\t{ "identifiers"\n:\r{ "a" : "${plain}" } , "model":"x" } `),
  'an array': bodyWith(`{"identifiers":["${plain}"]}`),
  'a text': bodyWith(`{"identifiers":"${plain}"}`),
  'a number': bodyWith('{"identifiers":352099001761481}'),
  'objects as values': bodyWith(`{"identifiers":{"a":{"b":"${plain}"},"c":["${plain}"]}}`),
  'a huge value': bodyWith(`{"identifiers":{"a":"${plain.repeat(2_000)}"}}`),
  'other names': bodyWith(
    `{"identifiers":{"":"${plain}","A":"${plain}","é":"${plain}","${'a'.repeat(65)}":"${plain}"}}`,
  ),
  'the name of the attested key': bodyWith(`{"identifiers":{"attested_key":"${plain}"}}`),
  'names of members of every object': bodyWith(
    `{"identifiers":{"valueOf":"${plain}","toString":"${plain}","hasOwnProperty":"${plain}"}}`,
  ),
  'text that looks like its own end': bodyWith(
    `{"identifiers":{"a":"}},\\"identifiers\\":{\\"${plain}"},"note":"\\"identifiers\\":{}"}`,
  ),
  'another device inside': bodyWith(
    `{"device":{"identifiers":{}},"list":[{"identifiers":{}}],"identifiers":{"a":"${plain}"}}`,
  ),
  'members before it': Buffer.from(
    `{"app":{"device":{"identifiers":1},"identifiers":2},"identifiers":3,"list":[{"device":4}],
      "device":{"identifiers":{"a":"${plain}"}},${rest}}`,
  ),
}
const refused: Record<string, Buffer> = {
  'more members than a body may have': bodyWith(manyOf(10_000)),
  'the name of a prototype': bodyWith(`{"identifiers":{"__proto__":"${plain}"}}`),
  'identifiers twice': bodyWith(`{"identifiers":{"a":"${plain}"},"identifiers":{}}`),
  'a name twice': bodyWith(`{"identifiers":{"a":"${plain}","\\u0061":"x"}}`),
  'device twice': Buffer.from(`{${rest},"device":${good},"device":{}}`),
  'device twice, once escaped': Buffer.from(`{${rest},"device":{},"devic\\u0065":${good}}`),
  'a lone surrogate': bodyWith(`{"identifiers":{"a":"\\ud800${plain}"}}`),
  'no end': bodyWith(`{"identifiers":{"a":"${plain}"`),
}

/** The message that leaves the edge. */
function toMessage(body: Buffer, deps: DecideDeps): Buffer {
  const decision = decideSubmission(body, { signature: signBody(body, secret) }, deps)
  if (decision.kind === 'refused') throw new Error(JSON.stringify(decision.problem))
  const { head, hashedBody } = decision
  const stored = hashedBody?.body ?? body
  return Buffer.from(encodeBatch([toWaiter(head, stored)]))
}

const toWaiter = (head: string, body: Buffer) => ({
  head,
  body,
  bytes: toWaiterBytes(head, body),
  arrivedMs: 0,
})

const textsOf = (message: Buffer) =>
  `${message.toString()}${JSON.stringify(JSON.parse(message.toString()))}`

describe('the message of an event with identifiers', () => {
  it.each(Object.entries(accepted))('has none in plain text: %s', (_name, body) => {
    for (const deps of [withKey, withoutKey]) {
      const message = toMessage(body, deps)
      expect(textsOf(message)).not.toContain(plain)
      expect(textsOf(message)).not.toContain('352099001761481')
      const { events, invalid } = decodeBatch(message, 1_000)
      expect(invalid).toEqual([])
      expect(events).toHaveLength(1)
      expect(events[0]!.event_id).toBe(toEventId(body))
      expect(events[0]!.body_id).toBe(toEventId(events[0]!.bodyBytes!))
      expect(events[0]!.body_id).not.toBe(events[0]!.event_id)
    }
  })

  it('is the signed one but for their values, which are keyed hashes', () => {
    const message = toMessage(accepted['members before it']!, withKey)
    const [event] = decodeBatch(message, 1_000).events
    const hash = hashIdentifier('a', plain, key)
    expect(hash).toMatch(/^[A-Za-z0-9_-]{22}$/)
    expect(Buffer.from(event!.bodyBytes!).toString()).toBe(
      accepted['members before it']!.toString().replace(
        `{"a":"${plain}"}`,
        JSON.stringify({ a: hash }),
      ),
    )
    const another = createSecretKey(Buffer.alloc(32, 8))
    const hashes = [hash, hashIdentifier('a', plain, another), hashIdentifier('b', plain, key)]
    expect(new Set(hashes).size).toBe(3)
  })

  it('has the first eight that count, by name, whatever their order', () => {
    const names = ['i', 'h', 'g', 'f', 'e', 'd', 'c', 'b', 'a']
    const sent = Object.fromEntries([
      ['_placeholder', '00000000-0000-0000-0000-000000000000'],
      ['_empty', ''],
      ...names.map((name) => [name, `${plain}-${name}`]),
    ])
    const body = bodyWith(JSON.stringify({ identifiers: sent }))
    const [event] = decodeBatch(toMessage(body, withKey), 1_000).events
    const kept = (event!.body.device as { identifiers: Record<string, string> }).identifiers
    expect(Object.keys(kept)).toEqual(names.toSorted().slice(0, 8))
    const decision = decideSubmission(body, { signature: signBody(body, secret) }, withKey)
    expect(decision).toMatchObject({
      hashedBody: { hashed: 8, leftOut: ['placeholder', 'placeholder', 'many'] },
    })
    const unkeyed = decideSubmission(body, { signature: signBody(body, secret) }, withoutKey)
    expect(unkeyed).toMatchObject({ hashedBody: { hashed: 0 } })
    if (unkeyed.kind === 'refused') throw new Error('refused')
    expect(unkeyed.hashedBody!.leftOut.filter((fault) => fault === 'key')).toHaveLength(8)
  })

  it('has the bytes that were signed where nothing in them is an identifier', () => {
    const others = ['null', '"x"', '7', '[{"identifiers":1}]', '{}', '{"identifiers":null}']
    for (const body of others.map((device) => bodyWith(device))) {
      const [event] = decodeBatch(toMessage(body, withKey), 1_000).events
      expect(event!.body_id).toBe(undefined)
      expect(Buffer.from(event!.bodyBytes!)).toEqual(body)
    }
  })
})

describe('a body with identifiers that is refused', () => {
  it.each(Object.entries(refused))('is named without a value of it: %s', (_name, body) => {
    const decision = decideSubmission(body, { signature: signBody(body, secret) }, withKey)
    expect(decision).toMatchObject({ kind: 'refused', reason: 'body' })
    expect(JSON.stringify(decision)).not.toContain(plain)
  })
})

describe('a client’s batch', () => {
  it('has hashes in each event, and keeps the bytes of those without identifiers', () => {
    const bodies = [accepted['one identifier']!, bodyWith('{}'), accepted['an array']!]
    const batch = Buffer.from(`{"tenant_id":"acme","events":[${bodies.join(' , ')}]}`)
    const decided = decideClientBatch(batch, { signature: signBody(batch, secret) }, withKey)
    if (decided.kind === 'refused') throw new Error(JSON.stringify(decided.problem))
    const waiters = decided.events.map(({ body, decision }) => {
      if (decision.kind === 'refused') throw new Error(JSON.stringify(decision.problem))
      return toWaiter(decision.head, body)
    })
    const message = Buffer.from(encodeBatch(waiters))
    expect(textsOf(message)).not.toContain(plain)
    const { events, invalid } = decodeBatch(message, 1_000)
    expect(invalid).toEqual([])
    expect(events.map(({ event_id: id }) => id)).toEqual(bodies.map(toEventId))
    expect(Buffer.from(events[1]!.bodyBytes!)).toEqual(bodies[1])
  })
})

describe('a scorer', () => {
  it('takes no event whose body is not the one that the edge kept', () => {
    const text = toMessage(accepted['one identifier']!, withKey).toString()
    const other = text.replace(/"body_id":"evt_.{22}"/, `"body_id":"evt_${'x'.repeat(22)}"`)
    expect(decodeBatch(Buffer.from(other), 1_000).invalid).toMatchObject([{ detail: 'body_id' }])
  })
})

/** JSON of a value as any program may write it: other white space, escapes and order. */
const writeAnyhow = (value: unknown, next: () => number): string => {
  const gap = () => ['', '', ' ', '\n\t'][next() % 4]!
  if (typeof value === 'string') {
    const letters = [...value].map((letter) => {
      const code = letter.length === 1 && next() % 5 === 0 ? letter.charCodeAt(0) : null
      if (code !== null) return `\\u${code.toString(16).padStart(4, '0')}`
      return JSON.stringify(letter).slice(1, -1)
    })
    return `"${letters.join('')}"`
  }
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}']
  const items = Array.isArray(value)
    ? value.map((item) => writeAnyhow(item, next))
    : Object.entries(value).map(([name, item]) => {
        return `${writeAnyhow(name, next)}${gap()}:${gap()}${writeAnyhow(item, next)}`
      })
  return `${open}${gap()}${items.join(`${gap()},${gap()}`)}${gap()}${close}`
}

const anyName = fc.oneof(
  fc.constantFrom('identifiers', 'device', 'keychain_id', 'a', 'A', '"', '\\', '}', '{"device":'),
  fc.string({ unit: 'binary', maxLength: 8 }),
)
const anyIdentifiers = fc.dictionary(
  anyName,
  fc.oneof(fc.constant(plain), fc.string({ unit: 'binary', maxLength: 300 }), fc.jsonValue()),
)

describe('any body', () => {
  it('keeps all that it has but identifiers, in any spelling', () => {
    fc.assert(
      fc.property(
        fc.dictionary(anyName, fc.jsonValue(), { noNullPrototype: true }),
        fc.oneof(
          { weight: 4, arbitrary: anyIdentifiers },
          { weight: 1, arbitrary: fc.jsonValue() },
        ),
        fc.array(fc.nat(), { minLength: 40, maxLength: 40 }),
        (device, identifiers, choices) => {
          let at = 0
          const next = () => choices[at++ % choices.length]!
          const value = { ...device, identifiers }
          const body = bodyWith(writeAnyhow(value, next))
          const parsed = parseTelemetry(body, 'acme')
          fc.pre(parsed.ok)
          if (!parsed.ok) return
          const hashed = hashIdentifiers(body, parsed.telemetry, key)
          if (identifiers === null) {
            expect(hashed).toBe(null)
            return
          }
          const kept = JSON.parse(hashed!.body.toString()) as { device: Record<string, unknown> }
          const sent = JSON.parse(body.toString()) as { device: Record<string, unknown> }
          const { identifiers: hashes, ...others } = kept.device
          const { identifiers: _, ...sentOthers } = sent.device
          expect({ ...kept, device: others }).toEqual({ ...sent, device: sentOthers })
          for (const [name, hash] of Object.entries(hashes as Record<string, string>)) {
            expect(hash).toBe(
              hashIdentifier(name, (identifiers as Record<string, string>)[name]!, key),
            )
          }
          expect(Object.keys(hashes as object)).toHaveLength(hashed!.hashed)
        },
      ),
      { numRuns: 300 },
    )
  })
})
