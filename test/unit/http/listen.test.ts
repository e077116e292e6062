// The URL that a process names for the address it listens on.
import type { FastifyInstance } from 'fastify'
import { expect, it } from 'vitest'
import { listen } from '#shared/io/http/http-server.ts'
import { readConfig, variables } from '#shared/io/process/config.ts'

/** Stands for a server that has a port; a machine of the tests may be without IPv6. */
const withPort = (port: number) =>
  ({ listen: async () => '', server: { address: () => ({ port }) } }) as unknown as FastifyInstance

it.each([
  ['127.0.0.1:0', 'http://127.0.0.1:4711'],
  ['localhost:0', 'http://localhost:4711'],
  ['[::1]:0', 'http://[::1]:4711'],
  ['::1:0', 'http://[::1]:4711'],
  ['[::]:0', 'http://[::]:4711'],
])('%s is %s', async (text, url) => {
  const { API_LISTEN } = readConfig({ API_LISTEN: variables.API_LISTEN }, { API_LISTEN: text })
  const named = await listen(withPort(4711), API_LISTEN)
  expect(named).toBe(url)
  expect(new URL(named).port).toBe('4711')
})
