/** Reading a KV bucket while others write to it, on a real nats-server. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readHistory } from '#shared/io/kv-history.ts'
import { connectNats, type Nats } from '#shared/io/nats.ts'
import { testLog } from '../support/console-rig.ts'
import { startNats } from '../support/nats-server.ts'

let server: Awaited<ReturnType<typeof startNats>>
let nats: Nats
beforeAll(async () => {
  server = await startNats()
  nats = await connectNats(server.url, 'test', testLog)
})
afterAll(async () => {
  await nats?.close()
  await server?.stop()
})

it('reads entries and nothing else, whatever is written meanwhile', async () => {
  const bucket = await nats.jetstream.views.kv('history_test', { history: 1 })
  await bucket.put('a.first', 'there from the beginning')
  let reading = true
  const write = async () => {
    for (let n = 0; reading; n++) await bucket.put(`a.${n % 3}`, `${n}`)
  }
  const writing = write()
  try {
    for (let round = 0; round < 300; round++) {
      const keys: string[] = []
      for await (const entry of readHistory(bucket, 'a.*')) keys.push(entry.key)
      expect(keys).toContain('a.first')
      expect(keys.every((key) => key.startsWith('a.'))).toBe(true)
    }
  } finally {
    reading = false
    await writing
  }
})
