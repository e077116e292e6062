/**
 * Counts requests that are signed with a secret which a rotation has replaced, by tenant and SDK
 * version, in a metric and in reports for the tenant's operator. It stores nothing of the requests.
 * The sender may be a thief, so memory is bounded per tenant and in total.
 */
import { createBoundedLabel } from '#shared/core/base/bounded-labels.ts'
import { jsonDepthMax, metaCharactersMax } from '#shared/core/base/limits/telemetry.ts'
import { staleSecretVersionsMax } from '#shared/core/base/limits/tenants.ts'
import { scanBody } from '#shared/core/telemetry/body-scan.ts'
import type { StaleSecretReport } from '#shared/core/tenants/stale-secret-reports.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'

export type StaleSecretRequests = {
  /** Counts one request, some milliseconds later. @param body signed with the retired secret */
  note: (tenantId: string, last4: string, body: Buffer) => void
  /** Returns up to `max` tenants whose counts changed since the last call. */
  drainChanged: (max: number) => { tenantId: string; report: StaleSecretReport }[]
  /** Marks a tenant that could not be reported as changed again. */
  requeue: (tenantId: string) => void
}

/** The label of a version that cannot be read. */
const unreadable = 'unreadable'

type Uses = {
  last4: string
  toLabel: (version: string) => string
  versions: Map<string, { requests: number; lastMs: number }>
}

/**
 * How long a body waits until it is parsed. A parse right after the response would delay the next
 * response measurably and so reveal which secret was used.
 */
const parseAfterMs = 20

/** Bodies that may wait: 16 MiB at most. */
const waitingBodiesMax = 256

/** @param nowMs the monotonic clock */
export function createStaleSecretRequests(
  metrics: Metrics,
  nowMs: () => number,
): StaleSecretRequests {
  const counter = metrics.counter(
    'di_ingest_stale_secret_requests_total',
    'Refused submissions signed with the secret that the last rotation replaced',
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
      else timer ??= setTimeout(count, parseAfterMs)
    },
    drainChanged: (max) => {
      count()
      const reports: { tenantId: string; report: StaleSecretReport }[] = []
      for (const tenantId of changed) {
        if (reports.length === max) break
        changed.delete(tenantId)
        reports.push({ tenantId, report: toReport(uses.get(tenantId)!, nowMs()) })
      }
      return reports
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

/** Reads the SDK version of an unverified body: within bounds, printable, or `unreadable`. */
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
