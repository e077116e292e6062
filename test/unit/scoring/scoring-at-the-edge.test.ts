// What ingest passes to the scorer beside the signals, and that it stores the exact time that it
// scored by.
import { createSecretKey } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { signBody, verifySignature } from '#shared/core/telemetry/signature.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'
import { decideSubmission } from '../../../services/ingest/decide-submission.ts'
import { decoyRoot, noInstalls } from '../../support/installs/install-roots.ts'
import { signalsOf } from '../../support/scoring/any-policy.ts'

const key = createSecretKey(Buffer.from('k'.repeat(43)))
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

const tenant: Tenant = {
  tenantId: 'acme',
  environment: 'live',
  status: 'active',
  epoch: 1,
  key,
  retired: null,
  policyVersion: 1,
  policyHash: 'a'.repeat(32),
  policy: {
    hash: 'a'.repeat(32),
    thresholds: policy.thresholds,
    score: compilePolicy(policy),
  },
  limiter: null,
  byteLimiter: null,
  undecidedShare: 0.25,
  telemetryStream: 1,
  ingestAnswer: 'full',
  clientAddress: 'connection',
  isAddressStored: false,
  addressKey: null,
  lists: { usable: () => true, find: () => [] },
  fault: null,
  ...noInstalls,
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
  let wallMs = atMs
  const decision = decideSubmission(
    body,
    { signature: signBody(body, key) },
    {
      findTenant: () => tenant,
      leaseValid: () => true,
      keysKnown: () => true,
      mayWait: () => true,
      shares: { note: () => undefined, take: () => 0 },
      verify: verifySignature,
      decoyKey: key,
      decoyRoot,
      nowMs: () => 0,
      wallMs: () => wallMs++,
    },
  )
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
