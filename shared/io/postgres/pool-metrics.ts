/** Metrics of connection pools. All pools of a process share them, with the label `pool`. */
import type { Pool } from 'pg'
import type { Registry } from 'prom-client'
import type { Metrics } from '#shared/io/process/metrics.ts'

type Counts = Pick<Pool, 'idleCount' | 'totalCount' | 'waitingCount'>

const poolsOf = new WeakMap<Registry, Map<string, Counts>>()

/**
 * Shows the connections of a pool and the callers that wait for one.
 * @param name unique in the process, or the thread
 */
export function observePool(name: string, pool: Counts, metrics: Metrics): void {
  let pools = poolsOf.get(metrics.registry)
  if (pools === undefined) {
    pools = new Map()
    poolsOf.set(metrics.registry, pools)
    addGauges(metrics, pools)
  }
  pools.set(name, pool)
}

function addGauges(metrics: Metrics, pools: ReadonlyMap<string, Counts>): void {
  metrics.gauge('di_postgres_connections', 'Connections to Postgres, by pool and state', {
    labels: ['pool', 'state'],
    collect() {
      for (const [pool, { idleCount, totalCount }] of pools) {
        this.set({ pool, state: 'idle' }, idleCount)
        this.set({ pool, state: 'busy' }, totalCount - idleCount)
      }
    },
  })
  metrics.gauge('di_postgres_waiting', 'Callers waiting for a connection to Postgres, by pool', {
    labels: ['pool'],
    collect() {
      for (const [pool, { waitingCount }] of pools) this.set({ pool }, waitingCount)
    },
  })
}
