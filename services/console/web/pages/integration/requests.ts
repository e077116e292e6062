/** The request log as the pages hold it: rows with a key each. */
import type { AnswerOf } from '../../api/client.ts'

export type Requests = AnswerOf<'/admin/v1/tenants/{tenant_id}/requests', 'get'>
export type RequestRow = Requests['data'][number] & { key: string }

/** The rows, whose keys stay as newer ones arrive. Clients choose request ids: one can repeat. */
export function toRows({ data }: Requests): RequestRow[] {
  const seen = new Map<string, number>()
  return data
    .toReversed()
    .map((row) => {
      const id = `${row.edge_id}.${Date.parse(row.at)}.${row.request_id}`
      const times = seen.get(id) ?? 0
      seen.set(id, times + 1)
      return { ...row, key: times === 0 ? id : `${id}.${times}` }
    })
    .toReversed()
}
