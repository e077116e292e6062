/** `di keys ...`: named API keys of a tenant, with scopes. */
import { Option } from 'commander'
import { apiKeyScopes } from '#shared/core/tenants/api-key-scopes.ts'
import { change, group, read } from './commands.ts'
import { toFields } from './tables.ts'

export const keys = group('keys', 'named API keys of a tenant', [
  change('create <slug>', 'create a key and show it, once', ['post', '/tenants/{tenant_id}/keys'], {
    options: [
      new Option(
        '--scope <scope...>',
        `what the key may do: ${apiKeyScopes.join(', ')}; every key reads`,
      ).makeOptionMandatory(),
      new Option('--name <name>', 'the name within the tenant').default('key'),
    ],
    body: ({ name, scope }: { name: string; scope: string[] }) => ({
      name,
      scopes: scope.flatMap((text) => text.split(',')),
    }),
    text: ({ tenant_id, name, scopes, api_key }) =>
      `${toFields({ tenant_id, name, scopes: scopes.join(', '), api_key })}\n\n` +
      'Keep it now: the key is never shown again.',
  }),
  read('list <slug>', 'list the named keys of a tenant', '/tenants/{tenant_id}/keys', {
    columns: [
      ['NAME', 'name'],
      ['KEY', (one) => `${one.prefix}...${one.last4}`],
      ['SCOPES', (one) => one.scopes.join(', ')],
      ['CREATED', 'created_at'],
      ['BY', 'created_by'],
      ['LAST USED', 'last_used_at'],
    ],
    empty: 'There are no named keys yet.',
  }),
  change(
    'remove <slug> <name>',
    'remove a key; it stops working at once',
    ['delete', '/tenants/{tenant_id}/keys/{name}'],
    { text: toFields },
  ),
])
