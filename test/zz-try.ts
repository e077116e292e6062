import { startClickhouse } from './support/clickhouse-server.ts'
import { migrateClickhouse } from './support/databases.ts'
import { openAnalystDoor } from '../deploy/local/analyst-door.ts'
const ch = await startClickhouse()
console.log(ch.url, ch.pid)
const t = Date.now()
await migrateClickhouse(ch.url + '/device_intelligence')
console.log('migrated', Date.now() - t)
const door = await openAnalystDoor({ port: 29872, clickhouseUrl: ch.url, isAnalyst: async () => true })
console.log(door.url)
setTimeout(async () => { await door.close(); await ch.stop(); process.exit() }, Number(process.argv[2] ?? 15) * 1000)
