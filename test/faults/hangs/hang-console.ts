/**
 * A second console beside the one of a stack: one of both is stopped in the middle of each kind of
 * work, and the other one goes on with it. The first one goes on as well, later, and what it still
 * writes counts in the checks at the end of the drill.
 */
import { readFileSync } from 'node:fs'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { callAdmin } from '../../support/http/tenant-client.ts'
import { createServiceProcess } from '../../support/process/service-process.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'
import { print } from '../support/drill.ts'
import { watchLeases } from './hung-holder.ts'

type Work = {
  lease: string
  /** Makes it begin; without it, it begins by itself within a minute. */
  begin?: () => Promise<unknown>
  /** What the other console is asked for, again and again. */
  ask?: () => Promise<unknown>
}

/** @returns the broken guarantees */
export async function hangConsoles(
  running: TestStack,
  { secondsMax }: { secondsMax: number },
): Promise<string[]> {
  const { stack } = running
  const second = await createServiceProcess('console', readEnvironment(stack.pids.console))
  const postgres = createPostgres(stack.postgres, {
    role: 'test',
    log: createLog('test', 'silent'),
  })
  const clickhouse = createClickhouse(stack.clickhouse, { name: 'test' })
  const watch = await watchLeases(stack.postgres)
  const tenant = stack.demo.tenant_id
  const ask = (url: string, path: string, body: object) =>
    callAdmin<unknown>(url, stack.admin_token, {
      method: 'POST',
      path: `/tenants/${tenant}${path}`,
      body,
    })
  /** Its answer comes while it runs: no caller waits for it. */
  const backtest = async (url: string) => {
    void ask(url, '/policy/backtest', { preset: 'strict' }).catch(() => undefined)
  }
  const works: Work[] = [
    { lease: 'replication' },
    { lease: 'reconciliation' },
    {
      lease: 'retention',
      begin: () => postgres.query('update retention_rounds set due_at = clock_timestamp()'),
    },
    {
      lease: 'prevalence spikes',
      begin: () => clickhouse.command({ query: 'truncate table prevalence_checks' }),
    },
    { lease: 'hourly counts' },
    { lease: 'removals' },
    {
      lease: `erasure:${tenant}`,
      begin: () => ask(stack.console, '/erasures', { device_id: 'hung', wait: false }),
    },
    {
      lease: `backtest ${tenant}`,
      begin: () => backtest(stack.console),
      ask: () => backtest(second.url),
    },
  ]
  const broken: string[] = []
  try {
    await second.start()
    for (const { lease, begin, ask: askOther } of works) {
      const stopped = await watch.stopHolder(lease, begin)
      try {
        const asking = setInterval(() => void askOther?.(), 1_000)
        const seconds = await stopped.awaitTakeover().finally(() => clearInterval(asking))
        print(`${lease}: another console goes on after ${seconds.toFixed(1)} s`)
        if (seconds > secondsMax) broken.push(`${lease} waited ${seconds.toFixed(1)} s`)
      } finally {
        stopped.resume()
      }
    }
    await until('nothing is under way', async () => {
      const { rows } = await postgres.query<{ n: number }>(
        `select (select count(*) from leases where name like 'erasure:%' or name like 'backtest %')
           + (select count(*) from erasures where ended_at is null) as n`,
      )
      return rows[0]!.n === 0
    })
    return broken
  } finally {
    await watch.close()
    await Promise.all([postgres.close(), clickhouse.close(), second.terminate()])
  }
}

/** The variables that a process of the stack was started with. */
function readEnvironment(pid: number): Record<string, string> {
  const entries = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').filter(Boolean)
  const all = entries.map((entry): [string, string] => {
    const at = entry.indexOf('=')
    return [entry.slice(0, at), entry.slice(at + 1)]
  })
  // The second one is a child of this process.
  return Object.fromEntries(all.filter(([name]) => name !== 'PARENT_PID'))
}
