// Four eyes, as pure decisions: what needs an approval, who may give it, and what a proposal says.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { describeProposal, type TypedProposal } from '#shared/core/approvals/describe-proposal.ts'
import {
  canChange,
  guardedKinds,
  isWideEntry,
  isWithinMargin,
  mayApprove,
  needsApproval,
  proposalStates,
  shortensRetention,
} from '#shared/core/approvals/four-eyes.ts'
import type { ListKind } from '#shared/core/lists/list-entry.ts'
import { leastRoleOf } from '#shared/core/operators/roles.ts'
import { toBacktestHash } from '#shared/core/policies/backtest-summary.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { apiKeyScopes } from '#shared/core/tenants/api-key-scopes.ts'

describe('an approval', () => {
  it('is needed for everything but small bulk changes, and for nothing without the setting', () => {
    const setting = { enabled: true, bulkAbove: 10 }
    const small = guardedKinds.filter((kind) => !needsApproval(setting, { kind, alerts: 10 }))
    expect(small).toEqual(['bulk', 'bulk_undo'])
    for (const kind of guardedKinds) {
      expect(needsApproval(setting, { kind, alerts: 11 })).toBe(true)
      expect(needsApproval({ ...setting, enabled: false }, { kind, alerts: 11 })).toBe(false)
    }
  })

  it('is never given by the author, and only while the proposal is open', () => {
    const able = proposalStates.filter((state) => mayApprove({ state, author: 'ana' }, 'ben'))
    expect(able).toEqual(['open'])
    expect(mayApprove({ state: 'open', author: 'ana' }, 'ana')).toBe(false)
  })

  it('holds for as many alerts as were seen, or nearly so', () => {
    fc.assert(
      fc.property(fc.nat(1_000_000), fc.nat(1_000_000), (proposed, now) => {
        const margin = Math.max(10, Math.floor(proposed / 20))
        expect(isWithinMargin(proposed, now)).toBe(Math.abs(now - proposed) <= margin)
      }),
    )
    expect([isWithinMargin(500, 525), isWithinMargin(500, 526)]).toEqual([true, false])
  })

  it('can be proposed by who may do it directly', () => {
    const roles = guardedKinds.map((kind) => [kind, leastRoleOf(kind)])
    expect(Object.fromEntries(roles)).toEqual({
      policy: 'admin',
      rotation: 'admin',
      install_root: 'admin',
      erasure: 'admin',
      bulk: 'analyst',
      bulk_undo: 'analyst',
      four_eyes: 'admin',
      api_key: 'admin',
      retention: 'admin',
      wide_list_entry: 'analyst',
      suspension: 'admin',
      shared_secret: 'admin',
    })
  })
})

describe('an effect', () => {
  it('is data that is kept for a shorter time, of any kind', () => {
    const before = { events: 400, alerts: null, deliveries: 30 }
    expect(shortensRetention(before, before)).toBe(false)
    expect(shortensRetention(before, { ...before, events: null, deliveries: 31 })).toBe(false)
    expect(shortensRetention(before, { ...before, alerts: 36_500 })).toBe(true)
    expect(shortensRetention(before, { ...before, events: null, deliveries: 29 })).toBe(true)
  })

  it('is a list entry that decides on many people', () => {
    const wide = (kind: ListKind, id: string) => isWideEntry({ kind, id })
    expect([wide('country', 'DE'), wide('asn', 'AS64500')]).toEqual([true, true])
    expect([wide('device', 'a/8'), wide('user', 'u')]).toEqual([false, false])
    const networks = ['8.8.0.0/16', '8.8.8.8', '8.8.8.0/24', '2001:db8::/32', '2001:db8::1']
    expect(networks.filter((id) => wide('network', id))).toEqual([])
    expect([wide('network', '8.8.0.0/15'), wide('network', '2a00::/31')]).toEqual([true, true])
  })

  it('is a key that changes something', () => {
    expect(apiKeyScopes.filter((scope) => !canChange([scope]))).toEqual(['read'])
  })
})

describe('a proposal', () => {
  it.each<[TypedProposal, string]>([
    [
      {
        kind: 'rotation',
        parameters: { hmac: true, webhook: true, api_key: true },
        base: { hmac_secret: null, webhook_secret: null, api_key: null },
      },
      'Rotate the HMAC secret, the webhook secret and the API key. The old ones end at once.',
    ],
    [
      {
        kind: 'bulk',
        parameters: {
          expected_count: 1_481,
          note: 'one farm',
          change: { sets: 'disposition', disposition: 'CONFIRMED' },
        },
        base: { alerts: 1_481 },
      },
      'Set 1,481 alerts to CONFIRMED, with the note “one farm”.',
    ],
    [
      {
        kind: 'bulk',
        parameters: { expected_count: 1, note: null, change: { sets: 'assignee', assignee: null } },
        base: { alerts: 1 },
      },
      'Take the assignee from 1 alert.',
    ],
    [
      {
        kind: 'four_eyes',
        parameters: { enabled: false, bulk_above: 5 },
        base: { enabled: true, bulk_above: 5 },
      },
      'Switch four eyes off: one administrator is enough again.',
    ],
  ])('of the kind %# says what it changes', (proposal, text) => {
    expect(describeProposal(proposal)).toBe(text)
  })
})

it('a backtest is found by what a policy means, whatever the order of its keys', () => {
  const { name, ...others } = presets.balanced
  const turned = { ...others, name }
  expect(JSON.stringify(turned)).not.toBe(JSON.stringify(presets.balanced))
  expect(toBacktestHash(turned)).toBe(toBacktestHash(presets.balanced))
  expect(toBacktestHash({ ...turned, name: 'another' })).not.toBe(toBacktestHash(turned))
  expect(toBacktestHash({ name })).toBeNull()
})
