/** The allow and deny lists of a tenant as the pages read and change them. */
import { type AnswerOf, api, ok } from '../../api/client.ts'

type Page = AnswerOf<'/admin/v1/tenants/{tenant_id}/lists', 'get'>
export type ListEntry = Page['data'][number]

/** A device or a user that an entry is for. */
export type Listed = { kind: 'device' | 'user'; id: string }

export type ListFilters = Partial<
  Pick<ListEntry, 'list' | 'kind' | 'id'> & { state: 'active' | 'expired' }
>

/** The key of all lists of a tenant, for a refresh after a change. */
export const listsKey = (tenant: string) => ['lists', tenant]

export const loadEntries = (tenant: string, filters: ListFilters, cursor?: string) =>
  ok(
    api.GET('/admin/v1/tenants/{tenant_id}/lists', {
      params: {
        path: { tenant_id: tenant },
        query: { limit: 100, ...filters, ...(cursor === undefined ? {} : { cursor }) },
      },
    }),
  )

export type NewEntry = Pick<ListEntry, 'list' | 'kind' | 'id' | 'reason' | 'expires_at'>

export const addEntry = (tenant: string, body: NewEntry) =>
  ok(
    api.POST('/admin/v1/tenants/{tenant_id}/lists', {
      params: { path: { tenant_id: tenant } },
      body,
    }),
  )

export const removeEntry = (tenant: string, entryId: string) =>
  ok(
    api.DELETE('/admin/v1/tenants/{tenant_id}/lists/{entry_id}', {
      params: { path: { tenant_id: tenant, entry_id: entryId } },
    }),
  )

/** The names of the lists. */
export const listNames = { allow: 'Allow list', deny: 'Deny list' } as const

type KindTexts = {
  /** For the middle of a sentence. */
  noun: string
  name: string
  plural: string
  /** Of the field for what the entry is for. */
  label: string
  hint?: string
}
export const listKinds: Readonly<Record<ListEntry['kind'], KindTexts>> = {
  device: { noun: 'device', name: 'Device', plural: 'Devices', label: 'Id' },
  user: { noun: 'user', name: 'User or account', plural: 'Users', label: 'Id' },
  network: {
    noun: 'network',
    name: 'Network',
    plural: 'Networks',
    label: 'Network',
    hint: 'In CIDR notation, such as 8.8.8.0/24, or an address.',
  },
  asn: {
    noun: 'operator',
    name: 'Network operator (ASN)',
    plural: 'Network operators',
    label: 'Number',
    hint: 'Such as 64500 or AS64500.',
  },
  country: {
    noun: 'country',
    name: 'Country',
    plural: 'Countries',
    label: 'Code',
    hint: 'Two letters of ISO 3166-1, such as DE.',
  },
}

export const isEntity = (kind: ListEntry['kind']): kind is Listed['kind'] =>
  kind === 'device' || kind === 'user'

/** The files of network data, as the console reads them; edges have the same setting. */
export const networkDataQuery = {
  queryKey: ['network-data'],
  queryFn: () => ok(api.GET('/admin/v1/network')),
}

const regions = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' })

/** What an entry is for, as a person reads it. */
export function toShownId({ kind, id }: Pick<ListEntry, 'kind' | 'id'>): string {
  if (kind === 'asn') return `AS${id}`
  const name = kind === 'country' ? regions.of(id) : undefined
  return name === undefined ? id : `${id} (${name})`
}

/** What an entry does. */
export function toEffect(list: ListEntry['list'], kind: ListEntry['kind']): string {
  if (list === 'deny') return 'Every event is BLOCK and raises an alert. Deny beats allow.'
  return isEntity(kind)
    ? 'Every event is ALLOW and raises no alert. Deny beats allow.'
    : 'What the service sees of the connection counts nothing, as for your own office. ' +
        'The other signals count as before.'
}
