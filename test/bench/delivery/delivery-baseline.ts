/**
 * The baseline of the delivery benchmark, in its own process: a bare undici loop that posts the
 * same bytes, with headers signed beforehand, over a given number of connections.
 */
import { Pool } from 'undici'

type Order = {
  origin: string
  path: string
  requests: { body: string; headers: Record<string, string> }[]
  count: number
  connections: number
}

process.on('message', async (order: Order) => {
  const { origin, path, count, connections } = order
  const pool = new Pool(origin, { connections, pipelining: 1 })
  const requests = order.requests.map(({ body, headers }) => ({ body: Buffer.from(body), headers }))
  let next = 0
  const post = async () => {
    while (next < count) {
      const { body, headers } = requests[next++ % requests.length]!
      const answer = await pool.request({ path, method: 'POST', body, headers })
      await answer.body.dump()
      if (answer.statusCode !== 200) throw new Error(`answered ${answer.statusCode}`)
    }
  }
  const before = process.cpuUsage()
  await Promise.all(Array.from({ length: connections }, post))
  const { user, system } = process.cpuUsage(before)
  await pool.close()
  process.send!({ cpuUs: user + system })
})
process.on('disconnect', () => process.exit(0))
process.send!({ ready: true })
