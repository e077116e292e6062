/** `di proposals ...`: what waits for the approval of another administrator. */
import { type Answer, change, command, cursor, group, limit, read, toMore } from '../commands.ts'
import { readJsonFile, toTenantPath } from '../context.ts'
import { toFields, toTable } from '../tables.ts'

const path = '/tenants/{tenant_id}/proposals'
const onePath = `${path}/{proposal_id}` as const

type Proposal = Answer<typeof onePath>

export const proposals = group('proposals', 'changes that another administrator approves', [
  read('list <slug>', 'the proposals of a tenant, newest first', path, {
    options: [limit(50), cursor, ['--open', 'only those that wait']],
    query: ({ open, ...page }: { open?: boolean; limit?: number; cursor?: string }) => ({
      ...page,
      ...(open === true ? { state: 'open' } : {}),
    }),
    columns: [
      ['PROPOSAL', 'proposal_id'],
      ['STATE', 'state'],
      ['WHAT', 'summary'],
      ['BY', 'author'],
      ['PROPOSED', 'created_at'],
      ['EXPIRES', 'expires_at'],
    ],
    empty: 'There are no proposals.',
    note: toMore,
  }),
  read('show <slug> <proposal_id>', 'a proposal with what it changes', onePath, {
    text: toProposalText,
  }),
  command(
    'make <slug> <file>',
    'propose what a JSON file says (- is stdin): the body of POST /tenants/SLUG/proposals',
    [],
    async (context, [slug, file]) => {
      const body = await readJsonFile(context, file!)
      const made = await context.adminFetch('POST', `${toTenantPath(slug!)}/proposals`, body)
      context.out(made as Proposal, toProposalText)
    },
  ),
  change(
    'approve <slug> <proposal_id>',
    'approve another administrator’s proposal, and carry it out; shows new secrets once',
    ['post', `${onePath}/approve`],
    {
      body: () => ({}),
      text: ({ proposal, result }) =>
        `${toProposalText(proposal)}\n\n${JSON.stringify(result, null, 2)}`,
    },
  ),
  change(
    'reject <slug> <proposal_id>',
    'reject a proposal: nothing is changed',
    ['post', `${onePath}/reject`],
    {
      options: [['--note <text>', 'why']],
      body: ({ note }: { note?: string }) => (note === undefined ? {} : { note }),
      text: toProposalText,
    },
  ),
  change(
    'withdraw <slug> <proposal_id>',
    'withdraw a proposal of your own',
    ['post', `${onePath}/withdraw`],
    { body: () => ({}), text: toProposalText },
  ),
])

const changesShown = 50

function toProposalText(proposal: Proposal): string {
  const { policy, subject, alerts } = proposal
  const fields = toFields({
    proposal: proposal.proposal_id,
    state: proposal.state,
    what: proposal.summary,
    why: proposal.reason,
    proposed: `${proposal.created_at} by ${proposal.author}`,
    expires_at: proposal.expires_at,
    ...(subject === null ? {} : { [subject.kind]: subject.id ?? `SHA-256 ${subject.sha256}` }),
    ...(alerts === null ? {} : { alerts: `${alerts.proposed} proposed, ${alerts.now} now` }),
    ...(proposal.ended_by === null
      ? {}
      : { ended: `${proposal.ended_at} by ${proposal.ended_by}` }),
    ...(proposal.note === null ? {} : { note: proposal.note }),
  })
  if (policy === null) return fields
  const rows = policy.changes
    .slice(0, changesShown)
    .map(({ path: where, before, after }) => [where, before ?? 'none', after ?? 'none'])
  const { backtest } = policy
  const tested =
    backtest === null
      ? 'It was not backtested.'
      : `Backtest over ${backtest.events} events, sessions: ${backtest.new} new, ${backtest.gone} ` +
        `gone, ${backtest.stricter} stricter, ${backtest.milder} milder; ` +
        `${backtest.confirmed_lost} confirmed alerts lost.`
  return [fields, toTable(['WHERE', 'BEFORE', 'AFTER'], rows), tested].join('\n\n')
}
