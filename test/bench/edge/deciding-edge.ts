/** What benchmarks of the decision on one event share: an edge without I/O, and its CPU time. */
import { createSecretKey } from 'node:crypto'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { signBody, verifySignature } from '#shared/core/telemetry/signature.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'
import { type DecideDeps, decideSubmission } from '../../../services/ingest/decide-submission.ts'
import { decoyRoot, noInstalls } from '../../support/installs/install-roots.ts'

const secret = createSecretKey(Buffer.from('s'.repeat(43)))

const tenant: Tenant = {
  tenantId: 'acme',
  environment: 'live',
  status: 'active',
  epoch: 1,
  key: secret,
  retired: null,
  policyVersion: 1,
  policyHash: 'a'.repeat(32),
  policy: { hash: '', thresholds: defaultPolicy.thresholds, score: compilePolicy(defaultPolicy) },
  limiter: null,
  byteLimiter: null,
  undecidedShare: 0.25,
  telemetryStream: 1,
  ingestAnswer: 'full',
  clientAddress: 'connection',
  isAddressStored: false,
  addressKey: null,
  ...noInstalls,
  lists: { usable: () => true, find: () => [], findOfConnection: () => [] },
  fault: null,
}
/** @param addressKey what identifiers are hashed under */
export const createDecidingEdge = ({
  addressKey = null,
  ...more
}: Partial<DecideDeps> & Pick<Partial<Tenant>, 'addressKey'>): DecideDeps => ({
  findTenant: () => ({ ...tenant, addressKey }),
  leaseValid: () => true,
  keysKnown: () => true,
  mayWait: () => true,
  shares: { note: () => undefined, take: () => 0 },
  verify: verifySignature,
  decoyKey: secret,
  decoyRoot,
  nowMs: () => performance.now(),
  wallMs: Date.now,
  ...more,
})

export type Signed = { body: Buffer; signature: string }

export const sign = (text: string): Signed => {
  const body = Buffer.from(text)
  return { body, signature: signBody(body, secret) }
}

/** @returns µs of CPU per event */
export function measureDeciding(events: readonly Signed[], edge: DecideDeps): number {
  const before = process.cpuUsage()
  for (const { body, signature } of events)
    decideSubmission(body, { signature, install: undefined }, edge)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / events.length
}
