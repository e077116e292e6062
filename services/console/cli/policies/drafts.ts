/** `di policy drafts ...`: drafts that are written in the console's pages, and publishing them. */
import { type Answer, command, cursor, group, limit, read, toMore } from '../commands.ts'
import { CliError, toTenantPath } from '../context.ts'
import { toFields } from '../tables.ts'
import { toPolicyDiff } from './policy-text.ts'

const path = '/tenants/{tenant_id}/drafts'

type Draft = Answer<`${typeof path}/{draft_id}`>
type Version = Answer<'/tenants/{tenant_id}/policy/versions/{version}'>
type Published = Answer<`${typeof path}/{draft_id}/publish`, 'post'>

const pathOf = (slug: string, id: string) =>
  `${toTenantPath(slug)}/drafts/${encodeURIComponent(id)}`

export const drafts = group('drafts', 'drafts of the policy', [
  read('list <slug>', 'the drafts of a tenant, newest first', path, {
    options: [limit(50), cursor],
    columns: [
      ['DRAFT', 'draft_id'],
      ['NAME', 'name'],
      ['COMMENT', 'comment'],
      ['FROM', 'base_version'],
      ['CHANGED', 'updated_at'],
      ['BY', 'updated_by'],
      ['', (draft) => (draft.base_version === draft.in_force_version ? '' : 'base changed')],
    ],
    empty: 'There are no drafts.',
    note: toMore,
  }),
  command(
    'show <slug> <draft_id>',
    'a draft, and what it changes in the version that it began from',
    [],
    async (context, [slug, id]) => {
      const draft = (await context.adminFetch('GET', pathOf(slug!, id!))) as Draft
      const versionPath = `${toTenantPath(slug!)}/policy/versions/${draft.base_version}`
      const base = (await context.adminFetch('GET', versionPath)) as Version
      context.out(draft, () => toDraftText(draft, base))
    },
  ),
  command<{ reason?: string }>(
    'publish <slug> <draft_id>',
    'publish a draft and remove it; returns once every edge scores by it',
    [['--reason <text>', 'why; shown with the version']],
    async (context, [slug, id], { reason }) => {
      if (reason === undefined) throw new CliError('Give --reason TEXT.')
      const { revision } = (await context.adminFetch('GET', pathOf(slug!, id!))) as Draft
      const body = { reason, revision }
      const answer = await context.adminFetch('POST', `${pathOf(slug!, id!)}/publish`, body)
      context.out(answer as Published, ({ version, name, previous_version: previous }) =>
        version === previous
          ? `Version ${version} (${name}) was in force already.`
          : `Version ${version} (${name}) is in force, after version ${previous}.`,
      )
    },
  ),
])

function toDraftText(draft: Draft, base: Version): string {
  const fields = toFields({
    draft: draft.draft_id,
    name: draft.name,
    comment: draft.comment,
    from: `version ${draft.base_version}; version ${draft.in_force_version} is in force`,
    begun: `${draft.created_at} by ${draft.created_by}`,
    changed: `${draft.updated_at} by ${draft.updated_by}`,
  })
  return `${fields}\n\n${toDiff(draft.text, base)}`
}

function toDiff(text: string, base: Version): string {
  try {
    return toPolicyDiff(base.document, JSON.parse(text)) || 'It changes nothing.'
  } catch {
    return `It is not JSON yet.\n\n${text}`
  }
}
