/** What a proposal changes, in words for the person who is asked to approve it. */
import type { ListEntryBody } from '../lists/list-schemas.ts'
import type { ApiKeyScope } from '../tenants/api-key-scopes.ts'
import type { RetainedKind, RetentionDays, RetentionSetting } from '../tenants/retention.ts'
import type { GuardedKind } from './four-eyes.ts'

/** What proposals of each kind hold. */
export type ProposalParameters = {
  policy: { document: unknown; draft_id?: string; draft_revision?: number }
  rotation: { hmac: boolean; webhook: boolean; api_key: boolean }
  install_root: { action: 'rotate' | 'drop_previous' }
  erasure: { subject: 'device' | 'user' }
  bulk: BulkParameters
  bulk_undo: { job_id: string }
  four_eyes: { enabled: boolean; bulk_above: number }
  api_key: { name: string; scopes: readonly ApiKeyScope[] }
  retention: Partial<Record<RetainedKind, RetentionSetting>>
  wide_list_entry: ListEntryBody
  suspension: Record<never, never>
  shared_secret: { off: boolean }
}
export type BulkParameters = {
  filter?: unknown
  alert_ids?: readonly string[] | undefined
  expected_count: number
  note: string | null
  change:
    | { sets: 'disposition'; disposition: string }
    | { sets: 'assignee'; assignee: string | null }
}

/** What proposals of each kind are made over. */
export type ProposalBase = {
  policy: { policy_version: number }
  rotation: { hmac_secret: string | null; webhook_secret: string | null; api_key: string | null }
  install_root: { current: number | null; other: number | null }
  erasure: Record<never, never>
  bulk: { alerts: number }
  bulk_undo: { changed: number }
  four_eyes: { enabled: boolean; bulk_above: number }
  api_key: Record<never, never>
  retention: RetentionDays
  wide_list_entry: Record<never, never>
  suspension: Record<never, never>
  shared_secret: { off: boolean }
}

/** A proposal of one kind, as it is stored. */
export type TypedProposal = {
  [Kind in GuardedKind]: {
    kind: Kind
    parameters: ProposalParameters[Kind]
    base: ProposalBase[Kind]
  }
}[GuardedKind]

/** One sentence. */
export function describeProposal(proposal: TypedProposal): string {
  switch (proposal.kind) {
    case 'policy': {
      const { document } = proposal.parameters
      const { name } = document as { name?: unknown }
      const { policy_version: version } = proposal.base
      return `Publish the policy ${String(name)} in place of version ${version}.`
    }
    case 'rotation':
      return describeRotation(proposal.parameters)
    case 'install_root':
      return proposal.parameters.action === 'rotate'
        ? 'Make a new install root: installs renew their tokens within 30 days.'
        : 'End the install root before: installs that have not renewed must register again.'
    case 'erasure':
      return `Erase a ${proposal.parameters.subject} from every store. This cannot be undone.`
    case 'bulk':
      return describeBulk(proposal.parameters)
    case 'bulk_undo':
      return `Undo the bulk change ${proposal.parameters.job_id} of ${toAlerts(proposal.base.changed)}.`
    case 'four_eyes': {
      const { enabled, bulk_above: above } = proposal.parameters
      return enabled
        ? `Ask for four eyes, and for bulk changes of more than ${toAlerts(above)}.`
        : 'Switch four eyes off: one administrator is enough again.'
    }
    case 'api_key': {
      const { name, scopes } = proposal.parameters
      return `Make the API key ${name} with ${scopes.join(', ')}.`
    }
    case 'retention': {
      const kept = Object.entries(proposal.parameters).map(
        ([kind, days]) => `${kind} ${typeof days === 'number' ? `${days} days` : days}`,
      )
      return `Keep ${kept.join(', ')}. What is older is removed and cannot be restored.`
    }
    case 'wide_list_entry': {
      const { list, kind, id } = proposal.parameters
      return `Put the ${kind} ${id} on the ${list} list.`
    }
    case 'suspension':
      return 'Suspend the tenant: every edge and the API refuse it.'
    case 'shared_secret':
      return proposal.parameters.off
        ? 'Refuse telemetry that the HMAC secret itself signs.'
        : 'Take telemetry that the HMAC secret itself signs again.'
  }
}

function describeRotation(parameters: ProposalParameters['rotation']): string {
  const { hmac, webhook, api_key: apiKey } = parameters
  const names = [
    ...(hmac ? ['the HMAC secret'] : []),
    ...(webhook ? ['the webhook secret'] : []),
    ...(apiKey ? ['the API key'] : []),
  ]
  const list =
    names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
  return `Rotate ${list}. The old ones end at once.`
}

function describeBulk({ change, expected_count: count, note }: BulkParameters): string {
  const what =
    change.sets === 'disposition'
      ? `Set ${toAlerts(count)} to ${change.disposition}`
      : change.assignee === null
        ? `Take the assignee from ${toAlerts(count)}`
        : `Assign ${toAlerts(count)} to ${change.assignee}`
  return `${what}${note === null || note === '' ? '' : `, with the note “${note}”`}.`
}

const toAlerts = (count: number) =>
  `${count.toLocaleString('en')} ${count === 1 ? 'alert' : 'alerts'}`
