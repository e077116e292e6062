/**
 * Verifies the evidence of registrations off the event loop, so that none of it delays telemetry.
 * Waiting checks are bounded per tenant and in all; tenants take turns. A check that takes too long
 * and a thread that dies cost the check alone: its sender gets a 503 and the thread is replaced.
 */
import { Worker } from 'node:worker_threads'
import type { Evidence } from '#shared/core/attestation/recognize.ts'
import {
  evidenceMsMax,
  evidenceRetryAfterSeconds,
  evidenceStartMsMax,
  evidenceThreadMegabytesMax,
  evidenceThreads,
  waitingEvidenceMax,
  waitingEvidencePerTenantMax,
} from '#shared/core/base/limits/attestation.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { VerifiedEvidence } from '#shared/core/installs/evidence-signals.ts'
import { findPlayKeys } from '#shared/core/installs/tenant-apps.ts'
import type { FindRoots } from '#shared/io/attestation/test-roots.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'
import type { EvidenceMetrics } from './evidence-metrics.ts'
import type { EvidenceAnswer, EvidenceJob } from './evidence-worker.ts'

/** What is to be verified. */
export type EvidenceRequest = {
  evidence: Evidence
  /** The bytes that the evidence must be for. */
  challenge: Uint8Array
  /** Of the app that sends it, as it says; null where it does not. */
  packageName: string | null
}

/** What is needed of a tenant. */
export type EvidenceTenant = Pick<Tenant, 'tenantId' | 'environment' | 'apps'>

export type EvidencePool = {
  /**
   * Verifies evidence.
   * @throws Problem rate_limited when the tenant has too many waiting; unavailable when all have,
   *   or when the thread did not answer
   */
  verify: (request: EvidenceRequest, tenant: EvidenceTenant) => Promise<VerifiedEvidence>
  /** How many checks wait or run. */
  waiting: () => number
  close: () => Promise<void>
}

type PoolOptions = {
  findRoots: FindRoots
  /** The status list in force, of `packSerials`. */
  revoked: () => SharedArrayBuffer | null
  metrics: Pick<EvidenceMetrics, 'failed'>
  log: Log
  /** The wall clock: certificates and tokens have dates. */
  wallMs: () => number
  /** Overrides limits and the thread's file, for tests. */
  limits?: Partial<PoolLimits>
  workerUrl?: URL
}

type PoolLimits = {
  threads: number
  waiting: number
  perTenant: number
  /** Of one check, and of the start of a thread with its first. */
  msMax: number
  startMsMax: number
}

const defaultLimits: PoolLimits = {
  threads: evidenceThreads,
  waiting: waitingEvidenceMax,
  perTenant: waitingEvidencePerTenantMax,
  msMax: evidenceMsMax,
  startMsMax: evidenceStartMsMax,
}

type Waiting = {
  tenantId: string
  job: EvidenceJob
  resolve: (verified: VerifiedEvidence) => void
  reject: (problem: Problem) => void
}

/** Threads start with the first check: an edge without registrations has none. */
export function createEvidencePool(options: PoolOptions): EvidencePool {
  const { metrics, log } = options
  const limits = { ...defaultLimits, ...options.limits }
  const queue = createTurns<Waiting>()
  const counts = new Map<string, number>()
  const slots = Array.from({ length: limits.threads }, () => createSlot(options, limits))
  let total = 0
  const settle = ({ tenantId }: Waiting) => {
    total--
    const left = counts.get(tenantId)! - 1
    if (left === 0) counts.delete(tenantId)
    else counts.set(tenantId, left)
  }
  const next = () => {
    for (const slot of slots) {
      if (slot.isBusy()) continue
      const waiting = queue.take()
      if (waiting === undefined) return
      void slot.run(waiting.job).then(
        (verified) => {
          settle(waiting)
          waiting.resolve(verified)
          next()
        },
        (error: Error) => {
          settle(waiting)
          metrics.failed(error instanceof SlowError ? 'time_limit' : 'thread')
          log.error({ err: error, tenant_id: waiting.tenantId }, 'evidence was not verified')
          waiting.reject(unavailable('The evidence could not be verified; it may be sent again.'))
          next()
        },
      )
    }
  }
  return {
    waiting: () => total,
    close: async () => {
      for (const { reject } of queue.drain()) reject(unavailable('The edge is stopping.'))
      await Promise.all(slots.map(({ close }) => close()))
    },
    verify: async (request, tenant) => {
      const { tenantId } = tenant
      const count = counts.get(tenantId) ?? 0
      if (count >= limits.perTenant) {
        metrics.failed('tenant_full')
        throw new Problem('rate_limited', 'Too many registrations of the tenant are waiting.', {
          retryAfterSeconds: evidenceRetryAfterSeconds,
        })
      }
      if (total >= limits.waiting) {
        metrics.failed('full')
        throw unavailable('Too many registrations are waiting.')
      }
      const job = toJob(request, tenant, options)
      total++
      counts.set(tenantId, count + 1)
      const { promise, resolve, reject } = Promise.withResolvers<VerifiedEvidence>()
      queue.add(tenantId, { tenantId, job, resolve, reject })
      next()
      return promise
    },
  }
}

const unavailable = (detail: string) =>
  new Problem('unavailable', detail, { retryAfterSeconds: evidenceRetryAfterSeconds })

function toJob(
  { evidence, challenge, packageName }: EvidenceRequest,
  { environment, apps }: EvidenceTenant,
  { findRoots, revoked, wallMs }: PoolOptions,
): EvidenceJob {
  return {
    evidence,
    challenge,
    apps: apps.listed,
    environment,
    playKeys:
      evidence.provider === 'play_integrity' ? findPlayKeys(apps.playKeys, packageName) : null,
    roots: findRoots(environment),
    revoked: revoked(),
    nowMs: wallMs(),
  }
}

class SlowError extends Error {}

type Slot = {
  isBusy: () => boolean
  /** @throws SlowError after the time limit; Error when the thread died */
  run: (job: EvidenceJob) => Promise<VerifiedEvidence>
  close: () => Promise<void>
}

/** One thread and, after it died or was ended, the next. */
function createSlot({ workerUrl, log }: PoolOptions, { msMax, startMsMax }: PoolLimits): Slot {
  const url = workerUrl ?? new URL('./evidence-worker.ts', import.meta.url)
  let worker: Worker | null = null
  let lastId = 0
  let timer: NodeJS.Timeout | undefined
  let running: { id: number; end: (outcome: VerifiedEvidence | Error) => void } | null = null
  /** Ends the thread when it has not answered by then. */
  const limit = (ms: number) => {
    clearTimeout(timer)
    if (running === null) return
    timer = setTimeout(() => {
      const slow = worker
      worker = null
      void slow?.terminate()
      running?.end(new SlowError(`no answer in ${ms} ms`))
    }, ms)
  }
  const start = (): Worker => {
    const started = new Worker(url, {
      name: 'evidence',
      resourceLimits: { maxOldGenerationSizeMb: evidenceThreadMegabytesMax },
    })
    const lose = (why: Error) => {
      if (worker !== started) return
      worker = null
      running?.end(why)
    }
    started.on('message', (answer: EvidenceAnswer) => {
      if (worker !== started) return
      if (answer === 'ready') limit(msMax)
      else if (running?.id === answer.id) running.end(answer.verified)
    })
    started.on('error', (error) => {
      log.error({ err: error }, 'the thread that verifies evidence failed')
      lose(error instanceof Error ? error : new Error('the thread failed'))
    })
    started.on('exit', (code) => lose(new Error(`the thread ended with code ${code}`)))
    // An idle thread keeps no process alive.
    started.unref()
    return started
  }
  return {
    isBusy: () => running !== null,
    run: async (job) => {
      const { promise, resolve, reject } = Promise.withResolvers<VerifiedEvidence>()
      const isStarting = worker === null
      worker ??= start()
      const id = ++lastId
      running = {
        id,
        end: (outcome) => {
          clearTimeout(timer)
          running = null
          if (outcome instanceof Error) reject(outcome)
          else resolve(outcome)
        },
      }
      limit(isStarting ? startMsMax : msMax)
      worker.postMessage({ id, job })
      return promise
    },
    close: async () => {
      const last = worker
      worker = null
      running?.end(new Error('the edge is stopping'))
      await last?.terminate()
    },
  }
}

/** A queue in which owners take turns: one with many entries delays another by one of them. */
function createTurns<T>() {
  const queues = new Map<string, T[]>()
  return {
    add: (owner: string, entry: T): void => {
      const entries = queues.get(owner)
      if (entries === undefined) queues.set(owner, [entry])
      else entries.push(entry)
    },
    take: (): T | undefined => {
      const first = queues.entries().next()
      if (first.done) return undefined
      const [owner, entries] = first.value
      const entry = entries.shift()
      queues.delete(owner)
      if (entries.length > 0) queues.set(owner, entries)
      return entry
    },
    drain: (): T[] => {
      const all = [...queues.values()].flat()
      queues.clear()
      return all
    },
  }
}
