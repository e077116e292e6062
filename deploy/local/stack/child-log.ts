// Writes a child's output to its own file in DATA_DIR/logs, with a size limit. Warnings and errors
// also go to the terminal, at a limited rate.

import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs'
import type { Readable } from 'node:stream'

const FILE_BYTES_MAX = 8 * 1024 * 1024
const LINE_CHARS_MAX = 16 * 1024
const LAST_LINES = 20
const SHOWN_PER_WINDOW = 8
const WINDOW_MS = 10_000

export type ChildLog = {
  /** Reads a child's output to its end. */
  follow: (stream: Readable | null) => void
  /** The newest lines of the current child. */
  lastLines: () => string[]
  /** Clears the lines of the previous child. */
  newChild: () => void
  close: () => void
}

/**
 * @param options.file the log file; when it is full it becomes `<file>.1`
 * @param options.toShow the text to show at the terminal, or null
 * @param options.show prints a line on the terminal
 */
export function openChildLog(options: {
  file: string
  toShow: (line: string) => string | null
  show: (line: string) => void
}): ChildLog {
  let handle = openSync(options.file, 'a', 0o600)
  let bytes = fstatSync(handle).size
  let last: string[] = []
  const showLimited = limitRate(options.show, options.file)

  function write(text: string): void {
    if (bytes > FILE_BYTES_MAX) {
      closeSync(handle)
      renameSync(options.file, `${options.file}.1`)
      handle = openSync(options.file, 'a', 0o600)
      bytes = 0
    }
    bytes += writeSync(handle, text)
  }

  function addLine(line: string): void {
    if (line === '') return
    last = [...last.slice(1 - LAST_LINES), line]
    const shown = options.toShow(line)
    if (shown !== null) showLimited(shown)
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
        for (const line of lines) addLine(line)
      })
      stream?.on('end', () => addLine(rest))
      stream?.on('error', () => undefined)
    },
    lastLines: () => last,
    newChild: () => {
      last = []
    },
    close: () => closeSync(handle),
  }
}

function limitRate(show: (line: string) => void, file: string): (line: string) => void {
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

/** Node's warnings about deprecated options, which go only to the log file. */
const NODE_WARNING = /^\(node:\d+\) |^\(Use `node --trace/

/** Services and the ClickHouse server log JSON lines; any other output is shown as it is. */
export function showJsonWarnings(line: string): string | null {
  if (NODE_WARNING.test(line)) return null
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

/** Warnings and errors of nats-server, except the one about passwords in its configuration. */
export function showNatsWarnings(line: string): string | null {
  if (line.includes('Plaintext passwords detected')) return null
  return /\[(WRN|ERR|FTL)\]/.test(line) ? line.replace(/^\[\d+\] \S+ \S+ /, '') : null
}

/** Failures of the PostgreSQL server. Statement errors go to the client that caused them. */
export function showPostgresFailures(line: string): string | null {
  if (line.includes('the database system is')) return null
  return /\b(FATAL|PANIC):/.test(line) ? line.replace(/^.*\] /, '') : null
}
