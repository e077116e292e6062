/**
 * What every command receives: the environment, the admin API with its token, the running local
 * stack if there is one, and one way to print. With `--json` stdout is one JSON document; every
 * failure is a message on stderr and exit status 1.
 */
import { existsSync, readFileSync } from 'node:fs'
import { isAbsolute, join, resolve } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { describeForeignAnswer, isOwnAnswer } from '#shared/core/http/foreign-answer.ts'
import type { ProblemBody } from '#shared/core/http/problem.ts'
import { findDuplicateMember } from '#shared/core/telemetry/json/duplicate-member.ts'
import { findTextFault } from '#shared/core/telemetry/json/json-syntax.ts'

export type CliEnv = Record<string, string | undefined>

/** `.data/stack.json` of a running local stack. */
export type Stack = {
  ingest: string
  api: string
  console: string
  scorer: string
  delivery: string
  nats: string
  clickhouse: string
  clickhouse_shards?: string[]
  /** The private keys of the roots that its edges take for sandbox tenants. */
  attestation_keys_file?: string
  /** The folder of the demo's network data; none where the stack has other data. */
  network_data?: string
  postgres: string
  admin_token: string
  pids: Partial<Record<string, number>>
  demo?: {
    tenant_id: string
    public_api_key: string
    hmac_secret: string
    webhook_secret: string
  }
}

export type CliContext = {
  env: CliEnv
  /**
   * Calls the admin API. `path` follows `/admin/v1`, for example `/tenants/acme`.
   * @returns the JSON answer
   * @throws CliError with the problem's detail and its field errors
   */
  adminFetch: (
    method: string,
    path: string,
    body?: unknown,
    options?: { timeoutMs?: number },
  ) => Promise<unknown>
  /**
   * The same for a response of JSON lines, which are yielded as they arrive.
   * @throws CliError also when the response is cut off
   */
  adminLines: (method: string, path: string, body?: unknown) => AsyncGenerator<unknown, void>
  /** The same for a text of any size, in pieces as they arrive. */
  adminText: (method: string, path: string, body?: unknown) => AsyncGenerator<string, void>
  /** `stack.json` of the local stack, or null without one. */
  findStack: () => Stack | null
  /** The data folder of the local stack, which has its `stack.json`; it may be missing. */
  readonly dataDir: string
  /** Prints a result: JSON with `--json`, else what `toText` makes of it. */
  out: <T>(value: T, toText: (value: T) => string) => void
  /** Writes text to stdout as it is, and resolves when stdout has taken it. */
  write: (text: string) => Promise<void> | void
  readonly json: boolean
}

/** A failure meant for the person at the terminal: no stack trace, exit status 1. */
export class CliError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'CliError'
  }
}

/**
 * Reads a file, relative to the folder in which npm was called.
 * @throws CliError when it cannot be read
 */
export function readInputFile({ env }: Pick<CliContext, 'env'>, file: string): Buffer {
  try {
    return readFileSync(resolve(env.INIT_CWD ?? '.', file))
  } catch (error) {
    throw new CliError(`${file} cannot be read`, { cause: error })
  }
}

/**
 * The text of a file, or of stdin for `-`.
 * @throws CliError when it is not UTF-8: in another encoding its ids would be others
 */
export async function readTextFile(
  context: Pick<CliContext, 'env'>,
  file: string,
): Promise<string> {
  const bytes = file === '-' ? await buffer(process.stdin) : readInputFile(context, file)
  const fault = findTextFault(bytes)
  if (fault !== null) throw new CliError(`${toFileName(file)} ${fault}. Save it as UTF-8.`)
  return bytes.toString('utf8')
}

/**
 * The value of a JSON file, or of stdin for `-`.
 * @throws CliError when it is not JSON, or has a member twice: only the last would count
 */
export async function readJsonFile(
  context: Pick<CliContext, 'env'>,
  file: string,
): Promise<unknown> {
  const text = (await readTextFile(context, file)).replace(/^\ufeff/, '')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new CliError(`${toFileName(file)} is not JSON: ${(error as Error).message}`)
  }
  const repeated = findDuplicateMember(text)
  if (repeated === null) return value
  throw new CliError(`${toFileName(file)}: ${repeated} is given more than once`)
}

const toFileName = (file: string): string => (file === '-' ? 'stdin' : file)

/** The path of a tenant below `/admin/v1`. */
export const toTenantPath = (slug: string): string => `/tenants/${encodeURIComponent(slug)}`

const projectFolder = fileURLToPath(new URL('../../..', import.meta.url))
const requestTimeoutMs = 60_000

/**
 * Creates the context.
 * @param options.json read late, because options are parsed after the context is made
 */
export function createCliContext(options: {
  env: CliEnv
  json: () => boolean
  write: (text: string) => Promise<void> | void
}): CliContext {
  const { env } = options
  const findStack = () => readStack(env)
  return {
    env,
    findStack,
    dataDir: listDataDirs(env).find(hasStack) ?? listDataDirs(env)[0]!,
    adminFetch: (method, path, body, options) =>
      callAdmin(findAdmin(env, findStack), { method, path, body, ...options }),
    adminLines: (method, path, body) =>
      readLines(findAdmin(env, findStack), { method, path, body }),
    adminText: (method, path, body) => readText(findAdmin(env, findStack), { method, path, body }),
    write: options.write,
    out: (value, toText) => {
      const text = options.json() ? JSON.stringify(value) : toText(value)
      void options.write(text.endsWith('\n') ? text : `${text}\n`)
    },
    get json() {
      return options.json()
    },
  }
}

/** `DATA_DIR` is relative to the folder in which npm was called. */
function listDataDirs(env: CliEnv): string[] {
  const dataDir = env.DATA_DIR || '.data'
  const folder = isAbsolute(dataDir) ? dataDir : join(env.INIT_CWD ?? projectFolder, dataDir)
  // Called from elsewhere without DATA_DIR, the project's own stack is meant.
  return env.DATA_DIR ? [folder] : [folder, join(projectFolder, dataDir)]
}

const hasStack = (folder: string): boolean => existsSync(join(folder, 'stack.json'))

function readStack(env: CliEnv): Stack | null {
  for (const candidate of listDataDirs(env)) {
    try {
      return JSON.parse(readFileSync(join(candidate, 'stack.json'), 'utf8')) as Stack
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue
      throw new CliError(`${join(candidate, 'stack.json')} cannot be read`, { cause: error })
    }
  }
  return null
}

type Admin = { url: string; token: string }

function findAdmin(env: CliEnv, findStack: () => Stack | null): Admin {
  const stack = env.ADMIN_TOKEN && env.CONSOLE_URL ? null : findStack()
  const token = env.ADMIN_TOKEN || stack?.admin_token
  const url = env.CONSOLE_URL || stack?.console
  if (token && url) return { url: url.replace(/\/+$/, ''), token }
  throw new CliError(
    'There is no running local stack: start one with `npm start`, or set CONSOLE_URL ' +
      'and ADMIN_TOKEN.',
  )
}

type AdminRequest = { method: string; path: string; body: unknown }

async function callAdmin(
  admin: Admin,
  request: AdminRequest & { timeoutMs?: number },
): Promise<unknown> {
  const { timeoutMs = requestTimeoutMs } = request
  const answer = await send(admin, request, AbortSignal.timeout(timeoutMs))
  const text = await answer.text()
  if (answer.ok) return text === '' ? null : JSON.parse(text)
  throw new CliError(describeProblem(answer.status, text))
}

async function send(
  { url, token }: Admin,
  { method, path, body }: AdminRequest,
  signal: AbortSignal | null,
): Promise<Response> {
  const target = `${url}/admin/v1${path}`
  const answer = await fetch(target, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal,
  }).catch((error: unknown) => {
    throw new CliError(`${url} cannot be reached. Is the console running?`, { cause: error })
  })
  const { status, headers } = answer
  const contentType = headers.get('content-type')
  if (isOwnAnswer(status, contentType)) return answer
  const redirectedTo = answer.redirected ? answer.url : undefined
  const text = await answer.text().catch(() => '')
  const fault = describeForeignAnswer({ status, contentType, redirectedTo, text })
  throw new CliError(`${toVisible(fault)} Is CONSOLE_URL right?`)
}

async function* readLines(admin: Admin, request: AdminRequest): AsyncGenerator<unknown, void> {
  let rest = ''
  for await (const text of readText(admin, request)) {
    const lines = (rest + text).split('\n')
    rest = lines.pop()!
    for (const line of lines) if (line !== '') yield JSON.parse(line)
  }
}

async function* readText(admin: Admin, request: AdminRequest): AsyncGenerator<string, void> {
  const answer = await send(admin, request, null)
  if (!answer.ok) throw new CliError(describeProblem(answer.status, await answer.text()))
  try {
    for await (const text of answer.body!.pipeThrough(new TextDecoderStream())) yield text
  } catch (error) {
    throw new CliError('The response was cut off. Is the console still running?', { cause: error })
  }
}

/** The detail, then one line per faulty field; a detail can repeat what clients sent. */
function describeProblem(status: number, text: string): string {
  const problem = JSON.parse(text) as Partial<ProblemBody>
  const fields = (problem.errors ?? []).map(({ path, message }) => `  ${path}: ${message}`)
  const what = problem.detail ?? problem.title ?? 'The request failed.'
  const lines = [`${what} (${problem.code ?? status}, ${problem.request_id ?? ''})`, ...fields]
  return lines.map(toVisible).join('\n')
}
