/**
 * The edge of a simulated history: every planned event passes through ingest's own decision, with
 * the clock of its time. Only this process has that clock: no sender can choose when an event was
 * received.
 */
import { createSecretKey, type KeyObject } from 'node:crypto'
import { toEventId } from '#shared/core/base/ids.ts'
import { undecidedShare } from '#shared/core/base/limits/stream.ts'
import { installRootBytes, toInstallRoot } from '#shared/core/installs/install-token.ts'
import type { NetworkSources } from '#shared/core/network/connection.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { signBody, verifySignature } from '#shared/core/telemetry/signature.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'
import {
  admitSubmission,
  type DecideDeps,
  decideAdmitted,
} from '../../../services/ingest/decide-submission.ts'
import { addressOf, isCommuter, roamingAddressOf } from '../phones/addresses.ts'
import type { Plan, Session } from '../phones/plan.ts'
import type { Phone } from '../phones/population.ts'
import { prepareEvent } from '../phones/telemetry-bodies.ts'
import type { HistoryInstalls, StreamElement } from './history-installs.ts'
import type { HistoryPlan } from './history-plan.ts'
import { planReplays } from './history-replays.ts'

/** The edge's record of the tenant. */
export type EdgeTenant = {
  tenantId: string
  hmacSecret: string
  policy: Policy
  policyVersion: number
  policyHash: string
  /** What addresses are looked up in; left out, nothing is measured. */
  network?: { sources: NetworkSources; addressKey: KeyObject }
}

/** An accepted event: the encoded header before its body in a message, and the body. */
export type AcceptedVisit = {
  eventId: string
  phone: Phone
  atMs: number
  head: string
  body: Buffer
  /** The registration that was received before it, of a phone that then had no token. */
  registration: StreamElement | null
  /** Whether its bytes came before: then it is no new event. */
  isReplay: boolean
}

/**
 * Decides the events of a history, and replays of some, in the order of their receipt.
 * @param span.startMs the origin of `occurred_at`
 * @param span.endMs events at or after it are left out
 * @param installs of phones that register; without them the tenant's secret signs every event
 * @throws Error when the edge refuses one
 */
export function acceptVisits(
  { seed, visits }: HistoryPlan,
  known: EdgeTenant,
  { startMs, endMs }: { startMs: number; endMs: number },
  installs: HistoryInstalls | null = null,
): AcceptedVisit[] {
  const planned = visits
    .flatMap((visit) => visit.batches.map((batch, at) => ({ visit, at, ...batch })))
    .filter(({ atMs }) => atMs < endMs)
    .sort((a, b) => a.atMs - b.atMs || (a.visit.sessionId < b.visit.sessionId ? -1 : 1))
  const sessions: Session[] = planned.map(({ visit }, index) => ({
    phone: index,
    sessionId: visit.sessionId,
    userId: visit.userId,
    batches: visit.batches.length,
  }))
  const plan: Plan = {
    seed,
    phones: planned.map(({ phone }) => phone),
    sessions,
    sessionOf: Uint32Array.from(planned, (_, index) => index),
    batchOf: Uint16Array.from(planned, ({ at }) => at),
    eventOf: new Uint32Array(),
    atMs: new Float64Array(),
    isRepeat: new Uint8Array(),
  }
  const tenant = toTenant(known, installs === null ? [] : [installs.root])
  const key = tenant.key!
  let nowMs = startMs
  const deps: DecideDeps = {
    findTenant: () => tenant,
    leaseValid: () => true,
    keysKnown: () => true,
    mayWait: () => true,
    shares: { note: () => undefined, take: () => 0 },
    verify: verifySignature,
    decoyKey: key,
    decoyRoot: toInstallRoot(1, Buffer.alloc(installRootBytes)),
    nowMs: () => nowMs - startMs,
    wallMs: () => nowMs,
    network: () => known.network?.sources ?? null,
  }
  const bodies = {
    plan,
    tenantId: known.tenantId,
    scorer: tenant.policy!.score,
    startedAtMs: startMs,
  }
  const send = ({ phone, at, atMs }: (typeof planned)[number], index: number): Sent => {
    const { body } = prepareEvent(bodies, index, atMs - startMs)
    const install = installs?.before(phone, sessions[index]!.sessionId, atMs) ?? null
    const credentials =
      install === null
        ? { signature: signBody(body, key) }
        : {
            signature: signBody(body, createSecretKey(install.key, 'utf8')),
            install: install.token,
          }
    const isAbroad = at % 2 === 1 && isCommuter(phone)
    const address = isAbroad ? roamingAddressOf(phone) : addressOf(phone)
    return { phone, body, address, credentials, registration: install?.registration ?? null }
  }
  const accept = ({ phone, body, address, credentials, registration }: Sent, atMs: number) => {
    nowMs = atMs
    const decision = decide(body, credentials, address, deps)
    if (decision.kind === 'refused') throw new Error(`the edge refused: ${decision.reason}`)
    const { head, hashedBody } = decision
    const stored = hashedBody?.body ?? body
    return { eventId: toEventId(body), phone, atMs, head, body: stored, registration }
  }
  // Only what installs signed is captured: phones without them are as before.
  const replays = installs === null ? [] : planReplays(seed, planned)
  const sent = planned.map(send)
  return [
    ...sent.map((one, index) => ({ ...accept(one, planned[index]!.atMs), isReplay: false })),
    ...replays.map(({ index, atMs }) => {
      return { ...accept({ ...sent[index]!, registration: null }, atMs), isReplay: true }
    }),
  ].sort((a, b) => a.atMs - b.atMs)
}

/** As an edge does, where the address is that of the connection. */
function decide(body: Buffer, credentials: Credentials, address: string, deps: DecideDeps) {
  const admitted = admitSubmission(body, credentials, deps)
  if ('kind' in admitted) return admitted
  return decideAdmitted(body, admitted, deps, { evidence: null, readAddress: () => address })
}

type Credentials = { signature: string; install?: string }

/** A request as a phone sent it, which a captured copy repeats. */
type Sent = {
  phone: Phone
  body: Buffer
  /** Where it was sent from; who sends it again is taken to be in the same network. */
  address: string
  credentials: Credentials
  registration: StreamElement | null
}

function toTenant(known: EdgeTenant, installRoots: Tenant['installRoots']): Tenant {
  const { policy, policyHash: hash } = known
  return {
    tenantId: known.tenantId,
    environment: 'sandbox',
    status: 'active',
    epoch: 1,
    key: createSecretKey(known.hmacSecret, 'utf8'),
    retired: null,
    installRoots,
    sharedSecretOff: false,
    policyVersion: known.policyVersion,
    policyHash: hash,
    policy: { hash, thresholds: policy.thresholds, score: compilePolicy(policy) },
    limiter: null,
    byteLimiter: null,
    undecidedShare,
    telemetryStream: 1,
    ingestAnswer: 'full',
    clientAddress: 'connection',
    isAddressStored: false,
    addressKey: known.network?.addressKey ?? null,
    lists: { usable: () => true, find: () => [], findOfConnection: () => [] },
    apps: { listed: [], playKeys: new Map() },
    fault: null,
  }
}
