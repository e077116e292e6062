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
 * The logged fields of an error. ClickHouse quotes data in messages: log only its code and type.
 */
export function toLogged(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return toLoggedValue(error)
  const { name, message, stack, code, type } = error as Error & { code?: unknown; type?: unknown }
  // By name, so that the edge need not load the ClickHouse client.
  if (error.constructor.name === 'ClickHouseError') {
    return { type: 'ClickHouseError', message: `ClickHouse answered ${type}`, code }
  }
  return { type: name, message, stack, code }
}

/** What was thrown without being an Error, such as `{ code, type }`: the same fields, or its text. */
function toLoggedValue(thrown: unknown): Record<string, unknown> {
  if (typeof thrown !== 'object' || thrown === null) return { message: String(thrown) }
  const { message, code, type } = thrown as Record<string, unknown>
  return { type: type ?? thrown.constructor?.name, message, code }
}
