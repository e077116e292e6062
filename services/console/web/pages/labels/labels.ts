/** Labels of a tenant as the pages read and add them. */
import { fraudLabels, legitimateLabel, retractedLabel } from '#shared/core/outcomes/labels.ts'
import { type AnswerOf, api, ok } from '../../api/client.ts'

type Page = AnswerOf<'/admin/v1/tenants/{tenant_id}/labels', 'get'>
export type Label = Page['data'][number]

/** What a label is about. */
export type LabelSubject = { kind: 'device' | 'user' | 'session' | 'event'; id: string }

export type LabelFilters = Partial<
  Record<'device_id' | 'user_id' | 'session_id' | 'event_id' | 'label' | 'external_id', string>
>

/** The key of all labels of a tenant, for a refresh after a change. */
export const labelsKey = (tenant: string) => ['labels', tenant]

export const loadLabels = (tenant: string, filters: LabelFilters, cursor?: string) =>
  ok(
    api.GET('/admin/v1/tenants/{tenant_id}/labels', {
      params: {
        path: { tenant_id: tenant },
        query: { limit: 100, ...filters, ...(cursor === undefined ? {} : { cursor }) },
      },
    }),
  )

/** The codes that a label of a tenant may have. */
export const codesQuery = (tenant: string) => ({
  queryKey: [...labelsKey(tenant), 'codes'],
  queryFn: () =>
    ok(
      api.GET('/admin/v1/tenants/{tenant_id}/labels/codes', {
        params: { path: { tenant_id: tenant } },
      }),
    ),
  enabled: tenant !== '',
})

/** Options of a choice of labels: before the codes are there, those that every tenant has. */
export const toLabelOptions = (codes: readonly { code: string }[] | undefined): string[] =>
  codes?.map(({ code }) => code) ?? Object.keys(labelNames)

export type NewLabel = {
  label: string
  occurred_at?: string
  amount?: string
  currency?: string
  external_id?: string
  note?: string
}

export const addLabel = (tenant: string, { kind, id }: LabelSubject, label: NewLabel) =>
  ok(
    api.POST('/admin/v1/tenants/{tenant_id}/labels', {
      params: { path: { tenant_id: tenant } },
      body: { subject: { [`${kind}_id`]: id }, ...label },
    }),
  )

/** The words of the labels with a meaning of their own. */
const labelNames: Readonly<Record<string, string>> = {
  ...Object.fromEntries(fraudLabels.map((name) => [name, toWords(name)])),
  [legitimateLabel]: 'Legitimate',
  [retractedLabel]: 'Retracted',
}

/** `account_takeover` is Account takeover. */
function toWords(code: string): string {
  const words = code.replaceAll('_', ' ')
  return `${words[0]!.toUpperCase()}${words.slice(1)}`
}

export const toLabelName = (code: string): string => labelNames[code] ?? code

/** The one subject of a label. */
export function toSubject({ subject }: Label): LabelSubject {
  const [[name, id] = ['device_id', '']] = Object.entries(subject)
  return { kind: name.replace('_id', '') as LabelSubject['kind'], id }
}
