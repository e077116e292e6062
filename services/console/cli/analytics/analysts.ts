/** `di analysts ...`: the users that may query a tenant's analytics views in ClickHouse. */
import { Option } from 'commander'
import { type Answer, change, group, read } from '../commands.ts'
import { toFields } from '../tables.ts'

const path = '/tenants/{tenant_id}/analysts'

export const analysts = group('analysts', 'users who may query the analytics views of a tenant', [
  change('create <slug>', 'create an analyst and show the password, once', ['post', path], {
    options: [new Option('--name <name>', 'the name within the tenant').default('analyst')],
    body: ({ name }: { name: string }) => ({ name }),
    text: toCreatedText,
  }),
  change(
    'reset <slug> <name>',
    'give an analyst a new password and show it, once; the old one stops working',
    ['post', `${path}/{name}/password`],
    { body: () => ({}), text: toCreatedText },
  ),
  read('list <slug>', 'list the analysts of a tenant', path, {
    columns: [
      ['NAME', 'name'],
      ['USER', 'user'],
      ['CREATED', 'created_at'],
      ['BY', 'created_by'],
    ],
    empty: 'There are no analysts yet.',
  }),
  change(
    'remove <slug> <name>',
    'remove an analyst; the password stops working at once',
    ['delete', `${path}/{name}`],
    { text: toFields },
  ),
])

function toCreatedText({ warning, ...analyst }: Answer<typeof path, 'post'>): string {
  const kept = `${toFields(analyst)}\n\nKeep it now: the password is never shown again.`
  return warning === undefined ? kept : `${kept}\nWarning: ${warning}`
}
