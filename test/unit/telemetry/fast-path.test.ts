/**
 * The quick yes of a batch message's elements: it says yes to what edges write, and never to
 * anything that the schemas would refuse.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { eventHeaderSchema } from '#shared/core/telemetry/event-batch.ts'
import { isPlainEvent } from '#shared/core/telemetry/fast-path.ts'
import { telemetrySchema } from '#shared/core/telemetry/submission.ts'

type Fields = Record<string, unknown>

const event = (): Fields => ({
  event_id: 'evt_0123456789abcdefghijkl',
  tenant_id: 'acme',
  received_at: 1_790_000_000_000,
  rasp_score: 40,
  rasp_action: 'REVIEW',
  reasons: [{ code: 'ROOTED', weight: 40, evidence: { signals: ['root.su_binary'] } }],
  policy_version: 1,
  policy_hash: 'abc',
  epoch: 1,
  body: {
    tenant_id: 'acme',
    device_id: 'd',
    session_id: 's',
    user_id: 'u',
    sdk_meta: { sdk_version: '4.2.0', platform: 'android', batch_type: 'periodic' },
    scorer: { rasp_score: 1, rasp_action: 'ALLOW', rasp_flags: ['A'] },
    signals: { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} },
    more: [1, { two: 3 }],
  },
})

/** Every path of a value that leads to something. */
function pathsOf(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [path]
  const inner = Object.entries(value).flatMap(([key, item]) => pathsOf(item, [...path, key]))
  return path.length === 0 ? inner : [path, ...inner]
}

function change(value: Fields, path: readonly string[], to: unknown, drop: boolean): void {
  const parent = path.slice(0, -1).reduce((at, key) => at[key] as Fields, value)
  const key = path.at(-1)!
  if (drop && Array.isArray(parent)) parent.splice(Number(key), 1)
  else if (drop) delete parent[key]
  else parent[key] = to
}

function passesSchemas(value: unknown): boolean {
  const header = eventHeaderSchema.safeParse(value)
  const body = telemetrySchema.safeParse((value as Fields).body)
  return header.success && body.success && body.data.tenant_id === header.data.tenant_id
}

const values = fc.oneof(
  fc.anything(),
  fc.constantFrom<unknown>(
    ...['', 'x', 'x'.repeat(129), 'x'.repeat(257), 'a\u0007', '2026-01-01T00:00:00Z', 'ALLOW'],
    ...[0, -1, 1.5, 1e21, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, null, undefined, true],
    ...[[], {}, ['x'], [1], [{ code: 'A', weight: 1.5, evidence: {} }], [{}], { a: 1 }],
  ),
)

describe('the quick yes', () => {
  it('knows what an edge writes', () => {
    expect(isPlainEvent(event())).toBe(true)
  })

  it('is never said to what the schemas refuse, whatever is changed', () => {
    const paths = [...pathsOf(event()), ['body', 'occurred_at'], ['body', 'account_id']]
    let yes = 0
    let no = 0
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom(...paths), values, fc.boolean()), {
          minLength: 1,
          maxLength: 2,
        }),
        (changes) => {
          const changed = event()
          try {
            for (const [path, to, drop] of changes) change(changed, path, to, drop)
          } catch {
            // The first change took away what the second would have changed.
          }
          if (!isPlainEvent(changed)) no++
          else {
            yes++
            expect(passesSchemas(changed)).toBe(true)
          }
        },
      ),
      { numRuns: 5_000 },
    )
    expect(yes).toBeGreaterThan(100)
    expect(no).toBeGreaterThan(1_000)
  })
})
