/**
 * Gathers refused attempts, which may come by the thousand. For all of an interval it writes one
 * row of the audit log for each account that was tried, under the name of the account, one row for
 * attempts at no account, and one line of the log.
 */
import type { AuditedAction } from '#shared/core/audit/audited-actions.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'

const everyDefaultMs = 60_000
/** Accounts with a row of their own; those beyond share the row of no account. */
const accountsMax = 100
/** Addresses that are counted separately, at no account and at one account. */
const addressesMax = 10_000
const addressesOfAccountMax = 100
/** Addresses that a row names. */
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
  /** The action of the audit rows. */
  action: AuditedAction
  /** The line of the log: what was refused. */
  message: string
  everyMs?: number | undefined
}

type Tally = { attempts: number; addresses: Map<string, number> }

/** The actor of attempts at no account. */
const unknown = 'unknown'

export function createRefusalAudit(options: RefusalAuditOptions): RefusalAudit {
  const { postgres, log, action, message, everyMs = everyDefaultMs } = options
  let tallies = new Map<string, Tally>()
  let timer: NodeJS.Timeout | undefined
  const find = (account: string): [actor: string, tally: Tally] => {
    const actor = tallies.has(account) || tallies.size < accountsMax ? account : unknown
    const tally = tallies.get(actor) ?? { attempts: 0, addresses: new Map() }
    tallies.set(actor, tally)
    return [actor, tally]
  }
  let writing = Promise.resolve()
  const writePending = async (): Promise<void> => {
    clearTimeout(timer)
    timer = undefined
    const pending = [...tallies].map(([actor, { attempts, addresses }]) => ({
      actor,
      after: { attempts, addresses: addresses.size, most: toMost(addresses) },
    }))
    tallies = new Map()
    if (pending.length === 0) return
    log.warn(
      { refused: Object.fromEntries(pending.map(({ actor, after }) => [actor, after])) },
      message,
    )
    try {
      for (const row of pending) await insertAudit(postgres, { ...row, tenantId: null, action })
    } catch (error) {
      log.error({ err: error }, `the audit log has not all rows of this: ${message}`)
    }
  }
  // One after the other, so that a close also waits for what a timer began.
  const write = (): Promise<void> => {
    writing = writing.then(writePending)
    return writing
  }
  return {
    note: (address, account = unknown) => {
      const [actor, tally] = find(account)
      tally.attempts++
      const most = actor === unknown ? addressesMax : addressesOfAccountMax
      countUp(tally.addresses, address, most)
      timer ??= setTimeout(() => void write(), everyMs).unref()
    },
    close: write,
  }
}

function countUp(counts: Map<string, number>, key: string, most: number): void {
  const seen = counts.get(key)
  if (seen !== undefined || counts.size < most) counts.set(key, (seen ?? 0) + 1)
}

const toMost = (counts: Map<string, number>): Record<string, number> =>
  Object.fromEntries([...counts].sort(([, a], [, b]) => b - a).slice(0, namedMax))
