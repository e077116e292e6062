/**
 * The content of a disk after a power cut, from the system calls of the process that wrote it:
 * every file as it was when its last sync began. A file that was never synced is missing; a new
 * name exists once its file was synced; a removed name is gone.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { readStrings, readTarget, type SystemCall } from './system-calls.ts'

export type DurableStore = {
  apply: (call: SystemCall) => void
  /** Writes the content after the cut into a folder. @returns what the cut removed */
  restore: (dir: string) => { files: number; bytes: number; lostFiles: number; lostBytes: number }
  syncs: () => number
}

type Change =
  | { kind: 'write'; at: number; bytes: Buffer; ended: number }
  | { kind: 'truncate'; at: number; ended: number }

type File = {
  /** As of the last sync; null when there was none. */
  durable: Buffer | null
  /** The used part of `durable`, which has spare capacity. */
  durableBytes: number
  /** Since the last sync. */
  changes: Change[]
  /** The current size, as the process sees it. */
  bytes: number
}

type Descriptor = { path: string; file: File; append: boolean; at: number }

/** @param storeDir its content at the start of the trace counts as synced */
export function createDurableStore(storeDir: string): DurableStore {
  const names = new Map<string, File>()
  const durableNames = new Map<string, File>()
  const open = new Map<number, Descriptor>()
  let syncs = 0
  for (const path of listFiles(storeDir)) {
    const durable = readFileSync(path)
    const { length } = durable
    const file = { durable, durableBytes: length, changes: [], bytes: length }
    names.set(path, file)
    durableNames.set(path, file)
  }
  const inStore = (path: string) => path.startsWith(`${storeDir}/`)
  const create = (path: string) => {
    const file: File = { durable: null, durableBytes: 0, changes: [], bytes: 0 }
    names.set(path, file)
    return file
  }
  const find = (call: SystemCall): Descriptor | null => {
    const { fd, target } = readTarget(call.args) ?? {}
    if (fd === undefined || target === undefined || !inStore(target)) return null
    const known = open.get(fd)
    if (known !== undefined) return known
    // Opened before the trace: writes without an offset are appended.
    const file = names.get(target) ?? create(target)
    const descriptor = { path: target, file, append: true, at: 0 }
    open.set(fd, descriptor)
    return descriptor
  }
  const opened = ({ args, returned, ended }: SystemCall) => {
    const path = toPaths(args)[0]
    const { fd } = readTarget(returned.trim()) ?? {}
    if (path === undefined || fd === undefined || !inStore(path)) return
    const present = names.get(path)
    if (present === undefined && !args.includes('O_CREAT')) return
    const file = present ?? create(path)
    if (args.includes('O_TRUNC')) change(file, { kind: 'truncate', at: 0, ended })
    open.set(fd, { path, file, append: args.includes('O_APPEND'), at: 0 })
  }
  const written = (call: SystemCall) => {
    const descriptor = find(call)
    if (descriptor === null) return
    const bytes = Buffer.from(readStrings(call.args).join(''), 'latin1').subarray(0, call.result)
    const placed = call.name.startsWith('pwrite')
    const { file, append } = descriptor
    const at = placed ? Number(/, (\d+)$/.exec(call.args)![1]) : append ? file.bytes : descriptor.at
    change(file, { kind: 'write', at, bytes, ended: call.ended })
    if (!placed) descriptor.at = at + bytes.length
  }
  const synced = (call: SystemCall) => {
    const descriptor = find(call)
    if (descriptor === null) return
    syncs++
    const { file, path } = descriptor
    file.durable ??= Buffer.alloc(0)
    // Writes during the sync may or may not be on the disk.
    const [sure, open] = split(file.changes, (one) => one.ended < call.begun)
    for (const one of sure) applyTo(file, one)
    file.changes = open
    if (names.get(path) === file) durableNames.set(path, file)
  }
  const renamed = ({ args }: SystemCall) => {
    const [from, to] = toPaths(args)
    const file = from === undefined ? undefined : names.get(from)
    if (from === undefined || to === undefined || file === undefined) return
    names.delete(from)
    names.set(to, file)
    for (const descriptor of open.values()) if (descriptor.file === file) descriptor.path = to
    if (file.durable === null) return
    durableNames.delete(from)
    durableNames.set(to, file)
  }
  const removed = ({ args }: SystemCall) => {
    const [path] = toPaths(args)
    if (path === undefined) return
    for (const map of [names, durableNames]) {
      for (const name of map.keys())
        if (name === path || name.startsWith(`${path}/`)) map.delete(name)
    }
  }
  return {
    syncs: () => syncs,
    apply: (call) => {
      if (call.result < 0) return
      const { name } = call
      if (name === 'openat') opened(call)
      else if (name === 'close') open.delete(Number(/^\d+/.exec(call.args)?.[0]))
      else if (/^p?write/.test(name)) written(call)
      else if (name === 'fsync' || name === 'fdatasync') synced(call)
      else if (name === 'ftruncate') {
        const descriptor = find(call)
        const at = Number(/, (\d+)$/.exec(call.args)?.[1])
        if (descriptor) change(descriptor.file, { kind: 'truncate', at, ended: call.ended })
      } else if (name.startsWith('rename')) renamed(call)
      else if (name.startsWith('unlink')) removed(call)
      else if (/^(truncate|fallocate|link|copy_file|sync_file|sendfile)/.test(name)) {
        if (toPaths(call.args).some(inStore)) throw new Error(`unsupported system call: ${name}`)
      }
    },
    restore: (dir) => {
      let bytes = 0
      let seen = 0
      for (const [path, file] of durableNames) {
        const target = join(dir, relative(storeDir, path))
        mkdirSync(dirname(target), { recursive: true })
        writeFileSync(target, file.durable!.subarray(0, file.durableBytes))
        bytes += file.durableBytes
      }
      for (const file of names.values()) seen += file.bytes
      const lostFiles = [...names.keys()].filter((path) => !durableNames.has(path)).length
      return { files: durableNames.size, bytes, lostFiles, lostBytes: seen - bytes }
    },
  }
}

function split<T>(all: readonly T[], isFirst: (one: T) => boolean): [T[], T[]] {
  return [all.filter(isFirst), all.filter((one) => !isFirst(one))]
}

function listFiles(dir: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

/** The paths among the arguments, resolved against the descriptor of a folder. */
function toPaths(args: string): string[] {
  const paths: string[] = []
  const form = /(?:(?:\d+|AT_FDCWD)<([^>]*)>, )?("(?:[^"\\]|\\.)*")/g
  for (const [, folder, quoted] of args.matchAll(form)) {
    const [name] = readStrings(quoted!)
    paths.push(name!.startsWith('/') || folder === undefined ? name! : join(folder, name!))
  }
  return paths
}

function change(file: File, one: Change): void {
  file.changes.push(one)
  if (one.kind === 'truncate') file.bytes = one.at
  else file.bytes = Math.max(file.bytes, one.at + one.bytes.length)
}

function applyTo(file: File, one: Change): void {
  if (one.kind === 'truncate') {
    grow(file, one.at)
    file.durable!.fill(0, one.at)
    file.durableBytes = one.at
    return
  }
  const end = one.at + one.bytes.length
  grow(file, end)
  one.bytes.copy(file.durable!, one.at)
  file.durableBytes = Math.max(file.durableBytes, end)
}

function grow(file: File, bytes: number): void {
  if (file.durable!.length >= bytes) return
  const larger = Buffer.alloc(Math.max(bytes, 2 * file.durable!.length, 4_096))
  file.durable!.copy(larger, 0, 0, file.durableBytes)
  file.durable = larger
}
