/**
 * Lists of networks, operators and countries beside a plain model: which entry denies, which one
 * silences the signals of the connection, and what is left of an event.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  buildConnectionLists,
  type ConnectionEntry,
  findConnectionEntries,
} from '#shared/core/lists/connection-lists.ts'
import type { ListEntry, ListedConnection, ListName } from '#shared/core/lists/list-entry.ts'
import {
  applyListReasons,
  findListDecision,
  findListReasons,
  type ListSource,
  noListDecision,
  toListReasons,
  withoutSilenced,
} from '#shared/core/lists/lists.ts'
import {
  type AddressWords,
  containsNetwork,
  formatNetwork,
  parseAddress,
  parseNetwork,
  toNetwork,
} from '#shared/core/network/address.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { policySchema } from '#shared/core/policies/policy.ts'
import { compileShadow, decideShadow } from '#shared/core/policies/shadow.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { noRiskFeatures } from '#shared/core/velocity/risk.ts'

const nowMs = 1_000_000

type Row = Partial<Pick<ListEntry, 'list' | 'expiresAtMs'>> & Pick<ConnectionEntry, 'kind' | 'id'>

const toEntry = (row: Row): ConnectionEntry => ({
  entryId: `lst_${row.list ?? 'deny'}_${row.id}`,
  list: 'deny',
  reason: 'abuse',
  expiresAtMs: null,
  ...row,
})
const nets = (...rows: (readonly [string, ListName] | readonly [string, ListName, number])[]) =>
  rows.map(([id, list, expiresAtMs = null]) => toEntry({ kind: 'network', id, list, expiresAtMs }))

function listsOf(
  entries: readonly ConnectionEntry[],
  ofIds: readonly ListEntry[] = [],
): ListSource {
  const lists = buildConnectionLists(entries)!
  return {
    find: (kind) => ofIds.filter((entry) => entry.kind === kind),
    findOfConnection: (connection) => findConnectionEntries(lists, connection),
  }
}

const from = (address: string, more: Omit<ListedConnection, 'words'> = {}): ListedConnection => ({
  words: parseAddress(address)!,
  ...more,
})
const ids = { device_id: 'phone', user_id: 'anna' }
const decide = (lists: ListSource, connection: ListedConnection | null) => {
  const { decides, silences } = findListDecision(lists, ids, nowMs, connection)
  return [decides?.entryId ?? null, silences?.entryId ?? null]
}

describe('the entry of a connection', () => {
  it('is that of the longest network in force', () => {
    const lists = listsOf(
      nets(['8.0.0.0/8', 'deny'], ['8.8.0.0/16', 'deny', nowMs + 1], ['8.8.8.0/24', 'deny', nowMs]),
    )
    expect(decide(lists, from('8.8.8.8'))).toEqual(['lst_deny_8.8.0.0/16', null])
    expect(decide(lists, from('8.9.8.8'))).toEqual(['lst_deny_8.0.0.0/8', null])
    expect(decide(lists, from('9.8.8.8'))).toEqual([null, null])
    expect(decide(lists, null)).toEqual([null, null])
  })

  it('is of the network before the operator before the country', () => {
    const rows = [
      toEntry({ kind: 'country', id: 'DE' }),
      toEntry({ kind: 'asn', id: '64500' }),
      ...nets(['8.8.8.0/24', 'deny']),
    ]
    const [country, asn] = rows as [ConnectionEntry, ConnectionEntry]
    const whole = from('8.8.8.8', { country: 'DE', asn: 64_500 })
    expect(decide(listsOf(rows), whole)[0]).toBe('lst_deny_8.8.8.0/24')
    expect(decide(listsOf([country, asn]), whole)[0]).toBe('lst_deny_64500')
    expect(decide(listsOf([country]), whole)[0]).toBe('lst_deny_DE')
    expect(decide(listsOf(rows), from('9.9.9.9', { country: 'FR', asn: 64_501 }))).toEqual([
      null,
      null,
    ])
    // An address of which nothing else is known is in its network all the same.
    expect(decide(listsOf(rows), from('8.8.8.8'))[0]).toBe('lst_deny_8.8.8.0/24')
  })

  it('of IPv6 is none of IPv4', () => {
    const lists = listsOf(nets(['8.0.0.0/8', 'deny'], ['2a00:1::/32', 'deny']))
    expect(decide(lists, from('2a00:1::8'))[0]).toBe('lst_deny_2a00:1::/32')
    expect(decide(lists, from('800::'))[0]).toBeNull()
    expect(decide(lists, from('::ffff:8.1.2.3'))[0]).toBe('lst_deny_8.0.0.0/8')
  })
})

describe('an allowed connection', () => {
  const office = nets(['8.8.8.0/24', 'allow'])
  const device = (list: ListName): ListEntry => ({
    ...toEntry({ kind: 'network', id: 'of-device', list }),
    kind: 'device',
  })

  it('decides nothing and silences, whatever decides', () => {
    expect(decide(listsOf(office), from('8.8.8.8'))).toEqual([null, 'lst_allow_8.8.8.0/24'])
    for (const list of ['allow', 'deny'] as const) {
      expect(decide(listsOf(office, [device(list)]), from('8.8.8.8'))).toEqual([
        `lst_${list}_of-device`,
        'lst_allow_8.8.8.0/24',
      ])
    }
  })

  it('is denied all the same by any entry of the deny list, which beats an allowed device', () => {
    const country = toEntry({ kind: 'country', id: 'DE' })
    const lists = listsOf([...office, country], [device('allow')])
    expect(decide(lists, from('8.8.8.8', { country: 'DE' }))).toEqual([
      'lst_deny_DE',
      'lst_allow_8.8.8.0/24',
    ])
    expect(decide(lists, from('8.8.8.8', { country: 'FR' }))[0]).toBe('lst_allow_of-device')
  })
})

const addresses = fc
  .tuple(
    fc.boolean(),
    fc.array(fc.constantFrom(0, 1, 0x80000000, 0xffffffff), { minLength: 4, maxLength: 4 }),
  )
  .map(
    ([isV4, words]): AddressWords =>
      isV4
        ? [(0x08000000 | (words[0]! & 0xffffff)) >>> 0]
        : [0x2a000000 | (words[0]! & 0xff), ...words.slice(1)].map((word) => word >>> 0),
  )
const networks = fc
  .tuple(addresses, fc.integer({ min: 0, max: 128 }))
  .map(([words, length]) =>
    formatNetwork(toNetwork({ words, length: Math.min(length, 32 * words.length) })),
  )
const rows = fc.record({
  list: fc.constantFrom<ListName>('allow', 'deny'),
  of: fc.oneof(
    networks.map((id) => ({ kind: 'network' as const, id })),
    fc.constantFrom('64500', '64501').map((id) => ({ kind: 'asn' as const, id })),
    fc.constantFrom('DE', 'FR').map((id) => ({ kind: 'country' as const, id })),
  ),
  expiresAtMs: fc.constantFrom(null, nowMs - 1, nowMs, nowMs + 1),
})

describe('the decision on a connection', () => {
  it('is that of a plain search through all entries', () => {
    const events = fc.record({
      words: addresses,
      country: fc.constantFrom(undefined, 'DE', 'FR'),
      asn: fc.constantFrom(undefined, 64_500, 64_501),
    })
    const order = ['network', 'asn', 'country']
    const toLength = ({ kind, id }: ConnectionEntry) =>
      kind === 'network' ? parseNetwork(id)!.length : 0
    fc.assert(
      fc.property(fc.array(rows, { maxLength: 40 }), events, (some, connection) => {
        const entries = some.map(({ of, ...row }, at) => ({
          ...toEntry({ ...of, ...row }),
          entryId: `lst_${at}`,
        }))
        const { words } = connection
        const host = { words, length: 32 * words.length }
        const matches = ({ kind, id }: ConnectionEntry) =>
          kind === 'network'
            ? containsNetwork(parseNetwork(id)!, host)
            : id === String(kind === 'asn' ? connection.asn : connection.country)
        const inForce = entries
          .filter((entry) => entry.expiresAtMs === null || entry.expiresAtMs > nowMs)
          .filter(matches)
          .sort(
            (a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || toLength(b) - toLength(a),
          )
        const found = findListDecision(listsOf(entries), { device_id: 'x' }, nowMs, connection)
        const { decides, silences } = found
        expect(decides?.entryId).toBe(inForce.find(({ list }) => list === 'deny')?.entryId)
        expect(silences?.entryId).toBe(inForce.find(({ list }) => list === 'allow')?.entryId)
      }),
      { numRuns: 2_000 },
    )
  })

  it('knows no network that is none', () => {
    expect(buildConnectionLists([toEntry({ kind: 'network', id: '8.8.8.8/24' })])).toBeNull()
    expect(buildConnectionLists([toEntry({ kind: 'network', id: 'here' })])).toBeNull()
  })
})

describe('an event from an allowed network', () => {
  const policy = policySchema.parse({
    ...defaultPolicy,
    serverCategories: { connection: { cap: 60, signals: { tor: 60 } } },
  })
  const seen = { attestation: { install_key: true }, connection: { tor: true } }
  const signals = { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} }
  const context = { sdkVersion: '1', platform: 'android', receivedAtMs: nowMs }
  const score = compilePolicy(policy)
  const listed = findListDecision(
    listsOf(nets(['8.8.8.0/24', 'allow'])),
    ids,
    nowMs,
    from('8.8.8.8'),
  )
  const stored = withoutSilenced(seen, listed)
  const verdict = applyListReasons(score(signals, context, stored), toListReasons(listed))

  it('is scored and stored without what the service saw of its connection, and says by which entry', () => {
    expect(score(signals, context, seen).score).toBe(60)
    expect(stored).toEqual({ attestation: { install_key: true } })
    expect(verdict).toEqual({
      score: 0,
      action: 'ALLOW',
      reasons: [
        {
          code: 'CONNECTION_ALLOWED',
          weight: 0,
          evidence: { entry_id: 'lst_allow_8.8.8.0/24', kind: 'network', reason: 'abuse' },
        },
      ],
    })
    expect(withoutSilenced(seen, noListDecision)).toBe(seen)
  })

  it('is the same again from what was stored, by the active policy and by a shadow', () => {
    const again = score(signals, context, stored)
    expect(applyListReasons(again, findListReasons(verdict.reasons))).toEqual(verdict)
    const scorer = { rasp_score: 0, rasp_action: '', rasp_flags: [] }
    const sdk_meta = { sdk_version: '1', platform: 'android', batch_type: 'start' }
    const event = {
      rasp_score: verdict.score,
      rasp_action: verdict.action,
      reasons: verdict.reasons,
      received_at: nowMs,
      server_signals: stored,
      body: { device_id: 'phone', signals, scorer, sdk_meta },
    } as unknown as AcceptedEvent
    const { raspScore, risk } = decideShadow(event, compileShadow(policy), noRiskFeatures)
    expect(raspScore).toBe(0)
    expect(risk).toEqual({ riskScore: 0, action: 'ALLOW', reasons: verdict.reasons })
  })

  it('keeps the decision of its other signals', () => {
    const rooted = { ...signals, debugger: { frida_detected: true } }
    const own = score(rooted, context, stored)
    const scored = applyListReasons(own, toListReasons(listed))
    expect(own.score).toBeGreaterThan(0)
    expect(scored).toMatchObject({ score: own.score, action: own.action })
  })
})
