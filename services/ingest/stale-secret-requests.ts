/**
 * Who still signs with a secret that a rotation has replaced: counted by tenant and SDK version, in
 * a metric and in reports that reach the tenant's operator, so that a rotation that hurts is seen.
 * Of the requests themselves nothing is kept. Whoever signs so was a client once, and may be a
 * thief now: how much it can make us remember is bounded, per tenant and in all.
 */
import { createBoundedLabel } from '#shared/core/base/bounded-labels.ts'
import { jsonDepthMax, metaCharactersMax } from '#shared/core/base/limits/telemetry.ts'
import { staleSecretVersionsMax } from '#shared/core/base/limits/tenants.ts'
import { scanBody } from '#shared/core/telemetry/body-scan.ts'
import type { StaleSecretReport } from '#shared/core/tenants/stale-secret-reports.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'

export type StaleSecretRequests = {
  /**
   * Counts one request, a moment later. `body` was signed with the tenant's retired secret, as is
   * proven.
   */
  note: (tenantId: string, last4: string, body: Buffer) => void
  /** Takes up to `max` tenants whose counts have changed since they were taken last. */
  drainChanged: (max: number) => { tenantId: string; report: StaleSecretReport }[]
  /** Gives a tenant back that was taken and could not be reported. */
  requeue: (tenantId: string) => void
}

/** Stands for a version that cannot be read. */
const unreadable = 'unreadable'

type Uses = {
  last4: string
  toLabel: (version: string) => string
  versions: Map<string, { requests: number; lastMs: number }>
}

/**
 * How long a body waits to be looked at, so that neither the time of its own answer nor that of the
 * next tells it from another 401: right after the answer it was 14 us, which shows on one core.
 */
const lookAfterMs = 20

/** Bodies that may wait: 16 MiB at their largest. */
const waitingBodiesMax = 256

/** @param nowMs the monotonic clock */
export function createStaleSecretRequests(
  metrics: Metrics,
  nowMs: () => number,
): StaleSecretRequests {
  const counter = metrics.counter(
    'di_ingest_stale_secret_requests_total',
    'Submissions refused that were signed with the secret the last rotation replaced',
    ['tenant', 'sdk_version'],
  )
  const toMetricLabel = createBoundedLabel()
  const uses = new Map<string, Uses>()
  const changed = new Set<string>()
  let waiting: { tenantId: string; last4: string; body: Buffer; atMs: number }[] = []
  let timer: NodeJS.Timeout | undefined
  const count = () => {
    clearTimeout(timer)
    timer = undefined
    const noted = waiting
    waiting = []
    for (const { tenantId, last4, body, atMs } of noted) {
      const version = readSdkVersion(body)
      counter.inc({ tenant: tenantId, sdk_version: toMetricLabel(version) })
      let use = uses.get(tenantId)
      if (use?.last4 !== last4) {
        use = { last4, toLabel: createBoundedLabel(staleSecretVersionsMax), versions: new Map() }
        uses.set(tenantId, use)
      }
      const label = use.toLabel(version)
      const requests = (use.versions.get(label)?.requests ?? 0) + 1
      use.versions.set(label, { requests, lastMs: atMs })
      changed.add(tenantId)
    }
  }
  return {
    note: (tenantId, last4, body) => {
      waiting.push({ tenantId, last4, body, atMs: nowMs() })
      if (waiting.length >= waitingBodiesMax) count()
      else timer ??= setTimeout(count, lookAfterMs)
    },
    drainChanged: (max) => {
      count()
      const taken: { tenantId: string; report: StaleSecretReport }[] = []
      for (const tenantId of changed) {
        if (taken.length === max) break
        changed.delete(tenantId)
        taken.push({ tenantId, report: toReport(uses.get(tenantId)!, nowMs()) })
      }
      return taken
    },
    requeue: (tenantId) => changed.add(tenantId),
  }
}

function toReport({ last4, versions }: Uses, nowMs: number): StaleSecretReport {
  const list = [...versions].map(([version, { requests, lastMs }]) => ({
    sdk_version: version,
    requests,
    age_ms: Math.max(0, Math.round(nowMs - lastMs)),
  }))
  return { last4, versions: list }
}

/** The one thing of the body that is looked at, and nothing of it is trusted. */
function readSdkVersion(body: Buffer): string {
  if (scanBody(body).depth > jsonDepthMax) return unreadable
  try {
    const { sdk_meta: meta } = JSON.parse(body.toString('utf8')) as {
      sdk_meta?: { sdk_version?: unknown }
    }
    const version = meta?.sdk_version
    const readable = typeof version === 'string' && /^[\x20-\x7e]+$/.test(version)
    return readable && version.length <= metaCharactersMax ? version : unreadable
  } catch {
    return unreadable
  }
}
