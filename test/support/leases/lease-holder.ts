// A process that takes the lease `job` and makes a write under it for each line of its input. It
// prints the outcome of each write.
import { once } from 'node:events'
import { withLease } from '#shared/io/leases/leases.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'

const [url = '', leaseMs = ''] = process.argv.slice(2)
const postgres = createPostgres(url, { role: 'holder', log: createLog('test', 'silent') })
const leases = { renewals: postgres, work: postgres, leaseMs: Number(leaseMs) }
const print = (text: string) => process.stdout.write(`${text}\n`)

await withLease(leases, 'job', async (lease) => {
  const fenced = lease.fence({
    query: async () => Promise.reject(new Error('not read')),
    insert: async () => ({ executed: true, query_id: '', response_headers: {} }),
    command: async () => ({ query_id: '', response_headers: {} }),
    exec: async () => Promise.reject(new Error('not run')),
    close: async () => undefined,
    shards: [],
  })
  const writes: Record<string, () => Promise<unknown>> = {
    transaction: () =>
      lease.transaction((tx) => tx.query(`insert into written (by) values ('the first')`)),
    insert: () => fenced.insert({ table: 'any', values: [] }),
    command: () => fenced.command({ query: 'any' }),
    check: lease.check,
  }
  const write = async () => {
    for (const [name, work] of Object.entries(writes)) {
      const outcome = await work().then(
        () => 'done',
        () => 'refused',
      )
      print(`${name} ${outcome}`)
    }
  }
  await write()
  print('held')
  await once(process.stdin, 'data')
  await write()
  print(lease.signal.aborted ? 'lost' : 'kept')
})
process.exit()
