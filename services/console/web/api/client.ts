/**
 * The admin API as the pages call it: typed by the generated `schema.ts`, from the same origin and
 * prefix that served the document. Three answers concern the whole console and are handled here: a
 * 401 asks the person to sign in again, `step_up_required` asks for the password or a code and
 * repeats the call, and what something else answered in the console's place is named.
 */
import createClient from 'openapi-fetch'
import { describeForeignAnswer, isOwnAnswer } from '#shared/core/http/foreign-answer.ts'
import { noteServerTime } from '../components/time/server-clock.ts'
import type { paths } from './schema.ts'

/** The prefix under which the console is served, without a slash at its end. */
export const prefix = new URL(document.baseURI).pathname.replace(/\/$/, '')

type PresentAlert = Pick<
  AnswerOf<'/admin/v1/tenants/{tenant_id}/alerts', 'get'>['data'][number],
  'disposition' | 'assignee'
>

export type ProblemDetail = { path: string; message: string }

/** An answer that is not a success, or none at all; `message` is for the person. */
export class ApiProblem extends Error {
  readonly status: number
  readonly code: string
  readonly requestId: string | null
  readonly errors: ProblemDetail[]
  /** Of a 409 because an alert was changed meanwhile: what it is now. */
  readonly present: PresentAlert | undefined

  constructor(problem: {
    status: number
    code: string
    detail: string
    requestId: string | null
    errors?: ProblemDetail[]
    present?: PresentAlert | undefined
  }) {
    super(problem.detail)
    this.name = 'ApiProblem'
    this.status = problem.status
    this.code = problem.code
    this.requestId = problem.requestId
    this.errors = problem.errors ?? []
    this.present = problem.present
  }

  /** What the server found wrong with a field of the body: `email` or `$.email`. */
  of(field: string): string | undefined {
    return this.errors.find(({ path }) => path.replace(/^\$\./, '') === field)?.message
  }
}

/** What the shell does for calls; it sets them when it is mounted. */
export const sessionPrompts = {
  /**
   * The session has ended: shows the sign-in page over what is there.
   * @returns once the same person has signed in again; false for another one
   */
  signIn: async (): Promise<boolean> => false,
  /** @returns whether the person has proved again who they are */
  stepUp: async (): Promise<boolean> => false,
}

const sessionPath = /\/admin\/v1\/(session$|session\/oidc|invitations\/)/

/** Calls the admin API; a body that can be sent again is needed for a further try. */
async function send(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url)
  const again = request.clone()
  const response = await sendSignedIn(request, pathname)
  if (response.status !== 403 || pathname.endsWith('/session/step-up')) return response
  const problem = (await response.clone().json()) as { code?: string }
  if (problem.code !== 'step_up_required' || !(await sessionPrompts.stepUp())) return response
  return fetchOwn(again)
}

/** A call whose session has ended is repeated after the sign-in: nobody does it twice. */
async function sendSignedIn(request: Request, pathname: string): Promise<Response> {
  const again = request.clone()
  const response = await fetchOwn(request)
  if (response.status !== 401 || sessionPath.test(pathname)) return response
  // The token is new since a step-up or a sign-in in another tab: this call had the one before.
  if ((await hasSession()) || (await sessionPrompts.signIn())) return fetchOwn(again)
  return response
}

/** A look at the session that is under way, for all calls that need it. */
let looking: Promise<boolean> | null = null

/** Whether this browser has a session now. */
function hasSession(): Promise<boolean> {
  looking ??= fetchOwn(new Request(`${location.origin}${prefix}/admin/v1/session`))
    .then(({ ok: isThere }) => isThere)
    .finally(() => {
      looking = null
    })
  return looking
}

/** @throws ApiProblem without an answer, or with one that is not the console's */
async function fetchOwn(request: Request): Promise<Response> {
  const response = await fetchOrProblem(request)
  const { status, headers, redirected, url } = response
  const contentType = headers.get('content-type')
  if (isOwnAnswer(status, contentType)) {
    noteServerTime(headers.get('date'))
    return response
  }
  const text = await response.text().catch(() => '')
  const redirectedTo = redirected ? url : undefined
  const detail = describeForeignAnswer({ status, contentType, redirectedTo, text })
  throw new ApiProblem({ status, code: 'foreign_answer', detail, requestId: null })
}

async function fetchOrProblem(request: Request): Promise<Response> {
  try {
    return await fetch(request)
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new ApiProblem({
      status: 0,
      code: 'unreachable',
      detail: 'The console cannot be reached. Check the connection, then try again.',
      requestId: null,
    })
  }
}

export const api = createClient<paths>({
  baseUrl: `${location.origin}${prefix}`,
  fetch: send,
  credentials: 'same-origin',
})

type Answer<T> = { data?: T; error?: unknown; response: Response }

/**
 * The body of a success.
 * @throws ApiProblem for any other answer
 */
export async function ok<T>(answering: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await answering
  if (response.ok) return data as T
  throw toProblem(error, response)
}

function toProblem(error: unknown, response: Response): ApiProblem {
  const body = (typeof error === 'object' && error !== null ? error : {}) as {
    code?: string
    detail?: string
    errors?: ProblemDetail[]
    present?: PresentAlert
  }
  // Fields of a form show their own faults; those of an address have no other place.
  const [fault] = body.code === 'invalid_query' ? (body.errors ?? []) : []
  const more = fault === undefined ? '' : ` ${fault.path} ${fault.message}.`
  return new ApiProblem({
    status: response.status,
    code: body.code ?? 'unknown',
    detail: `${body.detail ?? `The console answered ${response.status}.`}${more}`,
    requestId: response.headers.get('x-request-id'),
    errors: body.errors ?? [],
    present: body.present,
  })
}

type Successes<R> = R extends { 200: { content: infer C } }
  ? C[keyof C]
  : R extends { 201: { content: infer C } }
    ? C[keyof C]
    : never

/** What a call answers: `AnswerOf<'/admin/v1/tenants', 'get'>`. */
export type AnswerOf<P extends keyof paths, M extends keyof paths[P]> = paths[P][M] extends {
  responses: infer R
}
  ? Successes<R>
  : never
