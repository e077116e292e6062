/**
 * The one logger: pino as JSON lines on stdout, with every field that could hold a secret redacted
 * by path. Messages are constant texts; what varies is a field.
 */
import { destination, type Logger, type LoggerOptions, pino } from 'pino'

export type Log = Logger

const redactedPaths = [
  'authorization',
  'hmac_secret',
  'webhook_secret',
  'public_api_key',
  'secret',
  'password',
  'signature',
  'master_key',
  'edge_key',
  'webhook_key',
  'telemetry_key',
  'admin_token',
].flatMap((name) => [name, `*.${name}`, `*.*.${name}`])

/**
 * @param service the process's name, on every line
 * @param level pino's level names
 */
export function createLog(service: string, level: string): Log {
  const options: LoggerOptions = {
    level,
    base: { service },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: {
      paths: [
        ...redactedPaths,
        'req.headers.authorization',
        'req.headers["x-service-signature"]',
        'headers.authorization',
        'headers["x-service-signature"]',
      ],
      censor: '***',
    },
    // An error's enumerable fields may contain data sent to a driver: log only known fields.
    serializers: { err: toLogged },
  }
  // Synchronous: with buffered output a process whose parent was killed would never exit, because
  // it retries the last write forever when the pipe has no reader.
  return pino(options, destination({ fd: 1, sync: true }))
}

/**
 * The logged fields of an error. What a server sent stays out of the log: ClickHouse, Postgres and
 * JSON parsers quote data in their messages, and NATS may send anything. Of their errors only the
 * code and names of the schema are logged, and where they were thrown.
 */
export function toLogged(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return toLoggedValue(error)
  const { name, message, stack, code } = error as Error & { code?: unknown }
  const answered = describeAnswer(error)
  if (answered === null) return { type: name, message, stack, code }
  return { ...answered, code, at: toFrames(error) }
}

type ServerError = Error & {
  code?: unknown
  type?: unknown
  constraint?: unknown
  table?: unknown
  api_error?: { err_code?: unknown }
}

/** Errors of servers by the name of their class, so that no process loads a client for the log. */
function describeAnswer(error: Error): Record<string, unknown> | null {
  const { code, type, constraint, table, api_error: api } = error as ServerError
  switch (error.constructor.name) {
    case 'ClickHouseError':
      return { type: 'ClickHouseError', message: `ClickHouse answered ${type}` }
    case 'DatabaseError':
      return { type: 'DatabaseError', message: `Postgres answered ${code}`, constraint, table }
    case 'NatsError':
      return { type: 'NatsError', message: `NATS answered ${api?.err_code ?? code}` }
    case 'SyntaxError':
      return { type: 'SyntaxError', message: 'a text cannot be parsed' }
    default:
      return null
  }
}

/** The stack without the message before it; undefined where they cannot be told apart. */
function toFrames({ stack = '', message }: Error): string | undefined {
  const at = stack.indexOf(message)
  if (at === -1) return undefined
  const frames = stack.slice(at + message.length).trim()
  return frames === '' ? undefined : frames
}

/** What was thrown without being an Error, such as `{ code, type }`: the same fields, or its text. */
function toLoggedValue(thrown: unknown): Record<string, unknown> {
  if (typeof thrown !== 'object' || thrown === null) return { message: String(thrown) }
  const { message, code, type } = thrown as Record<string, unknown>
  return { type: type ?? thrown.constructor?.name, message, code }
}
