/** A process with network data that answers look-ups over HTTP, for `network.ts`. */
import { copyFile, readdir, rename } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

import { createNetworkData } from '#shared/io/network/network-data.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { signalsOf } from '../../support/network/signals-of.ts'
import type { NetworkChildAnswer } from './network.ts'

const folder = process.argv[2]!
const data = createNetworkData({
  folder,
  log: testLog,
  metrics: createMetrics('bench'),
  wallMs: Date.now,
})
const answer = (message: NetworkChildAnswer) => process.send!(message)
const settle = async () => {
  for (let round = 0; round < 4; round++) {
    globalThis.gc!()
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
}

const server = createServer((request, response) => {
  response.end(JSON.stringify(signalsOf(data.sources(), request.url!.slice(1))))
})
server.listen(0, '127.0.0.1', async () => {
  await settle()
  const bytesBefore = process.memoryUsage.rss()
  await data.look()
  await settle()
  const bytesAfter = process.memoryUsage.rss()
  const { port } = server.address() as AddressInfo
  answer({ port, bytesBefore, bytesAfter })
})

process.on('message', async () => {
  // Beside the answers: what replaces the files is another process.
  for (const name of await readdir(folder)) {
    await copyFile(join(folder, name), join(folder, `${name}.new`))
    await rename(join(folder, `${name}.new`), join(folder, name))
  }
  const startedAt = new Date().toISOString()
  const startMs = performance.now()
  await data.look()
  await data.look()
  const tookMs = performance.now() - startMs
  const reloaded = data.status()!.filter(({ read_at: readAt }) => readAt! >= startedAt).length
  answer({ reloaded, tookMs })
})
