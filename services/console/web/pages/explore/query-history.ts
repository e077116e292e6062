/**
 * What the operator ran of a tenant, newest first. The audit log has every query before it runs, so
 * the history is kept on the server, is the same in every browser, and nobody else's is in it.
 */
import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { api, ok } from '../../api/client.ts'
import { useSignedIn } from '../../shell/operator.ts'

export type PastQuery = {
  id: number
  at: string
  sql: string
  parameters: Record<string, string>
}

/** Entries that are read; each has a query of 20,000 characters at most. */
const entriesRead = 50

export const historyKey = (tenant: string) => ['sql-history', tenant]

/** The latest queries, each once. */
export function useQueryHistory(tenant: string) {
  const { email } = useSignedIn().operator
  useEffect(() => forgetBrowserHistory(tenant), [tenant])
  return useQuery({
    queryKey: historyKey(tenant),
    queryFn: async () => {
      const { data } = await ok(
        api.GET('/admin/v1/tenants/{tenant_id}/audit', {
          params: {
            path: { tenant_id: tenant },
            query: { actor: email, action: 'sql.queried', limit: entriesRead },
          },
        }),
      )
      return toPastQueries(data)
    },
  })
}

type Entry = { audit_id: number; at: string; after?: unknown }

function toPastQueries(entries: readonly Entry[]): PastQuery[] {
  const bySql = new Map<string, PastQuery>()
  for (const { audit_id: id, at, after } of entries) {
    const { sql, parameters } = after as Pick<PastQuery, 'sql' | 'parameters'>
    if (!bySql.has(sql)) bySql.set(sql, { id, at, sql, parameters })
  }
  return [...bySql.values()]
}

/** Former releases kept the history in the browser too; every query of it is in the audit log. */
function forgetBrowserHistory(tenant: string): void {
  try {
    localStorage.removeItem(`di.sql.${tenant}`)
  } catch {
    // Storage that is switched off has none.
  }
}
