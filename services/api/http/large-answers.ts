/**
 * Bounds the answers with many rows that are under way: a few of each tenant and a few in all. An
 * answer keeps its place until its last byte is sent, since it is in memory until then; a client
 * that reads too slowly is cut off.
 */
import type { FastifyReply } from 'fastify'
import { largeAnswerMs, largeAnswers } from '#shared/core/base/limits.ts'
import { unavailable } from '#shared/io/http/http-server.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { createTenantSemaphore } from '#shared/io/process/tenant-semaphore.ts'

/**
 * Waits for a place and frees it when the connection has taken the answer or is gone.
 * @throws Problem unavailable when there is none in time
 */
export type BeginLargeAnswer = (tenantId: string, reply: FastifyReply) => Promise<void>

/** @param longestMs how long an answer may take to its last byte; by default half a minute */
export function createLargeAnswers(metrics: Metrics, longestMs = largeAnswerMs): BeginLargeAnswer {
  const semaphore = createTenantSemaphore(largeAnswers)
  const answers = metrics.counter<'outcome'>(
    'di_api_large_answers_total',
    'Answers with many rows: begun, refused for lack of a place, or cut off as too slowly read',
    ['outcome'],
  )
  return async (tenantId, { raw }) => {
    const permit = await semaphore.acquire(tenantId)
    if (permit === null) {
      answers.inc({ outcome: 'refused' })
      throw unavailable('The tenant asks for more large answers at once than can be made.')
    }
    if (raw.destroyed) return permit.release()
    answers.inc({ outcome: 'begun' })
    const timer = setTimeout(() => {
      answers.inc({ outcome: 'cut_off' })
      raw.destroy()
    }, longestMs)
    raw.once('close', () => {
      clearTimeout(timer)
      permit.release()
    })
  }
}
