/** A tenant as an edge serves it, and an edge that serves no other. A test names what differs. */
import { createSecretKey, type KeyObject } from 'node:crypto'
import { verifySignature } from '#shared/core/telemetry/signature.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'
import type { DecideDeps } from '../../../services/ingest/decide-submission.ts'
import { decoyRoot, noInstalls } from '../installs/install-roots.ts'

/** The key of the secret that is this letter, as often as a secret has characters. */
export const keyOf = (letter: string): KeyObject => createSecretKey(Buffer.from(letter.repeat(43)))

/** A tenant whose secret is `p`, and whose policy finds nothing. */
export const makeEdgeTenant = (change: Partial<Tenant> = {}): Tenant => ({
  tenantId: 'acme',
  environment: 'live',
  status: 'active',
  epoch: 1,
  key: keyOf('p'),
  retired: null,
  policyVersion: 1,
  policyHash: 'a'.repeat(32),
  policy: {
    hash: '',
    thresholds: { review: 40, block: 75 },
    score: () => ({ score: 0, action: 'ALLOW', reasons: [] }),
  },
  limiter: null,
  byteLimiter: null,
  undecidedShare: 0.25,
  telemetryStream: 1,
  ingestAnswer: 'full',
  clientAddress: 'connection',
  isAddressStored: false,
  addressKey: null,
  lists: { usable: () => true, find: () => [], findOfConnection: () => [] },
  fault: null,
  ...noInstalls,
  ...change,
})

/** An edge with a lease that knows this tenant alone; its decoy's secret is `d`. */
export const makeEdge = (
  tenant: Tenant | undefined,
  change: Partial<DecideDeps> = {},
): DecideDeps => ({
  findTenant: (tenantId) => (tenantId === tenant?.tenantId ? tenant : undefined),
  leaseValid: () => true,
  keysKnown: () => true,
  mayWait: () => true,
  shares: { note: () => undefined, take: () => 0 },
  verify: verifySignature,
  decoyKey: keyOf('d'),
  decoyRoot,
  nowMs: () => 0,
  wallMs: () => 1_790_000_000_000,
  ...change,
})

/** A submission in which an SDK found nothing, as it is signed. */
export const makeSubmission = (change: Record<string, unknown> = {}): string =>
  JSON.stringify({
    tenant_id: 'acme',
    device_id: 'd',
    session_id: 's',
    sdk_meta: { sdk_version: '4.2.0', platform: 'ios', batch_type: 'start' },
    scorer: { rasp_score: -1, rasp_action: '', rasp_flags: [] },
    signals: { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} },
    ...change,
  })
