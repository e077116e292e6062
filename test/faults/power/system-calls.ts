/**
 * System calls of several processes in one order, recorded by strace. strace stops a thread at the
 * end of each call until the call is recorded, so the order of records is the order of events. A
 * call that other calls interrupt has two lines: one number for its start and one for its end.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { findProgram } from '../../../deploy/local/stack/launch.ts'
import { until } from '../../support/process/until.ts'

export type SystemCall = {
  name: string
  /** As strace writes them. */
  args: string
  /** Negative when it failed. */
  result: number
  /** The returned value, with the path of an opened file. */
  returned: string
  /** The lines on which it began and ended, from 1. */
  begun: number
  ended: number
  /** On the wall clock, in ms. */
  begunMs: number
  endedMs: number
}

export type Tracer = {
  /** Ends the trace and resolves once everything is written. */
  end: () => Promise<void>
}

/** Calls that change files or names, and calls on sockets. */
const traced = [
  ...['openat', 'close', 'write', 'writev', 'pwrite64', 'pwritev', 'read', 'readv'],
  ...['fsync', 'fdatasync', 'sync_file_range', 'ftruncate', 'truncate', 'fallocate', 'lseek'],
  ...['rename', 'renameat', 'renameat2', 'unlink', 'unlinkat', 'link', 'linkat', 'mkdirat'],
  ...['copy_file_range', 'sendfile', 'sendto', 'sendmsg', 'recvfrom', 'recvmsg'],
]
/** Longer than any message. */
const stringBytesMax = 2 * 1024 * 1024

/**
 * Attaches to running processes.
 * @throws when strace is not installed
 */
export async function trace(pids: readonly number[], file: string): Promise<Tracer> {
  const program = findProgram('strace', process.env.PATH)
  if (program === null) {
    throw new Error('this drill needs strace, and there is none (Debian: apt-get install strace)')
  }
  const args = [
    ...['-f', '-ttt', '-T', '-yy', '-s', `${stringBytesMax}`, '-o', file],
    ...['-e', `trace=${traced.join()}`],
    ...pids.flatMap((pid) => ['-p', `${pid}`]),
  ]
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let output = ''
  child.stderr.on('data', (chunk: Buffer) => {
    output = (output + chunk).slice(0, 10_000)
  })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  await until('strace is attached', () => {
    if (hasEnded(child)) throw new Error(`strace ended: ${output}`)
    return pids.every((pid) => output.includes(`Process ${pid} attached`))
  })
  return {
    end: async () => {
      if (!hasEnded(child)) child.kill('SIGINT')
      await ended
    },
  }
}

const hasEnded = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null

/** Reads a trace, call by call in the order of their ends. */
export async function* readTrace(file: string): AsyncGenerator<SystemCall> {
  const lines = createInterface({ input: createReadStream(file, 'latin1') })
  yield* parseTrace(lines)
}

type Begun = { text: string; line: number; ms: number }

const lineForm = /^(\d+) +(\d+\.\d+) (.*)$/
const resumedForm = /^<\.\.\. (\w+) resumed>(.*)$/s
const unfinished = ' <unfinished ...>'
const wholeForm = /^(\w+)\((.*)\) += (-?\d+|0x[\da-f]+|\?)(.*?)(?: <(\d+\.\d+)>)?$/s

/** The calls of these lines, without calls that did not end because of a kill. */
async function* parseTrace(
  lines: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<SystemCall> {
  const begun = new Map<string, Begun>()
  let line = 0
  for await (const whole of lines) {
    line++
    const [, thread = '', seconds = '', text = ''] = lineForm.exec(whole) ?? []
    const ms = Number(seconds) * 1_000
    if (text.endsWith(unfinished)) {
      begun.set(thread, { text: text.slice(0, -unfinished.length), line, ms })
      continue
    }
    const [, resumed, rest = ''] = resumedForm.exec(text) ?? []
    const first = resumed === undefined ? { text: '', line, ms } : begun.get(thread)
    if (first === undefined) continue
    begun.delete(thread)
    const call = toCall(resumed === undefined ? text : first.text + rest, first, line)
    if (call !== null) yield call
  }
}

function toCall(text: string, { line, ms }: Begun, ended: number): SystemCall | null {
  const [, name, args = '', result = '', more = '', took] = wholeForm.exec(text) ?? []
  if (name === undefined || result === '?') return null
  const endedMs = ms + Number(took ?? 0) * 1_000
  const returned = `${result}${more}`
  return {
    name,
    args,
    result: Number(result),
    returned,
    begun: line,
    ended,
    begunMs: ms,
    endedMs,
  }
}

/** The file or socket of a descriptor as strace writes it: `7</path>`, `21<TCP:[a->b]>`. */
export function readTarget(text: string): { fd: number; target: string } | null {
  const match = /^(\d+|AT_FDCWD)<(TCP:\[.*?\]|.*?)>(?:,|$|\))/s.exec(text)
  if (match === null) return null
  return { fd: match[1] === 'AT_FDCWD' ? -100 : Number(match[1]), target: decodeText(match[2]!) }
}

/** Every string of the arguments, decoded, in Latin-1. */
export function readStrings(args: string): string[] {
  const strings: string[] = []
  for (let at = args.indexOf('"'); at !== -1; at = args.indexOf('"', at)) {
    let end = at + 1
    while (args[end] !== '"' && end < args.length) end += args[end] === '\\' ? 2 : 1
    strings.push(decodeText(args.slice(at + 1, end)))
    at = end + 1
  }
  return strings
}

const escapes: Record<string, string> = { n: '\n', r: '\r', t: '\t', v: '\v', f: '\f' }

function decodeText(text: string): string {
  if (!text.includes('\\')) return text
  return text.replaceAll(/\\([0-7]{1,3}|x[\da-f]{2}|.)/gs, (_whole, code: string) => {
    if (/^[0-7]/.test(code)) return String.fromCharCode(Number.parseInt(code, 8))
    if (/^x./.test(code)) return String.fromCharCode(Number.parseInt(code.slice(1), 16))
    return escapes[code] ?? code
  })
}
