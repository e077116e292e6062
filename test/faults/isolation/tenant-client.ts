/**
 * The client of one tenant: it calls with that tenant's credentials and ids, counts by route, and
 * records every response that contains another tenant's data, differs from the model, or
 * distinguishes a foreign id from an unknown one.
 */
import type { Call, CallAnswer, Caller } from '../../support/http/http-call.ts'
import { until } from '../../support/process/until.ts'
import { findForeign, toComparable } from './compare-answers.ts'
import type { IsolationRig, Possessions } from './rig.ts'

export type RouteTally = {
  calls: number
  /** The tenant's own rows in the responses; 0 proves nothing. */
  rows: number
  foreign: number
  /** Foreign ids and cursors that were tried. */
  probes: number
  /** Those of them with a different response than an unknown id gets. */
  leaks: number
  /** Responses that differ from the model. */
  wrong: number
}

export type IsolationFindings = {
  routes: Map<string, RouteTally>
  examples: string[]
}

export type Request = {
  route: string
  path: string
  method?: string
  body?: unknown
  /** Whether a 503 is correct, because the number of concurrent calls is limited. */
  mayBeBusy?: boolean
}

export type TenantClient = Possessions & {
  rig: IsolationRig
  others: Possessions[]
  /** Calls the api with the tenant's key, or the admin API. */
  call: (request: Request, headers?: Record<string, string>) => Promise<CallAnswer>
  /** Calls with a foreign and with an unknown id; the responses must be equal. */
  probe: (
    requestOf: (id: string) => Request,
    ids: { foreign: string; unknown: string },
    statuses: readonly number[],
  ) => Promise<void>
  /** Records a response that differs from the model. */
  expect: (isRight: boolean, request: Request, answer: CallAnswer, why: string) => void
}

const examplesMax = 20

export function createTenantClient(
  rig: IsolationRig,
  own: Possessions,
  { caller, findings }: { caller: Caller; findings: IsolationFindings },
): TenantClient {
  const { stack } = rig.running
  const owner = own.tenant.tenant_id
  const tallyOf = (route: string): RouteTally => {
    const none = { calls: 0, rows: 0, foreign: 0, probes: 0, leaks: 0, wrong: 0 }
    const tally = findings.routes.get(route) ?? none
    findings.routes.set(route, tally)
    return tally
  }
  const note = (what: string, { method = 'GET', path, body }: Request, text: string) => {
    if (findings.examples.length >= examplesMax) return
    const sent = `${method} ${path} ${body === undefined ? '' : JSON.stringify(body).slice(0, 200)}`
    findings.examples.push(`${owner}: ${what}: ${sent}\n    ${text.slice(0, 600)}`)
  }
  const call: TenantClient['call'] = async (request, headers = {}) => {
    const isAdmin = request.path.startsWith('/admin/')
    const answer = await caller.send(isAdmin ? stack.console : stack.api, {
      ...toCall(request),
      headers: {
        authorization: `Bearer ${isAdmin ? stack.admin_token : own.tenant.public_api_key}`,
        ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
    })
    const tally = tallyOf(request.route)
    tally.calls++
    tally.rows += countRows(answer.text)
    const sent = `${decodeURIComponent(request.path)} ${JSON.stringify(request.body ?? '')}`
    const judged = { owner, ownership: rig.ownership, request: sent }
    const foreign = findForeign(answer.text, judged)
    tally.foreign += foreign.length
    if (foreign.length > 0) note(`has ${foreign.join(', ')}`, request, answer.text)
    if (answer.status >= 500 && !(request.mayBeBusy === true && answer.status === 503)) {
      tally.wrong++
      note(`status ${answer.status}`, request, answer.text)
    }
    return answer
  }
  // A busy server may refuse either of two calls.
  const answered = (request: Request) =>
    until('an answer', async () => {
      const answer = await call(request)
      return answer.status === 503 ? null : answer
    })
  return {
    ...own,
    rig,
    call,
    others: rig.possessions.filter(({ tenant }) => tenant.tenant_id !== owner),
    probe: async (requestOf, { foreign, unknown }, statuses) => {
      const request = requestOf(foreign)
      const answer = await answered(request)
      const other = await answered(requestOf(unknown))
      const tally = tallyOf(request.route)
      tally.probes++
      const [a, b] = [toComparable(answer, foreign), toComparable(other, unknown)]
      if (a === b && statuses.includes(answer.status)) return
      tally.leaks++
      note('differs from an unknown id', request, `${a}\n    ${b}`)
    },
    expect: (isRight, request, answer, why) => {
      if (isRight) return
      tallyOf(request.route).wrong++
      note(why, request, answer.text)
    },
  }
}

function toCall({ method = 'GET', path, body }: Request): Omit<Call, 'headers'> {
  return { method, path, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
}

/** Rows of a list, or 1 for a route with a single object. */
function countRows(text: string): number {
  if (text.startsWith('{"type":"urn:')) return 0
  try {
    const value = JSON.parse(text) as { data?: unknown[]; sessions?: unknown[] }
    return value.data?.length ?? value.sessions?.length ?? 1
  } catch {
    return text.split('\n').length - 1
  }
}
