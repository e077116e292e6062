/**
 * The analyst as whom the console runs the queries of operators: one of each tenant, whose name is
 * reserved. Its password follows from MASTER_KEY and the day, so consoles agree on it, none stores
 * it, and it is new every day. A console makes the analyst when it needs it, and again when another
 * one has changed it.
 */
import { hash } from 'node:crypto'
import { reservedAnalyst, toAnalystUser } from '#shared/core/analytics/analyst-access.ts'
import { dayMs } from '#shared/core/base/instants.ts'
import {
  type AnalystLogin,
  AnalystQueryError,
  authenticationFailed,
} from '#shared/io/analytics/analyst-query.ts'
import { saveAnalyst } from '#shared/io/analytics/analyst-store.ts'
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import { type AnalystDeps, createUser, requireAnalysts } from '../manage-analysts.ts'

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
    const { clickhouseUrl, database, isEmbedded, url } = deps.analysts
    await requireAnalysts(deps)
    if (made.get(tenantId) !== password) {
      await makeAnalyst(deps, tenantId, password)
      made.set(tenantId, password)
    }
    return {
      // ANALYSTS_URL of a server is where people reach it, which may be another network.
      url: isEmbedded ? url! : new URL(clickhouseUrl).origin,
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
  tenantId: string,
  password: string,
): Promise<void> {
  const { isEmbedded } = deps.analysts
  await saveAnalyst(deps.postgres, {
    tenantId,
    name: reservedAnalyst,
    passwordHash: isEmbedded ? hash('sha256', password, 'buffer') : null,
    createdBy: 'system',
  })
  if (!isEmbedded) await createUser(deps, { tenantId, name: reservedAnalyst }, password)
}
