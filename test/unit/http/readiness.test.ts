/** What `/readyz` answers about the checks of a process. */
import { expect, it } from 'vitest'
import { createInternalServer } from '#shared/io/http/internal-server.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'

it('a check that the caller excludes is a warning; a stop cannot be excluded', async () => {
  let stopping = false
  const server = createInternalServer({
    log: createLog('test', 'silent'),
    metrics: createMetrics('test', { isThread: true }),
    readyChecks: { postgres: () => null, clickhouse: () => 'refuses connections' },
    warnings: { jobs: () => 'are late' },
    stopping: () => stopping,
  })
  const read = async (query: string) => {
    const answer = await server.inject(`/readyz${query}`)
    return answer.json<object>()
  }
  const notReady = {
    status: 'not_ready',
    missing: { clickhouse: 'refuses connections' },
    warnings: { jobs: 'are late' },
  }
  expect(await read('')).toEqual(notReady)
  expect(await read('?exclude=postgres&exclude=__proto__')).toEqual(notReady)
  const warnings = { jobs: 'are late', clickhouse: 'refuses connections' }
  expect(await read('?exclude=nats&exclude=clickhouse')).toEqual({ status: 'ready', warnings })
  stopping = true
  expect(await read('?exclude=clickhouse&exclude=process')).toEqual({
    status: 'not_ready',
    missing: { process: 'is stopping' },
    warnings,
  })
  await server.close()
})
