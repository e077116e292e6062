/**
 * Counts the events that an erasure keeps and that hold the erased id all the same: they are about
 * other devices or users, and name it in a free field of their body.
 */
import { type Clickhouse, isTimeout } from '#shared/io/clickhouse/clickhouse.ts'
import type { ErasureSubject } from './erasure-subject.ts'

/** Every body of the tenant is read: so much is enough for some ten million of 2 KB each. */
const readMaxSeconds = 20

export type CountMentions = (subject: ErasureSubject) => Promise<number | null>

/**
 * @returns a function to the events of the tenant whose body holds the id as JSON usually writes
 *   it; null when there are too many bodies to read
 */
export function createCountMentions(clickhouse: Clickhouse): CountMentions {
  return async ({ tenantId, kind, id }) => {
    const own =
      kind === 'device'
        ? 'device_id = {id:String}'
        : '(user_id = {id:String} or account_id = {id:String})'
    try {
      const result = await clickhouse.query({
        query: `select uniqExact(event_id) from telemetry
          where tenant_id = {tenant:String} and not ${own} and position(body, {text:String}) > 0`,
        query_params: { tenant: tenantId, id, text: JSON.stringify(id).slice(1, -1) },
        use_multipart_params_auto: true,
        clickhouse_settings: { max_execution_time: readMaxSeconds },
        format: 'JSONCompactEachRow',
      })
      const [row] = await result.json<[number | string]>()
      return Number(row![0])
    } catch (error) {
      if (isTimeout(error)) return null
      throw error
    }
  }
}
