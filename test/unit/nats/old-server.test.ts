// A nats-server that is too old for this release: readiness names it, and the migration refuses it.
import { type AddressInfo, createServer } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { openNats } from '#shared/io/nats/connection.ts'
import { createLog } from '#shared/io/process/log.ts'
import { migrateStreams } from '../../../services/migrate/migrate-streams.ts'

const log = createLog('test', 'silent')

/** Greets as a nats-server of this version does, and answers pings. @returns its URL */
async function startDouble(version: string): Promise<string> {
  const server = createServer((socket) => {
    const info = { server_id: 'double', version, proto: 1, headers: true, max_payload: 1_048_576 }
    socket.write(`INFO ${JSON.stringify(info)}\r\n`)
    socket.on('data', (bytes) => {
      for (const _ of String(bytes).matchAll(/^PING\r$/gm)) socket.write('PONG\r\n')
    })
    socket.on('error', () => undefined)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `nats://127.0.0.1:${(server.address() as AddressInfo).port}`
}

it.each([
  ['2.9.10', undefined, 'has version 2.9.10; 2.10.23 or newer is needed'],
  ['2.13.1', 3, 'has version 2.13.1; NATS_REPLICAS=3 needs 2.12.15 or newer, but not 2.13'],
])('%s with NATS_REPLICAS=%s', async (version, replicas, fault) => {
  const settings = { url: await startDouble(version), replicas }
  const link = openNats(settings, 'test', log)
  onTestFinished(link.close)
  await link.opened
  expect(link.fault()).toBe(fault)
  const migration = migrateStreams(settings, {
    log,
    limitMs: 5_000,
    hadStreams: false,
    mayBeNew: false,
  })
  await expect(migration).rejects.toThrow(`NATS ${fault}`)
})

it('is fit when it is new enough', async () => {
  const link = openNats({ url: await startDouble('2.13.1') }, 'test', log)
  onTestFinished(link.close)
  await link.opened
  expect(link.fault()).toBeNull()
})
