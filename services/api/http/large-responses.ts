/**
 * Limits concurrent responses with many rows, per tenant and in total. A response holds its permit
 * until its last byte is sent, because it is in memory until then. Slow readers are cut off.
 */
import type { FastifyReply } from 'fastify'
import { largeResponseMs, largeResponses } from '#shared/core/base/limits/rest-api.ts'
import { unavailable } from '#shared/core/http/problem.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { createTenantSemaphore } from '#shared/io/process/tenant-semaphore.ts'

/**
 * Acquires a permit and releases it when the response is sent or the connection has ended.
 * @throws Problem unavailable when there is no permit in time
 */
type BeginLargeResponse = (tenantId: string, reply: FastifyReply) => Promise<void>

/** @param longestMs the longest time of a response, up to its last byte */
export function createLargeResponses(
  metrics: Metrics,
  longestMs = largeResponseMs,
): BeginLargeResponse {
  const semaphore = createTenantSemaphore(largeResponses)
  const responses = metrics.counter<'outcome'>(
    'di_api_large_answers_total',
    'Responses with many rows: begun, rejected at the limit, or cut off because of a slow reader',
    ['outcome'],
  )
  return async (tenantId, { raw }) => {
    const permit = await semaphore.acquire(tenantId)
    if (permit === null) {
      responses.inc({ outcome: 'refused' })
      throw unavailable('The tenant has too many large responses in flight.')
    }
    if (raw.destroyed) return permit.release()
    responses.inc({ outcome: 'begun' })
    const timer = setTimeout(() => {
      responses.inc({ outcome: 'cut_off' })
      raw.destroy()
    }, longestMs)
    raw.once('close', () => {
      clearTimeout(timer)
      permit.release()
    })
  }
}
