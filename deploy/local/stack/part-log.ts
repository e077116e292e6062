// What a child prints goes to its own file in DATA_DIR/logs, bounded in size; what a person must
// see of it (warnings, errors) goes to the terminal as well, and never in a flood.

import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs'
import type { Readable } from 'node:stream'

const FILE_BYTES_MAX = 8 * 1024 * 1024
const LINE_CHARS_MAX = 16 * 1024
const LAST_LINES = 20
const SHOWN_PER_WINDOW = 8
const WINDOW_MS = 10_000

export type PartLog = {
  /** Reads a child's output to its end. */
  follow: (stream: Readable | null) => void
  /** The newest lines of the current child. */
  lastLines: () => string[]
  /** Forgets the lines of the child before. */
  newChild: () => void
  close: () => void
}

/**
 * @param options.file the log file; when it is full it becomes `<file>.1`
 * @param options.toShow what the terminal gets of a line, or null for nothing
 * @param options.show prints a line on the terminal
 */
export function openPartLog(options: {
  file: string
  toShow: (line: string) => string | null
  show: (line: string) => void
}): PartLog {
  let handle = openSync(options.file, 'a', 0o600)
  let bytes = fstatSync(handle).size
  let last: string[] = []
  const gate = createGate(options.show, options.file)

  function write(text: string): void {
    if (bytes > FILE_BYTES_MAX) {
      closeSync(handle)
      renameSync(options.file, `${options.file}.1`)
      handle = openSync(options.file, 'a', 0o600)
      bytes = 0
    }
    bytes += writeSync(handle, text)
  }

  function takeLine(line: string): void {
    if (line === '') return
    last = [...last.slice(1 - LAST_LINES), line]
    const shown = options.toShow(line)
    if (shown !== null) gate(shown)
  }

  return {
    follow: (stream) => {
      let rest = ''
      stream?.setEncoding('utf8')
      stream?.on('data', (chunk: string) => {
        write(chunk)
        const lines = (rest + chunk).split('\n')
        rest = lines.pop() ?? ''
        if (rest.length > LINE_CHARS_MAX) rest = rest.slice(0, LINE_CHARS_MAX)
        for (const line of lines) takeLine(line)
      })
      stream?.on('end', () => takeLine(rest))
      stream?.on('error', () => undefined)
    },
    lastLines: () => last,
    newChild: () => {
      last = []
    },
    close: () => closeSync(handle),
  }
}

function createGate(show: (line: string) => void, file: string): (line: string) => void {
  let windowStart = 0
  let shown = 0
  return (line) => {
    const now = performance.now()
    if (now - windowStart > WINDOW_MS) {
      windowStart = now
      shown = 0
    }
    shown++
    if (shown <= SHOWN_PER_WINDOW) show(line)
    else if (shown === SHOWN_PER_WINDOW + 1) show(`... more in ${file}`)
  }
}

const WARN_LEVEL = 40
const LEVEL_NAMES = new Map([
  [40, 'warn'],
  [50, 'error'],
  [60, 'fatal'],
])

/** Node's own remarks about deprecated options: for whoever works on the code, in the log file. */
const NODE_REMARK = /^\(node:\d+\) |^\(Use `node --trace/

/** Services and the ClickHouse front log JSON lines; anything else they print is a complaint. */
export function showJsonWarnings(line: string): string | null {
  if (NODE_REMARK.test(line)) return null
  if (!line.startsWith('{')) return line
  try {
    const entry = JSON.parse(line) as { level?: number; msg?: string; err?: { message?: string } }
    if (typeof entry.level !== 'number' || entry.level < WARN_LEVEL) return null
    const detail = entry.err?.message ? `: ${entry.err.message}` : ''
    return `${LEVEL_NAMES.get(entry.level) ?? entry.level} ${entry.msg ?? ''}${detail}`
  } catch {
    return line
  }
}

/** nats-server's warnings and errors, but for the one about the password in its own config. */
export function showNatsWarnings(line: string): string | null {
  if (line.includes('Plaintext passwords detected')) return null
  return /\[(WRN|ERR|FTL)\]/.test(line) ? line.replace(/^\[\d+\] \S+ \S+ /, '') : null
}

/** PostgreSQL reports statement errors to their client; only what concerns the server is shown. */
export function showPostgresFailures(line: string): string | null {
  if (line.includes('the database system is')) return null
  return /\b(FATAL|PANIC):/.test(line) ? line.replace(/^.*\] /, '') : null
}
