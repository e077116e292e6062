/**
 * Gathers refused attempts, which may come by the thousand, and writes one row of the audit log and
 * one line of the log for all of an interval.
 */
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'

const everyDefaultMs = 60_000
/** Addresses that are counted separately. */
const addressesMax = 10_000
/** Addresses and accounts that a row names. */
const namedMax = 10

export type RefusalAudit = {
  /** @param account an existing account that the attempt was for */
  note: (address: string, account?: string) => void
  /** Writes the pending counts. */
  close: () => Promise<void>
}

export type RefusalAuditOptions = {
  postgres: Queryable
  log: Log
  /** The action of the audit row. */
  action: string
  /** The line of the log: what was refused. */
  message: string
  everyMs?: number | undefined
}

export function createRefusalAudit(options: RefusalAuditOptions): RefusalAudit {
  const { postgres, log, action, message, everyMs = everyDefaultMs } = options
  let attempts = 0
  let addresses = new Map<string, number>()
  let accounts = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  const write = async (): Promise<void> => {
    clearTimeout(timer)
    timer = undefined
    if (attempts === 0) return
    const after = {
      attempts,
      addresses: addresses.size,
      most: toMost(addresses),
      ...(accounts.size === 0 ? {} : { accounts: toMost(accounts) }),
    }
    attempts = 0
    addresses = new Map()
    accounts = new Map()
    log.warn(after, message)
    try {
      await insertAudit(postgres, { actor: 'unknown', tenantId: null, action, after })
    } catch (error) {
      log.error({ err: error }, `the audit log has no row of this: ${message}`)
    }
  }
  return {
    note: (address, account) => {
      attempts++
      countUp(addresses, address)
      if (account !== undefined) countUp(accounts, account)
      timer ??= setTimeout(() => void write(), everyMs).unref()
    },
    close: write,
  }
}

function countUp(counts: Map<string, number>, key: string): void {
  const seen = counts.get(key)
  if (seen !== undefined || counts.size < addressesMax) counts.set(key, (seen ?? 0) + 1)
}

const toMost = (counts: Map<string, number>): Record<string, number> =>
  Object.fromEntries([...counts].sort(([, a], [, b]) => b - a).slice(0, namedMax))
