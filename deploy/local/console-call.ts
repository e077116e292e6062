// Calls of the local stack to its own console, repeated while the console is starting or
// restarting.

import { setTimeout as sleep } from 'node:timers/promises'
import { StartError } from './stack/settings.ts'

const CALL_TIMEOUT_MS = 15_000
/** The console may be restarting; within this time a failed call is repeated. */
const PATIENCE_MS = 20_000
const PAUSE_MS = 250

export type Answer = { status: number; body: unknown }

/** Calls the admin API; `path` follows `/admin/v1`. Throws a StartError when there is no answer. */
export type ConsoleCall = (method: string, path: string, body?: unknown) => Promise<Answer>

/** Calls are repeated while the console is unreachable or responds with a 5xx status. */
export function createConsoleCall(options: {
  consoleUrl: string
  adminToken: string
  signal: AbortSignal
  /** Of one try; 15 s by default. */
  timeoutMs?: number
}): ConsoleCall {
  return async (method, path, body) => {
    const deadline = performance.now() + PATIENCE_MS
    while (true) {
      const answer = await tryConsole(options, { method, path, body }).catch((error: unknown) =>
        String(error),
      )
      if (typeof answer !== 'string' && answer.status < 500) return answer
      options.signal.throwIfAborted()
      if (performance.now() > deadline) {
        const why = typeof answer === 'string' ? answer : `HTTP ${answer.status}`
        throw new StartError(`the console did not answer ${method} ${path}: ${why}`)
      }
      await sleep(PAUSE_MS)
    }
  }
}

async function tryConsole(
  options: { consoleUrl: string; adminToken: string; timeoutMs?: number },
  { method, path, body }: { method: string; path: string; body: unknown },
): Promise<Answer> {
  const { consoleUrl, adminToken, timeoutMs = CALL_TIMEOUT_MS } = options
  const response = await fetch(`${consoleUrl}/admin/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${adminToken}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(timeoutMs),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? null : JSON.parse(text) }
}
