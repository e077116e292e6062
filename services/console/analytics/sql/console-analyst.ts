/**
 * The analyst as whom the console runs the queries of operators: one of each tenant, whose name is
 * reserved. Its password follows from MASTER_KEY and the day, so consoles agree on it, none stores
 * it, and it is new every day. A console makes the analyst when it needs it, and again when another
 * one has changed it.
 */
import { hash } from 'node:crypto'
import { reservedAnalyst, toAnalystUser } from '#shared/core/analytics/analyst-access.ts'
import { dayMs } from '#shared/core/base/instants.ts'
import { keepsUsers } from '#shared/io/analytics/analyst-access-store.ts'
import {
  type AnalystLogin,
  AnalystQueryError,
  authenticationFailed,
} from '#shared/io/analytics/analyst-query.ts'
import { saveAnalyst } from '#shared/io/analytics/analyst-store.ts'
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import type { Sealer } from '#shared/io/tenants/keys/console-keys.ts'
import {
  type AnalystDeps,
  createUser,
  noAnalystsPossible,
  requireOneNode,
} from '../manage-analysts.ts'

export type ConsoleAnalystDeps = AnalystDeps & {
  sealer: Pick<Sealer, 'proverOf'>
  wallMs: () => number
}

export type ConsoleAnalyst = {
  /** Runs something as the tenant's analyst. @throws Problem analysts_not_possible */
  signedIn: <T>(tenantId: string, run: (login: AnalystLogin) => Promise<T>) => Promise<T>
}

export function createConsoleAnalyst(deps: ConsoleAnalystDeps): ConsoleAnalyst {
  /** By tenant, the password that the analyst has as far as this console knows. */
  const made = new Map<string, string>()
  const toLogin = async (tenantId: string): Promise<AnalystLogin> => {
    const day = Math.floor(deps.wallMs() / dayMs)
    const password = deps.sealer.proverOf('console analyst').prove([tenantId, day], '')
    const { clickhouse, clickhouseUrl, database, url } = deps.analysts
    requireOneNode(clickhouse)
    const keptByClickhouse = await keepsUsers(clickhouse)
    if (!keptByClickhouse && url === null) throw noAnalystsPossible()
    if (made.get(tenantId) !== password) {
      await makeAnalyst(deps, { tenantId, password, keptByClickhouse })
      made.set(tenantId, password)
    }
    return {
      // ANALYSTS_URL of a server is where people reach it, which may be another network.
      url: keptByClickhouse ? new URL(clickhouseUrl).origin : url!,
      user: toAnalystUser(tenantId, reservedAnalyst),
      password,
      database: toAnalyticsDatabase(database),
    }
  }
  return {
    signedIn: async (tenantId, run) => {
      try {
        return await run(await toLogin(tenantId))
      } catch (error) {
        if (!isUnknown(error)) throw error
        made.delete(tenantId)
        return run(await toLogin(tenantId))
      }
    },
  }
}

const isUnknown = (error: unknown): boolean =>
  error instanceof AnalystQueryError && error.engineCode === authenticationFailed

async function makeAnalyst(
  deps: ConsoleAnalystDeps,
  {
    tenantId,
    password,
    keptByClickhouse,
  }: { tenantId: string; password: string; keptByClickhouse: boolean },
): Promise<void> {
  await saveAnalyst(deps.postgres, {
    tenantId,
    name: reservedAnalyst,
    passwordHash: keptByClickhouse ? null : hash('sha256', password, 'buffer'),
    createdBy: 'system',
  })
  if (keptByClickhouse) await createUser(deps, { tenantId, name: reservedAnalyst }, password)
}
