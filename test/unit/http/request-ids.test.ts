/** A failed request is found in the log by the id that its answer has. */
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { createHttpServer } from '#shared/io/http/http-server.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'

it('the log lines of a failed request have the request id of the answer', async () => {
  const lines: Record<string, unknown>[] = []
  const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) })
  const server = createHttpServer({ log, metrics: createMetrics('api') })
  server.get('/defect', () => {
    throw new TypeError('a defect')
  })
  const answer = await server.inject('/defect')
  expect(answer.statusCode).toBe(500)
  const { request_id: requestId } = answer.json<{ request_id: string }>()
  expect(lines.map(({ msg, request_id }) => [msg, request_id])).toEqual([
    ['a request failed', requestId],
    ['a request was refused', requestId],
  ])
  await server.close()
})
