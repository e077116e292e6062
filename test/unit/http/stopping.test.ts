/** How a server answers while its process serves on for balancers to notice its stop. */
import { expect, it } from 'vitest'
import { createHttpServer } from '#shared/io/http/http-server.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'

it('every response ends its connection once the process stops, and none does before', async () => {
  let stopping = false
  const server = createHttpServer({
    log: createLog('test', 'silent'),
    metrics: createMetrics('api'),
    stopping: () => stopping,
  })
  const connectionOf = async (url: string) => (await server.inject(url)).headers.connection
  const urls = ['/healthz', '/nowhere']
  expect(await Promise.all(urls.map(connectionOf))).toEqual(['keep-alive', 'keep-alive'])
  stopping = true
  expect(await Promise.all(urls.map(connectionOf))).toEqual(['close', 'close'])
  await server.close()
})
