/** The metrics of an edge's copy of the tenant directory. */
import type { Log } from '#shared/io/process/log.ts'
import { type Metrics, startAtZero } from '#shared/io/process/metrics.ts'
import type { EdgeLease } from './edge-lease.ts'
import type { TenantCopy } from './tenant-copy.ts'

/** Why an edge begins to read the directory anew. */
export type ReloadReason = 'stalled' | 'reconnected' | 'lost'

const faultReasons = [
  'unproven_entry',
  'unproven_policy',
  'unproven_lists',
  'older_epoch',
  'unsealable_verdict_key',
  'unreadable_verdict_key',
] as const

/** Creates the counters, and functions that count what happens to the copy. */
export function countDirectory({ metrics, log }: { metrics: Metrics; log: Log }) {
  const faults = metrics.counter('di_directory_faults_total', 'Entries that cannot be used', [
    'reason',
  ])
  startAtZero(
    faults,
    faultReasons.map((reason) => ({ reason })),
  )
  const reloads = metrics.counter('di_directory_reloads_total', 'Readings begun anew', ['reason'])
  const announcements = metrics.counter(
    'di_directory_announcements_total',
    'Lease renewals tried',
    ['outcome'],
  )
  return {
    onFault: (reason: string, about: string) => {
      faults.inc({ reason })
      log.error({ reason, about }, 'an entry of the tenant directory cannot be used')
    },
    onReload: (reason: ReloadReason) => reloads.inc({ reason }),
    onAnnounced: (outcome: string) => announcements.inc({ outcome }),
  }
}

/** @param observed.active the snapshot that is in use at the moment */
export function observeDirectory(observed: {
  metrics: Metrics
  lease: EdgeLease
  active: () => TenantCopy
}): void {
  const { metrics, lease, active } = observed
  metrics.gauge('di_lease_valid', 'Whether this edge holds a credential lease', {
    collect() {
      this.set(lease.valid() ? 1 : 0)
    },
  })
  metrics.gauge('di_directory_synced', 'Whether the active snapshot has every tenant', {
    collect() {
      this.set(active().synced() ? 1 : 0)
    },
  })
  metrics.gauge('di_directory_revision', 'Newest revision that the active snapshot reflects', {
    collect() {
      this.set(lease.servedRevision())
    },
  })
  metrics.gauge('di_directory_policies', 'Policy documents of the active snapshot, by state', {
    labels: ['state'],
    collect() {
      const { documents, compiled } = active().countPolicies()
      this.set({ state: 'compiled' }, compiled)
      this.set({ state: 'unused' }, Math.max(0, documents - compiled))
    },
  })
  metrics.gauge('di_directory_list_entries', 'Entries of allow and deny lists of all tenants', {
    collect() {
      this.set(active().countListEntries())
    },
  })
  metrics.gauge('di_directory_tenants', 'Tenants of the active snapshot, by state', {
    labels: ['state'],
    collect() {
      const counts = new Map([
        ['active', 0],
        ['suspended', 0],
      ])
      for (const tenant of active().tenants.values()) {
        const label = tenant.fault ?? tenant.status
        counts.set(label, (counts.get(label) ?? 0) + 1)
      }
      this.reset()
      for (const [label, count] of counts) this.set({ state: label }, count)
    },
  })
}
