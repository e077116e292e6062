// What ingest passes to the scorer beside the signals, and that it stores the exact time that it
// scored by.
import { describe, expect, it } from 'vitest'
import type { ListedConnection } from '#shared/core/lists/list-entry.ts'
import { parseAddress } from '#shared/core/network/address.ts'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import type { Reason } from '#shared/core/scoring/score.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { signBody } from '#shared/core/telemetry/signature.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'
import { createDirectoryLists } from '#shared/io/tenants/directory/tenant-lists.ts'
import {
  admitSubmission,
  type DecideDeps,
  decideSubmission,
  decideVerified,
} from '../../../services/ingest/decide-submission.ts'
import { signalsOf } from '../../support/scoring/any-policy.ts'
import { keyOf, makeEdge, makeEdgeTenant } from '../../support/tenants/edge-tenant.ts'

const key = keyOf('k')
const endMs = Date.UTC(2026, 5, 1)

const policy = {
  ...balancedPolicy,
  suppressions: [
    {
      signals: ['debugger.*'],
      sdkVersions: ['4.2.*'],
      platforms: ['ios'],
      expiresAt: new Date(endMs).toISOString(),
      reason: 'A bad release.',
    },
  ],
}

const tenant = makeEdgeTenant({
  key,
  policy: { hash: '', thresholds: policy.thresholds, score: compilePolicy(policy) },
})

function depsOf(own: Tenant, atMs: number): DecideDeps {
  let wallMs = atMs
  return makeEdge(own, { wallMs: () => wallMs++ })
}

/**
 * The decision on an event with Frida; every read of the wall clock advances it by a millisecond.
 */
function decide(event: { sdk_version: string; platform: string }, atMs: number) {
  const body = Buffer.from(
    JSON.stringify({
      tenant_id: 'acme',
      device_id: 'device-1',
      session_id: 'session-1',
      sdk_meta: { ...event, batch_type: 'start' },
      scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
      signals: signalsOf({ debugger: { frida_detected: true } }),
    }),
  )
  const decision = decideSubmission(body, { signature: signBody(body, key) }, depsOf(tenant, atMs))
  if (decision.kind === 'refused') throw new Error(decision.reason)
  const head = JSON.parse(`${decision.head}null}`) as { received_at: number; rasp_score: number }
  return { receivedAt: head.received_at, score: head.rasp_score }
}

describe('the edge', () => {
  it('scores by the SDK version and platform of the event', () => {
    const bad = { sdk_version: '4.2.7', platform: 'iOS' }
    expect(decide(bad, 1_000).score).toBe(0)
    expect(decide({ ...bad, sdk_version: '4.3.0' }, 1_000).score).toBe(80)
    expect(decide({ ...bad, platform: 'android' }, 1_000).score).toBe(80)
  })

  it('scores by the time that it stores as received_at', () => {
    const bad = { sdk_version: '4.2.7', platform: 'ios' }
    expect(decide(bad, endMs - 1)).toEqual({ receivedAt: endMs - 1, score: 0 })
    expect(decide(bad, endMs)).toEqual({ receivedAt: endMs, score: 80 })
  })
})

describe('the edge on a listed connection', () => {
  const from = (address: string): ListedConnection => ({ words: parseAddress(address)! })
  const directory = createDirectoryLists()
  directory.set('acme', null, {
    tenant_id: 'acme',
    version: 1,
    entries: [
      ['8.8.8.0/24', 'deny', 'network', 'lst_deny', 'abuse', 2_000],
      ['9.9.9.0/24', 'allow', 'network', 'lst_allow', 'office', null],
    ],
  })
  const lists = directory.of('acme', {})

  /** Of a device from an address, by default at second 1. */
  function decideFrom(
    connection: ListedConnection | null,
    { environment = 'live', device = 'device-1', atMs = 1_000 } = {} as Partial<{
      environment: 'live' | 'sandbox'
      device: string
      atMs: number
    }>,
  ) {
    const body = Buffer.from(
      JSON.stringify({
        tenant_id: 'acme',
        device_id: device,
        session_id: 'session-1',
        sdk_meta: { sdk_version: '5', platform: 'ios', batch_type: 'start' },
        scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
        signals: signalsOf({ root: { su_binary: true } }),
      }),
    )
    const own: Tenant = { ...tenant, environment, lists }
    const deps = depsOf(own, atMs)
    const admitted = admitSubmission(body, { signature: signBody(body, key) }, deps)
    if ('kind' in admitted) throw new Error(admitted.reason)
    const head = { network: '8.8.8.0/24', address_hash: 'x' }
    const measured = connection && { head, signals: { tor: true }, listed: connection }
    const decision = decideVerified(body, { ...admitted, deps, measure: () => measured })
    if (decision.kind === 'refused') throw new Error(decision.reason)
    const { reasons, server_signals, connection: seen } = JSON.parse(`${decision.head}null}`)
    const listed = (reasons as Reason[]).filter(({ evidence }) => 'entry_id' in evidence)
    expect(seen).toEqual(measured?.head)
    const signals = server_signals.connection
    return { score: decision.score, action: decision.action, listed, signals }
  }
  /** From where no list has an entry. */
  const own = decideFrom(from('1.1.1.1'))
  const seen = { tor: true }
  const reasonOf = (code: string, entry_id: string, reason: string) => ({
    code,
    weight: 0,
    evidence: { entry_id, kind: 'network', reason },
  })

  it('blocks what is denied until the entry is over, and leaves its score', () => {
    expect(decideFrom(from('8.8.8.8'))).toEqual({
      ...own,
      action: 'BLOCK',
      listed: [reasonOf('DENY_LISTED', 'lst_deny', 'abuse')],
    })
    expect(decideFrom(from('8.8.9.8'))).toEqual(own)
    expect(decideFrom(from('8.8.8.8'), { atMs: 1_999 }).action).toBe('BLOCK')
    expect(decideFrom(from('8.8.8.8'), { atMs: 2_000 })).toEqual(own)
  })

  it('decides an allowed one by the other signals, and says which entry silences', () => {
    expect(own).toMatchObject({ action: 'REVIEW', listed: [], signals: seen })
    const unseen = { ...own, score: own.score - 12, signals: undefined }
    expect(decideFrom(null)).toEqual(unseen)
    expect(decideFrom(from('9.9.9.9'))).toEqual({
      ...unseen,
      listed: [reasonOf('CONNECTION_ALLOWED', 'lst_allow', 'office')],
    })
  })

  it('asks no list of a test device of a sandbox', () => {
    const sandbox = { environment: 'sandbox', device: 'test-allow' } as const
    const forced = decideFrom(from('1.1.1.1'), sandbox)
    expect(forced.action).toBe('ALLOW')
    expect(decideFrom(from('8.8.8.8'), sandbox)).toEqual(forced)
    expect(decideFrom(from('9.9.9.9'), sandbox)).toEqual(forced)
    const other = { ...sandbox, device: 'device-1' }
    expect(decideFrom(from('8.8.8.8'), other).action).toBe('BLOCK')
  })
})
