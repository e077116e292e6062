// Every page of the console with an address that shows something: the console's own list of pages,
// whose parameters are filled with ids of the tenant, and what a page shows after one more choice.
import { admin } from '../../http/tenant-client.ts'
import type { StackFacts } from '../../process/stack.ts'

export type Place = {
  /** The name of its files. */
  name: string
  address: string
  /** The same of a tenant that has no data; null where a page is of no tenant. */
  empty: string | null
}

/** Values for the parameters of the list, by their names. */
type Values = Record<string, string>

const pagesFile = new URL('../../../../services/console/web/pages.ts', import.meta.url)

/** The addresses of all pages, with the names of their parameters. */
export async function listPaths(): Promise<string[]> {
  // The pages themselves are for a browser; here only their addresses are read.
  const { pages } = (await import(pagesFile.href)) as { pages: readonly { path: string }[] }
  return pages.map(({ path }) => path)
}

/** @throws when a page has a parameter that has no value here */
export async function listPlaces(
  stack: StackFacts,
  tenant: string,
  emptyTenant: string,
): Promise<Place[]> {
  const values = await readValues(stack, tenant)
  const places = (await listPaths()).map((path): Place => {
    const toAddress = (of: string) =>
      path.replace(/\$(\w+)/g, (_, name: string) => {
        const value = name === 'tenant' ? of : values[name]
        if (value === undefined) throw new Error(`${path}: no value is known for $${name}`)
        return encodeURIComponent(value)
      })
    return {
      name: path.replace(/^\/(t\/\$tenant\/|manage\/)?/, '').replace(/[/$]+/g, '-'),
      address: toAddress(tenant),
      empty: path.includes('$tenant') ? toAddress(emptyTenant) : null,
    }
  })
  const { draftId, proposalId, alertId, caseId, versions } = values
  const of = (address: string) => `/t/${tenant}/${address}`
  const more: [name: string, address: string][] = [
    ['alerts-open-one', of(`alerts?alert=${alertId}`)],
    ['cases-open-one', of(`cases?case=${caseId}`)],
    ['policies-draft', of(`policies?tab=edit&draft=${draftId}`)],
    ['policies-draft-text', of(`policies?tab=edit&draft=${draftId}&mode=json`)],
    ['policies-versions', of(`policies?version=${versions}&against=1`)],
    ['proposals-one', of(`proposals?proposal=${proposalId}`)],
    ['explore-query', of('explore?sql=select+*+from+alerts+limit+50')],
    ['not-found', of('no-such-page')],
  ]
  return [...places, ...more.map(([name, address]) => ({ name, address, empty: null }))]
}

type Listed<T> = { data: T[] }
type AlertRow = {
  alert_id: string
  event_id: string
  entity: {
    device: { device_id: string }
    user?: { user_id: string }
    phone?: { phone_id: string }
  }
}

/** Ids of the tenant; makes a version, a draft and a proposal, which a history has none of. */
async function readValues(stack: StackFacts, tenant: string): Promise<Values> {
  const of = `/tenants/${tenant}`
  const read = <T>(path: string) => admin<T>(stack, 'GET', `${of}${path}`)
  const { data: alerts } = await read<Listed<AlertRow>>('/alerts?limit=200')
  const { alert_id, event_id, entity } = alerts.find(
    (one) => one.entity.user !== undefined && one.entity.phone !== undefined,
  )!
  const { data: cases } = await read<Listed<{ case_id: string; alerts: number }>>('/cases?limit=50')
  const largest = cases.toSorted((one, other) => other.alerts - one.alerts)[0]!
  return {
    alertId: alert_id,
    caseId: largest.case_id,
    eventId: event_id,
    deviceId: entity.device.device_id,
    userId: entity.user!.user_id,
    phoneId: entity.phone!.phone_id,
    ...(await makeProposed(stack, of)),
  }
}

async function makeProposed(stack: StackFacts, of: string): Promise<Values> {
  type Policy = { version: number; document: Record<string, unknown> }
  const policy = await admin<Policy>(stack, 'GET', `${of}/policy`)
  const stricter = { ...policy.document, thresholds: { review: 20, block: 60 } }
  const { data: drafts } = await admin<Listed<{ draft_id: string }>>(stack, 'GET', `${of}/drafts`)
  const draft =
    drafts[0] ??
    (await admin<{ draft_id: string }>(stack, 'POST', `${of}/drafts`, {
      text: JSON.stringify(stricter, null, 2),
      comment: 'Stricter thresholds for the new release',
      base_version: policy.version,
    }))
  type Proposal = { proposal_id: string }
  const { data: open } = await admin<Listed<Proposal>>(stack, 'GET', `${of}/proposals`)
  const proposal =
    open[0] ??
    (await admin<Proposal>(stack, 'POST', `${of}/proposals`, {
      kind: 'policy',
      document: stricter,
      reason: 'Too few are reviewed since the new release',
    }))
  return {
    versions: `${policy.version}`,
    draftId: draft.draft_id,
    proposalId: proposal.proposal_id,
  }
}
