// Four eyes, as pure decisions: what needs an approval, who may give it, and what a proposal says.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { describeProposal, type TypedProposal } from '#shared/core/approvals/describe-proposal.ts'
import {
  guardedKinds,
  isWithinMargin,
  mayApprove,
  needsApproval,
  proposalStates,
} from '#shared/core/approvals/four-eyes.ts'
import { leastRoleOf } from '#shared/core/operators/roles.ts'
import { toBacktestHash } from '#shared/core/policies/backtest-summary.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'

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
    })
  })
})

describe('a proposal', () => {
  it.each<[TypedProposal, string]>([
    [
      {
        kind: 'rotation',
        parameters: { hmac: true, webhook: true, api_key: true, webhook_overlap_seconds: 5_400 },
        base: { hmac_secret: null, webhook_secret: null, api_key: null },
      },
      'Rotate the HMAC secret, the webhook secret and the API key. The old webhook secret signs for 1.5 hours more.',
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
