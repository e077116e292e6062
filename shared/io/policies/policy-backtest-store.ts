/**
 * The latest backtest of each policy of a tenant, in short: who reviews a draft or a proposal sees
 * what the service computed, and not what its author says.
 */

import { dayMs } from '#shared/core/base/instants.ts'
import { backtestsKeptDays } from '#shared/core/base/limits/policies.ts'
import type { BacktestSummary } from '#shared/core/policies/backtest-summary.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

type Key = { tenantId: string; policyHash: string }

export async function saveBacktest(
  db: Queryable,
  { tenantId, policyHash, summary }: Key & { summary: BacktestSummary },
): Promise<void> {
  await db.query(
    `insert into policy_backtests (tenant_id, policy_hash, summary) values ($1, $2, $3::jsonb)
     on conflict (tenant_id, policy_hash)
     do update set summary = excluded.summary, at = clock_timestamp()`,
    [tenantId, policyHash, JSON.stringify(summary)],
  )
}

/** @returns null when the policy was not backtested lately */
export async function findBacktest(
  db: Queryable,
  { tenantId, policyHash }: Key,
): Promise<(BacktestSummary & { at: string }) | null> {
  const { rows } = await db.query<{ at: Date; summary: BacktestSummary }>(
    'select at, summary from policy_backtests where tenant_id = $1 and policy_hash = $2',
    [tenantId, policyHash],
  )
  const row = rows[0]
  return row === undefined ? null : { ...row.summary, at: row.at.toISOString() }
}

/** @param most how many at most; fewer removed means that none is left */
export async function removeOldBacktests(
  db: Queryable,
  nowMs: number,
  most: number,
): Promise<number> {
  const { rowCount } = await db.query(
    `delete from policy_backtests where (tenant_id, policy_hash) in (
       select tenant_id, policy_hash from policy_backtests where at < $1
       order by at limit $2 for update skip locked)`,
    [new Date(nowMs - backtestsKeptDays * dayMs), most],
  )
  return rowCount
}
