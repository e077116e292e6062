// The ports of the stack: fixed ones of the services, and those of the embedded servers, which are
// those of the last start where they are free.

import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { toClickhouseBackup } from '#shared/io/backup/backup-folder.ts'
import type { ShardPorts } from '../servers.ts'
import {
  type LocalSettings,
  listenEnv,
  SERVER_NAMES,
  SERVICE_NAMES,
  type ServerName,
  StartError,
} from '../settings.ts'
import { readJson, writeJson } from '../state-files.ts'
import { choosePort, explainOutgoing, isPortFree } from './ports.ts'

/** @throws StartError naming every port of a service that is taken */
export async function requireFreePorts(settings: LocalSettings): Promise<void> {
  const taken: string[] = []
  const ports: number[] = []
  for (const name of SERVICE_NAMES) {
    for (const address of Object.values(listenEnv(settings, name))) {
      const port = Number(address?.split(':')[1])
      if (await isPortFree(port)) continue
      taken.push(`${port} (${name})`)
      ports.push(port)
    }
  }
  if (taken.length === 0) return
  throw new StartError(
    `in use by another program: port ${taken.join(', ')}. ` +
      'Set PORT_BASE to n where n to n+4 and n+10 to n+12 are free, for example PORT_BASE=18080. ' +
      explainOutgoing(ports),
  )
}

export async function choosePorts(dataDir: string): Promise<Record<ServerName, number>> {
  const file = join(dataDir, 'ports.json')
  const last = readJson<Partial<Record<ServerName, number>>>(file) ?? {}
  const ports = {} as Record<ServerName, number>
  for (const name of SERVER_NAMES) {
    const taken = new Set(Object.values(ports))
    ports[name] = await choosePort({ preferred: last[name], taken })
  }
  writeJson(file, { ...last, ...ports })
  return ports
}

/**
 * The ports of several engines; none for one. The number stays that of the data: a row lies where
 * its key and the number of shards determine.
 */
export async function chooseShardPorts(
  settings: LocalSettings,
  first: number,
): Promise<ShardPorts[]> {
  const { dataDir, external } = settings
  if (external.clickhouse !== undefined) return []
  const file = join(dataDir, 'ports.json')
  const { shards: last, ...others } = readJson<{ shards?: ShardPorts[] }>(file) ?? {}
  const folders = readdirSync(dataDir).filter((name) => /^clickhouse-\d+$/.test(name))
  const present = 1 + folders.length
  const wanted = settings.shards ?? present
  const data = [join(dataDir, 'clickhouse', 'metadata'), toClickhouseBackup(dataDir, 'restore')]
  if (wanted !== present && data.some(existsSync)) {
    throw new StartError(
      `${dataDir} has its data on ${present} ClickHouse engines, and rows never move to others: ` +
        `start with --shards ${present}, or with another DATA_DIR.`,
    )
  }
  if (wanted === 1) return []
  const taken = new Set([...Object.values(others as Record<string, number>), first])
  const choose = async (preferred: number | undefined) => {
    const port = await choosePort({ preferred, taken })
    taken.add(port)
    return port
  }
  const shards: ShardPorts[] = []
  for (let at = 0; at < wanted; at++) {
    const http = at === 0 ? first : await choose(last?.[at]?.http)
    shards.push({ http, native: await choose(last?.[at]?.native) })
  }
  writeJson(file, { ...others, shards })
  return shards
}
