/**
 * One tenant's lane of the isolation drill: it calls with that tenant's credentials and ids, keeps
 * count by route, and notes every answer that had something of another tenant in it, differed from
 * the model, or told a foreign id from an unknown one.
 */
import type { Call, CallAnswer, Caller } from '../../support/http/http-call.ts'
import { findForeign, toComparable } from './compare-answers.ts'
import type { Belongings, IsolationWorld } from './rig.ts'

export type RouteTally = {
  calls: number
  /** Rows of the tenant's own in the answers: without any, nothing was looked at. */
  rows: number
  foreign: number
  /** Foreign ids and cursors that were asked for. */
  probes: number
  /** Of those, answered otherwise than unknown ones. */
  told: number
  /** Answers that are not what the model says. */
  wrong: number
}

export type IsolationFindings = {
  routes: Map<string, RouteTally>
  examples: string[]
}

export type Asked = {
  route: string
  path: string
  method?: string
  body?: unknown
  /** A 503 is an answer like another: only so many of these run at once. */
  mayBeBusy?: boolean
}

export type Lane = Belongings & {
  world: IsolationWorld
  others: Belongings[]
  /** Calls the api with the tenant's key, or the admin API. */
  ask: (asked: Asked, headers?: Record<string, string>) => Promise<CallAnswer>
  /** Asks for what another tenant has and for what nobody has: the answers must be alike. */
  probe: (
    asked: (id: string) => Asked,
    ids: { foreign: string; unknown: string },
    statuses: readonly number[],
  ) => Promise<void>
  /** Notes an answer that is not what the model says. */
  expect: (isRight: boolean, asked: Asked, answer: CallAnswer, why: string) => void
}

const examplesMax = 20

export function createLane(
  world: IsolationWorld,
  own: Belongings,
  { caller, findings }: { caller: Caller; findings: IsolationFindings },
): Lane {
  const { stack } = world.running
  const owner = own.tenant.tenant_id
  const tallyOf = (route: string): RouteTally => {
    const none = { calls: 0, rows: 0, foreign: 0, probes: 0, told: 0, wrong: 0 }
    const tally = findings.routes.get(route) ?? none
    findings.routes.set(route, tally)
    return tally
  }
  const note = (what: string, { method = 'GET', path, body }: Asked, text: string) => {
    if (findings.examples.length >= examplesMax) return
    const sent = `${method} ${path} ${body === undefined ? '' : JSON.stringify(body).slice(0, 200)}`
    findings.examples.push(`${owner}: ${what}: ${sent}\n    ${text.slice(0, 600)}`)
  }
  const ask: Lane['ask'] = async (asked, headers = {}) => {
    const isAdmin = asked.path.startsWith('/admin/')
    const answer = await caller.send(isAdmin ? stack.console : stack.api, {
      ...toCall(asked),
      headers: {
        authorization: `Bearer ${isAdmin ? stack.admin_token : own.tenant.public_api_key}`,
        ...(asked.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
    })
    const tally = tallyOf(asked.route)
    tally.calls++
    tally.rows += countRows(answer.text)
    const sent = `${decodeURIComponent(asked.path)} ${JSON.stringify(asked.body ?? '')}`
    const judged = { owner, ownership: world.ownership, asked: sent }
    const foreign = findForeign(answer.text, judged)
    tally.foreign += foreign.length
    if (foreign.length > 0) note(`has ${foreign.join(', ')}`, asked, answer.text)
    if (answer.status >= 500 && !(asked.mayBeBusy === true && answer.status === 503)) {
      tally.wrong++
      note(`answered ${answer.status}`, asked, answer.text)
    }
    return answer
  }
  return {
    ...own,
    world,
    ask,
    others: world.belongings.filter(({ tenant }) => tenant.tenant_id !== owner),
    probe: async (askedOf, { foreign, unknown }, statuses) => {
      const asked = askedOf(foreign)
      const answer = await ask(asked)
      const other = await ask(askedOf(unknown))
      const tally = tallyOf(asked.route)
      tally.probes++
      const [a, b] = [toComparable(answer, foreign), toComparable(other, unknown)]
      if (a === b && statuses.includes(answer.status)) return
      tally.told++
      note(`told from an unknown id`, asked, `${a}\n    ${b}`)
    },
    expect: (isRight, asked, answer, why) => {
      if (isRight) return
      tallyOf(asked.route).wrong++
      note(why, asked, answer.text)
    },
  }
}

function toCall({ method = 'GET', path, body }: Asked): Omit<Call, 'headers'> {
  return { method, path, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
}

/** Rows of a list, or the one thing that a route shows. */
function countRows(text: string): number {
  if (text.startsWith('{"type":"urn:')) return 0
  try {
    const value = JSON.parse(text) as { data?: unknown[]; sessions?: unknown[] }
    return value.data?.length ?? value.sessions?.length ?? 1
  } catch {
    return text.split('\n').length - 1
  }
}
