/**
 * The network data of a process: the files of a folder, in memory. A file that was replaced is read
 * within a minute, whole or not at all; a broken one leaves the one before it in use. Nothing is
 * downloaded: the folder is the operator's.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import {
  networkDatabasesMax,
  networkFileBytesMax,
  networkLookMs,
} from '#shared/core/base/limits/lists.ts'
import { type NetworkSources, toMeasuredKinds } from '#shared/core/network/connection.ts'
import type { NetworkFileStatus } from '#shared/core/network/network-status.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'
import { type FileContents, type FileUse, readNetworkFile, toFileUse } from './read-file.ts'

type NetworkDataDeps = {
  /** Null: there is no network data. */
  folder: string | null
  /** Whether files are only checked: their contents are forgotten once they are described. */
  isCheckOnly?: boolean
  /** Whether documentation addresses are looked up as well, to try things out. */
  measuresDocumentation?: boolean
  log: Log
  metrics: Metrics
  wallMs: () => number
}

export type NetworkData = {
  /** What addresses are looked up in; null without a folder or without a file that is in use. */
  sources: () => NetworkSources | null
  /** Every file of the folder that is read, by name; null without a folder. */
  status: () => NetworkFileStatus[] | null
  /** For `/readyz`: what is broken, null when nothing is. */
  warning: () => string | null
  /** Looks at the folder once and reads what changed. */
  look: () => Promise<void>
  /** Looks again and again. */
  start: () => Poller
}

type File = {
  use: FileUse
  /** What the file system said of it at the last look, and of what was read last. */
  seen: string
  read: string
  isGone: boolean
  fault: string | null
  inUse: UsedFile | null
}
type UsedFile = Omit<FileContents, 'table' | 'facts'> & {
  /** Null where files are only checked. */
  tables: Pick<FileContents, 'table' | 'facts'> | null
  bytes: number
  modifiedAtMs: number
  readAtMs: number
}
type Found = { stamp: string; bytes: number; modifiedAtMs: number; isFile: boolean }

/** Creates the network data of a process; it reads nothing yet. */
export function createNetworkData(deps: NetworkDataDeps): NetworkData {
  const { folder, log, metrics, wallMs } = deps
  const files = new Map<string, File>()
  let sources: NetworkSources | null = null
  let folderFault: string | null = null
  let isFirstLook = true
  const reads = showMetrics(metrics, files, wallMs)

  async function look(): Promise<void> {
    if (folder === null) return
    const names = await listNames(folder)
    folderFault = names === null ? 'the folder of network data cannot be read' : null
    if (names === null) return
    let isChanged = dropGone(files, names)
    for (const name of names) isChanged = (await lookAt(folder, name)) || isChanged
    isFirstLook = false
    if (isChanged) sources = toSources(files, deps.measuresDocumentation === true)
  }

  /** @returns whether what is in use changed */
  async function lookAt(folder: string, name: string): Promise<boolean> {
    const path = join(folder, name)
    const found = await findFile(path)
    if (found === null) return false
    const use = toFileUse(name)!
    const file = files.get(name) ?? {
      use,
      seen: '',
      read: '',
      isGone: false,
      fault: null,
      inUse: null,
    }
    files.set(name, file)
    file.isGone = false
    if (found.stamp === file.read) return false
    // A file that is still being written changes between two looks.
    const isSettled = isFirstLook || found.stamp === file.seen
    file.seen = found.stamp
    if (!isSettled) return false
    const before = faultBefore(files, name, found)
    if (before !== null) {
      refuse(name, file, before)
      return false
    }
    const answer = await readNetworkFile({ path, use }, found.bytes)
    if ((await findFile(path))?.stamp !== found.stamp) return false
    file.read = found.stamp
    if ('fault' in answer) {
      refuse(name, file, answer.fault)
      return false
    }
    const { table, facts, ...contents } = answer.contents
    const { bytes, modifiedAtMs } = found
    const tables = deps.isCheckOnly ? null : { table, facts }
    file.inUse = { ...contents, tables, bytes, modifiedAtMs, readAtMs: wallMs() }
    file.fault = null
    reads.inc({ outcome: 'loaded' })
    log.info({ file: name, networks: contents.networks }, 'network data is in use')
    return true
  }

  function refuse(name: string, file: File, fault: string): void {
    const isKnown = file.fault === fault && file.read !== file.seen
    file.fault = fault
    if (isKnown) return
    reads.inc({ outcome: 'refused' })
    const kept = file.inUse === null ? '' : '; the one before stays in use'
    log.warn({ file: name, fault }, `network data is not used${kept}`)
  }

  return {
    sources: () => sources,
    status: () => (folder === null ? null : toStatus(files)),
    warning: () => folderFault ?? toWarning(files),
    look,
    start: () =>
      startPolling(look, {
        log,
        everyMs: networkLookMs,
        failure: 'the folder of network data cannot be looked at',
      }),
  }
}

async function listNames(folder: string): Promise<string[] | null> {
  try {
    return (await readdir(folder)).filter((name) => toFileUse(name) !== null).sort()
  } catch {
    return null
  }
}

/** Through links, since a mounted folder may consist of them. */
async function findFile(path: string): Promise<Found | null> {
  try {
    const found = await stat(path)
    const { mtimeMs, size, ino, dev } = found
    const stamp = [mtimeMs, size, ino, dev].join(' ')
    return { stamp, bytes: size, modifiedAtMs: mtimeMs, isFile: found.isFile() }
  } catch {
    return null
  }
}

/** Files that two looks miss are no longer in use. @returns whether there are any */
function dropGone(files: Map<string, File>, names: readonly string[]): boolean {
  let isChanged = false
  for (const [name, file] of files) {
    if (names.includes(name)) continue
    if (file.isGone) isChanged = files.delete(name)
    file.isGone = true
  }
  return isChanged
}

/** What speaks against a file before it is read. */
function faultBefore(files: Map<string, File>, name: string, found: Found): string | null {
  const { bytes, isFile } = found
  if (!isFile) return 'it is no file'
  if (bytes > networkFileBytesMax) return `it has more than ${networkFileBytesMax / 2 ** 20} MiB`
  const databases = [...files].filter(([, { use }]) => use === 'database').map(([own]) => own)
  const isBeyond = databases.indexOf(name) >= networkDatabasesMax
  return isBeyond ? `the folder has more than ${networkDatabasesMax} databases` : null
}

function toSources(
  files: Map<string, File>,
  measuresDocumentation: boolean,
): NetworkSources | null {
  const all = [...files]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([, { use, inUse }]) => {
      const tables = inUse?.tables ?? null
      return tables === null ? [] : [{ use, ...tables }]
    })
  const databases = all.flatMap(({ table, facts }) => (facts === null ? [] : [{ table, facts }]))
  const lists = all.flatMap(({ use, table }) => (use === 'database' ? [] : [{ kind: use, table }]))
  if (all.length === 0) return null
  return {
    databases,
    lists,
    measuredKinds: toMeasuredKinds(databases, lists),
    measuresDocumentation,
  }
}

function toStatus(files: Map<string, File>): NetworkFileStatus[] {
  const toText = (ms: number) => new Date(ms).toISOString()
  return (
    [...files]
      // One that was not read yet is not known.
      .filter(([, { fault, inUse }]) => fault !== null || inUse !== null)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, { fault, inUse }]) => ({
        file: name,
        state: fault === null ? 'in_use' : inUse === null ? 'broken' : 'older_in_use',
        fault,
        gives: inUse?.gives ?? [],
        networks: inUse?.networks ?? null,
        bytes: inUse?.bytes ?? null,
        built_at: inUse === null ? null : toText(inUse.builtAtMs ?? inUse.modifiedAtMs),
        read_at: inUse === null ? null : toText(inUse.readAtMs),
      }))
  )
}

function toWarning(files: Map<string, File>): string | null {
  const broken = [...files].filter(([, { fault }]) => fault !== null)
  return broken.length === 0
    ? null
    : broken.map(([name, { fault }]) => `${name}: ${fault}`).join('; ')
}

/** @returns the counter of readings */
function showMetrics(metrics: Metrics, files: Map<string, File>, wallMs: () => number) {
  metrics.gauge(
    'di_network_data_age_seconds',
    'Age of a file of network data: since its vendor built it, or since a list was written',
    {
      labels: ['file'],
      collect() {
        this.reset()
        for (const [file, { inUse }] of files) {
          if (inUse === null) continue
          const builtAtMs = inUse.builtAtMs ?? inUse.modifiedAtMs
          this.set({ file }, Math.max(0, wallMs() - builtAtMs) / 1_000)
        }
      },
    },
  )
  metrics.gauge(
    'di_network_data_broken',
    '1 for a file of network data that is not used as it is now; the one before may be in use',
    {
      labels: ['file'],
      collect() {
        this.reset()
        for (const [file, { fault }] of files) this.set({ file }, fault === null ? 0 : 1)
      },
    },
  )
  return metrics.counter(
    'di_network_data_reads_total',
    'Files of network data that were read, by outcome: loaded or refused',
    ['outcome'],
  )
}
