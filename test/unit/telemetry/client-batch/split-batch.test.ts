/** The split of a batch into the bytes of its events, for any spelling of the JSON around them. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clientBatchEventsMax } from '#shared/core/base/limits/ingest.ts'
import { splitBatch } from '#shared/core/telemetry/json/split-batch.ts'
import { seed } from '../../../support/process/seed.ts'

const split = (body: string | Buffer) => splitBatch(Buffer.from(body), 'acme')
const eventsOf = (body: string) => {
  const found = split(body)
  return found.ok ? found.events.map(String) : found.errors
}
const faultsOf = (body: string | Buffer) => {
  const found = split(body)
  return found.ok ? [] : found.errors.map(({ path, message }) => `${path} ${message}`)
}

const space = fc.constantFrom('', ' ', '\n', '\t\r\n', '   ')
/** JSON texts with spaces inside, as a client may write them. */
const element = fc
  .tuple(fc.jsonValue(), fc.constantFrom(undefined, 1, 2))
  .map(([value, indent]) => JSON.stringify(value, null, indent))

describe('the events of a batch', () => {
  it('are the bytes that were sent, without the space around them', () => {
    process.stdout.write(`split seed ${seed}\n`)
    const batch = fc.record({
      events: fc.array(fc.tuple(space, element, space), { minLength: 1, maxLength: 8 }),
      spaces: fc.array(space, { minLength: 6, maxLength: 6 }),
      isTenantFirst: fc.boolean(),
    })
    fc.assert(
      fc.property(batch, ({ events, spaces: [a, b, c, d, e, f], isTenantFirst }) => {
        const list = `"events"${a}:${b}[${events.map((one) => one.join('')).join(',')}]`
        const tenant = `"tenant_id"${c}:${d}"acme"`
        const members = isTenantFirst ? [tenant, list] : [list, tenant]
        expect(eventsOf(`${e}{${members.join(`${f},`)}}`)).toEqual(events.map(([, text]) => text))
      }),
      { seed, numRuns: 500 },
    )
  })

  it('are found exactly, or the batch is refused, for any change of its bytes', () => {
    const whole = JSON.stringify({
      tenant_id: 'acme',
      events: [{ a: '"],[{' }, { b: [1, { c: 'é\\' }] }, 'x', 7, []],
    })
    const bytes = fc.oneof(fc.nat(255), fc.constantFrom(...Buffer.from('"\\{}[],: \n0tnf')))
    fc.assert(
      fc.property(fc.nat(whole.length), fc.nat(3), fc.array(bytes), (at, drop, more) => {
        const text = Buffer.from(whole)
        const changed = Buffer.concat([
          text.subarray(0, at),
          Buffer.from(more.slice(0, 4)),
          text.subarray(at + drop),
        ])
        const found = split(changed)
        const value = toValue(changed)
        // What is JSON in all is split as JSON.parse reads it.
        if (found.ok && value !== null) {
          expect(found.events.map((one) => JSON.parse(String(one)))).toEqual(value.events)
          expect(value.tenant_id).toBe('acme')
        }
        // What is no JSON in all can only be split where a single event is none.
        if (found.ok && value === null) {
          expect(found.events.some((one) => toValue(one) === null)).toBe(true)
        }
      }),
      { seed, numRuns: 2_000 },
    )
  })

  function toValue(bytes: Buffer): Record<string, unknown> | null {
    try {
      return { value: JSON.parse(new TextDecoder('utf8', { fatal: true }).decode(bytes)) }
        .value as Record<string, unknown>
    } catch {
      return null
    }
  }

  it('are one, and no JSON, where a comma is missing', () => {
    expect(eventsOf('{"tenant_id":"acme","events":[{} {},{}]}')).toEqual(['{} {}', '{}'])
  })

  it('are taken up to the most, and cost no more work beyond', () => {
    const list = (count: number) => `{"tenant_id":"acme","events":[${Array(count).fill('{}')}]}`
    expect(eventsOf(list(clientBatchEventsMax))).toHaveLength(clientBatchEventsMax)
    expect(faultsOf(list(clientBatchEventsMax + 1))).toEqual(['$.events has more than 100 events'])
  })
})

describe('a body that is no batch', () => {
  it.each([
    ['without events', '{"tenant_id":"acme"}', '$.events is missing'],
    ['with no event', '{"tenant_id":"acme","events":[]}', '$.events has no event'],
    ['with null', '{"tenant_id":"acme","events":null}', '$.events must be an array'],
    ['with an object', '{"tenant_id":"acme","events":{"a":[1]}}', '$.events must be an array'],
    [
      'with a comma too many',
      '{"tenant_id":"acme","events":[{},]}',
      '$ is not valid JSON at byte 33',
    ],
    ['with two commas', '{"tenant_id":"acme","events":[{},,{}]}', '$ is not valid JSON at byte 33'],
    ['cut off', '{"tenant_id":"acme","events":[{},{"a"', '$ is not valid JSON: it is cut off'],
    ['cut off in a text', '{"tenant_id":"acme","events":["a', '$ is not valid JSON: it is cut off'],
    [
      'with text after it',
      '{"tenant_id":"acme","events":[{}]} x',
      '$ is not valid JSON at byte 35',
    ],
    [
      'with two lists',
      '{"tenant_id":"acme","events":[{}],"events":[{"a":1}]}',
      '$.events is given more than once',
    ],
    [
      'with two tenants',
      '{"tenant_id":"acme","events":[{}],"tenant_id":"evil"}',
      '$.tenant_id is given more than once',
    ],
    [
      'with members of its own',
      '{"tenant_id":"acme","device_id":"d","events":[{}]}',
      '$.device_id is no member of a batch; it belongs into each event',
    ],
    [
      'with an escaped name',
      '{"tenant_id":"acme","event\\u0073":[0]}',
      '$.events must be spelled without escapes',
    ],
    ['a submission', '{"tenant_id":"acme","signals":{}}', '$.signals is no member of a batch'],
    ['__proto__', '{"tenant_id":"acme","__proto__":{},"events":[{}]}', '$.__proto__ is no member'],
    ['a list', '[{"tenant_id":"acme"}]', '$ must be an object'],
    ['deep', `{"tenant_id":"acme","events":[{}],"x":${'['.repeat(60)}`, '$ is nested deeper'],
  ])('%s is refused', (_, body, fault) => {
    expect(faultsOf(body)[0]).toContain(fault)
  })

  it('with deep or ill-formed events beside a fault is refused without a look at them', () => {
    const deep = `{"tenant_id":"acme","events":[${'['.repeat(60_000)}${']'.repeat(60_000)},]}`
    expect(faultsOf(deep)).toEqual(['$ is not valid JSON'])
    const bytes = Buffer.concat([
      Buffer.from('{"tenant_id":"acme","events":["'),
      Buffer.from([0xff]),
      Buffer.from('",]}'),
    ])
    expect(faultsOf(bytes)).toEqual(['$ is not valid JSON'])
  })
})
